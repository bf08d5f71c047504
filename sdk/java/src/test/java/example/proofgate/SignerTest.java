package example.proofgate;

import static example.proofgate.Fixture.check;
import static example.proofgate.Fixture.codeOf;
import static example.proofgate.Fixture.edit;
import static example.proofgate.Fixture.enrolled;
import static example.proofgate.Fixture.installPair;
import static example.proofgate.Fixture.same;
import static example.proofgate.Fixture.waitFor;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;

/** The signer with its files. */
final class SignerTest {
    private static final String ORIGIN = "https://api.shop.example";

    private static String keyIdOf(Signer signer) throws SigningException {
        String[] encoded = {""};
        signer.sign("GET", ORIGIN + "/v1/a", Map.of(), null).forEach((name, value) -> {
            if (name.equals("X-Proofgate-Transcript")) encoded[0] = value;
        });
        String text = new String(Syntax.decodeBase64url(encoded[0]).orElseThrow(), StandardCharsets.US_ASCII);
        return text.lines().filter(line -> line.startsWith("key-id=")).findFirst().orElseThrow().substring(7);
    }

    void followsTheKeyThatTheAgentInstalls() throws Exception {
        Path folder = Fixture.newFolder();
        List<String> warnings = new ArrayList<>();
        Signer signer = Signer.options(installPair(folder, 1, ORIGIN)).warn(warnings::add).open();
        installPair(folder, 2, ORIGIN);
        same("dk_1", keyIdOf(signer));
        signer.forgetCheck();
        same("dk_2", keyIdOf(signer));
        // A key that cannot be used is not taken.
        installPair(folder, 3, ORIGIN);
        Files.delete(folder.resolve(".key.pem.3/key.pem.enrollment.json"));
        signer.forgetCheck();
        same("dk_2", keyIdOf(signer));
        check(warnings.size() == 1 && warnings.get(0).contains("enrollment_missing"), warnings);
    }

    void replacesTheKeyWhileThreadsSign() throws Exception {
        Path folder = Fixture.newFolder();
        Signer signer = Signer.open(installPair(folder, 1, ORIGIN));
        AtomicReference<Throwable> failure = new AtomicReference<>();
        AtomicBoolean isDone = new AtomicBoolean();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            Thread thread = new Thread(() -> {
                try {
                    while (!isDone.get()) keyIdOf(signer);
                } catch (Throwable error) {
                    failure.set(error);
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (int number = 2; number < 12; number++) {
            installPair(folder, number, ORIGIN);
            // Another thread may be looking at the files before this key.
            String keyId = "dk_" + number;
            waitFor(() -> {
                signer.forgetCheck();
                return failure.get() != null || keyIdOf(signer).equals(keyId);
            });
        }
        isDone.set(true);
        for (Thread thread : threads) thread.join();
        same(null, failure.get());
    }

    void stopsSigningWhenTheKeyHasEnded() throws Exception {
        Path keyFile = enrolled(ORIGIN);
        Signer signer = Signer.open(keyFile);
        same("dk_1", keyIdOf(signer));
        signer.clock = InstantSource.offset(InstantSource.system(), Duration.ofDays(100 * 365));
        same("key_expired", codeOf(() -> keyIdOf(signer)));
        signer.clock = InstantSource.system();
        edit(KeyFiles.beside(keyFile, ".enrollment.json"), "\"active\"", "\"revoked\"");
        for (int i = 0; i < 2; i++) {
            signer.forgetCheck();
            same("key_revoked", codeOf(() -> keyIdOf(signer)));
        }
    }

    void failsWithTheCodesOfTheCommandLine() throws Exception {
        String[][] cases = {
            {"key_revoked", "\"active\"", "\"revoked\""},
            {"key_expired", "2099", "2020"},
            {"enrollment_state_invalid", "\"format\":", "\"format\":\"x\",\"format\":"},
            {"enrollment_state_invalid", "\"/v1/uploads\"", "\"/v1/../uploads\""},
            {"enrollment_state_invalid", "2099-01-01T00:00:00Z", "later"},
            {"enrollment_pending", "\"enrolled\":", "\"attempt\":"},
            {"enrollment_missing", "\"enrolled\":", "\"other\":"},
        };
        for (String[] each : cases) {
            Path keyFile = enrolled(ORIGIN);
            edit(KeyFiles.beside(keyFile, ".enrollment.json"), each[1], each[2]);
            same(each[0], codeOf(() -> Signer.open(keyFile)));
        }
        Path keyFile = enrolled(ORIGIN);
        Files.copy(keyFile, keyFile.resolveSibling("other.pem"));
        same("enrollment_missing", codeOf(() -> Signer.open(keyFile.resolveSibling("other.pem"))));
        Fixture.writeSecret(keyFile, Fixture.newKeyPem());
        same("enrollment_state_mismatch", codeOf(() -> Signer.open(keyFile)));
        Files.setPosixFilePermissions(keyFile, PosixFilePermissions.fromString("rw-r-----"));
        same("file_permissions", codeOf(() -> Signer.open(keyFile)));
        Fixture.writeSecret(keyFile, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
        same("private_key_invalid", codeOf(() -> Signer.open(keyFile)));
        Fixture.writeSecret(keyFile, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
        same("public_key_where_private_expected", codeOf(() -> Signer.open(keyFile)));
        Fixture.writeSecret(keyFile, "x".repeat(KeyFiles.MAX_KEY_BYTES + 1));
        same("file_too_large", codeOf(() -> Signer.open(keyFile)));
        same("file_is_directory", codeOf(() -> Signer.open(keyFile.getParent())));
        same("file_not_regular", codeOf(() -> Signer.open(Path.of("/dev/null"))));
        same("file_not_found", codeOf(() -> Signer.open(keyFile.resolve("key.pem"))));
        same("file_not_found", codeOf(() -> Signer.open(Path.of("missing"))));
        same("file_is_directory", codeOf(() -> Signer.open(Path.of("/"))));
    }

    void keepsANonceOfEachOrigin() {
        record Answer(int status, String challenge, List<String> nonces, boolean asks, String kept) {}
        String asks = "Passport, DPoP error=\"use_dpop_nonce\", algs=\"ES256\"";
        Dpop dpop = new Dpop();
        for (Answer each : List.of(
            new Answer(200, "", List.of("n-1"), false, "n-1"),
            new Answer(401, asks, List.of("n-2"), true, "n-2"),
            new Answer(403, asks, List.of("n-3"), false, "n-3"),
            new Answer(401, "DPoP error=\"invalid_token\"", List.of("n-4"), false, "n-4"),
            new Answer(401, asks, List.of(), false, "n-4"),
            new Answer(401, asks, List.of("n-5", "n-6"), false, "n-4"),
            new Answer(401, asks, List.of("n \"5\""), false, "n-4"))) {
            same(each.asks, dpop.learn("https://a.example", each.status, each.nonces, List.of(each.challenge)));
            same(each.kept, dpop.nonceOf("https://a.example"));
        }
        for (int i = 0; i < 256; i++) dpop.learn("https://" + i + ".example", 200, List.of("n"), List.of());
        same(null, dpop.nonceOf("https://a.example"));
    }

    void signsWithAProfileFile() throws Exception {
        Path keyFile = Fixture.newFolder().resolve("key.pem");
        Fixture.writeSecret(keyFile, Fixture.newKeyPem());
        Path profile = keyFile.resolveSibling("profile.json");
        String route = "{\"route_id\":\"%s\",\"method\":\"GET\",\"path_template\":\"/v1/{path*}\",\"audience\":\"a\","
            + "\"origins\":[\"" + ORIGIN + "\"]}";
        String text = "{\"auth_site\":\"shop-eu\",\"key_id\":\"dk_7\",\"issuer\":\"i\",\"trust_domain\":\"t\",\"subject\":\"s\","
            + "\"key_binding\":\"software\",\"profiles\":[" + route.formatted("one") + "," + route.formatted("two") + "]}";
        Files.writeString(profile, text);
        same("profile_ambiguous", codeOf(() -> keyIdOf(Signer.options(keyFile).profileFile(profile).open())));
        same("dk_7", keyIdOf(Signer.options(keyFile).profileFile(profile).profile("two").open()));
        same("header_missing",
            codeOf(() -> keyIdOf(Signer.options(keyFile).profileFile(profile).profile("two").signHeaders("X-A").open())));
        Files.writeString(profile, text.replace("\"subject\":\"s\"", "\"subject\":\"SPIFFE://t/a\""));
        same("profile_invalid", codeOf(() -> Signer.options(keyFile).profileFile(profile).open()));
        Files.writeString(profile, text.replace("\"key_id\":\"dk_7\",", ""));
        same("key_id_missing", codeOf(() -> keyIdOf(Signer.options(keyFile).profileFile(profile).profile("two").open())));
    }

    /** That a key can be opened shows that its public key is the one of the state, which Node.js has written. */
    void opensKeysInEachForm() throws Exception {
        int opened = 0;
        for (Path file : filesIn("keys")) {
            if (!file.toString().endsWith(".pem")) continue;
            Signer.open(file);
            opened++;
        }
        same(96, opened);
        for (Path file : filesIn("refused")) same("private_key_invalid", codeOf(() -> Signer.open(file)));
    }

    private static List<Path> filesIn(String folder) throws Exception {
        try (Stream<Path> files = Files.list(Fixture.FOLDER.resolve(folder))) {
            return files.toList();
        }
    }

    void removesTheHeadersThatAllSdksRemove() throws Exception {
        Path file = Fixture.CHECKOUT.resolve("test/caller/sdk/caller-headers.json");
        Map<?, ?> headers = (Map<?, ?>) StrictJson.parse(Files.readAllBytes(file));
        for (String kind : List.of("credentials", "others")) {
            List<?> all = (List<?>) headers.get(kind);
            check(!all.isEmpty(), "no headers");
            for (Object each : all) {
                List<?> header = (List<?>) each;
                boolean isCredential = Credentials.isCredential((String) header.get(0), (String) header.get(1));
                check(isCredential == kind.equals("credentials"), header);
            }
        }
    }

    void readsOnlyJsonThatOthersReadTheSameWay() throws Exception {
        String[] refused = {"", "{", "[1,]", "{\"a\":1,}", "{\"a\":1,\"\\u0061\":2}", "01", "1.", "+1", "nul", "[1] 2", "'a'",
            "\"\t\"", "\"\\x\"", "\"\\u00g0\"", "\"\\u\uff11111\"", "\ufeff{}", "[".repeat(33) + "]".repeat(33), "{1:2}", "NaN"};
        for (String text : refused) {
            try {
                throw new AssertionError(text + ": " + StrictJson.parse(text.getBytes(StandardCharsets.UTF_8)));
            } catch (StrictJson.Invalid expected) {
                check(!expected.getMessage().contains("a\""), expected);
            }
        }
        try {
            throw new AssertionError(StrictJson.parse(new byte[] {'"', (byte) 0xc0, (byte) 0xaf, '"'}));
        } catch (StrictJson.Invalid expected) {
            // Not UTF-8.
        }
        Object parsed = StrictJson.parse(" [ {\"a\":[true,null,-0.5e3]} , \"\\\"\\u00e9\\n\" ] ".getBytes());
        same("[{a=[true, null, Number[text=-0.5e3]]}, \"\u00e9\n]", parsed.toString());
    }
}
