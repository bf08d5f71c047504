package example.proofgate;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PublicKey;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;

/** Key files, and what the tests check with. */
final class Fixture {
    static final Path FOLDER = Path.of(System.getProperty("proofgate.folder"));
    /** Of the repository. */
    static final Path CHECKOUT = Path.of(System.getProperty("proofgate.checkout"));
    /** The newest key with each key ID. */
    static final Map<String, PublicKey> PUBLIC_KEYS = new ConcurrentHashMap<>();
    private static int folders;

    private Fixture() {}

    static Path newFolder() throws IOException {
        return Files.createDirectory(FOLDER.resolve("folder-" + ++folders));
    }

    static String newKeyPem() throws GeneralSecurityException {
        return pemOf(KeyPairGenerator.getInstance("Ed25519").generateKeyPair());
    }

    private static String pemOf(KeyPair pair) {
        byte[] der = pair.getPrivate().getEncoded();
        return "-----BEGIN PRIVATE KEY-----\n" + Base64.getEncoder().encodeToString(der) + "\n-----END PRIVATE KEY-----\n";
    }

    static void writeSecret(Path path, String text) throws IOException {
        Files.writeString(path, text);
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
    }

    static Path enrolled(String... origins) throws Exception {
        return writeEnrolled(newFolder(), "dk_1", origins);
    }

    /** Writes a key as "proofgate enroll" leaves it. */
    static Path writeEnrolled(Path folder, String keyId, String... origins) throws Exception {
        Path keyFile = folder.resolve("key.pem");
        KeyPair pair = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
        PUBLIC_KEYS.put(keyId, pair.getPublic());
        String pem = pemOf(pair);
        writeSecret(keyFile, pem);
        String thumbprint = SigningKey.parse(pem.getBytes(), "key").thumbprint();
        String profiles = String.join(",",
            profile("GET", "read", "/v1/{path*}", "bound", origins, ""),
            profile("HEAD", "head", "/v1/{path*}", "bound", origins, ""),
            profile("GET", "own", "/v1/own", "bound", origins, ",\"passport_header\":\"X-Proofgate-Passport\""),
            profile("POST", "write", "/v1/{path*}", "bound", origins, ""),
            profile("QUERY", "query", "/v1/{path*}", "bound", origins, ""),
            profile("POST", "upload", "/v1/uploads", "unbound", origins, ""));
        writeSecret(KeyFiles.beside(keyFile, ".enrollment.json"), """
            {"format":"proofgate.enrollment-state/v1","key_thumbprint":"%1$s","control_url":"https://control.shop.example",
            "policy":"epr_1","enrolled":{"auth_site":"shop-eu","derived_key":{"key_id":"%2$s","fingerprint":"%1$s",
            "status":"active","expires_at":"2099-01-01T00:00:00Z","client_id":"billing",
            "issuer":"https://control.shop.example/sites/shop-eu","trust_domain":"shop.example","subject":"client:billing",
            "key_binding":"software"},"signing_profiles":[%3$s]}}""".formatted(thumbprint, keyId, profiles));
        return keyFile;
    }

    private static String profile(
        String method, String routeId, String template, String body, String[] origins, String more) {
        return "{\"route_id\":\"%s\",\"method\":\"%s\",\"path_template\":\"%s\",\"body\":\"%s\",\"signed_headers\":[],"
            .formatted(routeId, method, template, body)
            + "\"audience\":\"https://api.shop.example\",\"origins\":[\"" + String.join("\",\"", origins) + "\"]" + more + "}";
    }

    /** Installs a key and its state as "proofgate agent" does. */
    static Path installPair(Path folder, int number, String... origins) throws Exception {
        Path pair = Files.createDirectory(folder.resolve(".key.pem." + number));
        writeEnrolled(pair, "dk_" + number, origins);
        Path link = Files.createSymbolicLink(folder.resolve(".new"), pair.getFileName());
        Files.move(link, folder.resolve(".key.pem.current"), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        for (String name : List.of("key.pem", "key.pem.enrollment.json")) {
            if (!Files.exists(folder.resolve(name)))
                Files.createSymbolicLink(folder.resolve(name), Path.of(".key.pem.current", name));
        }
        return folder.resolve("key.pem");
    }

    static void edit(Path path, String old, String with) throws IOException {
        String text = Files.readString(path);
        check(text.contains(old), "no " + old);
        writeSecret(path, text.replace(old, with));
    }

    interface Attempt {
        Object run() throws Exception;
    }

    /** The code of the SigningError that this fails with, or what else happens. */
    static String codeOf(Attempt attempt) {
        try {
            return "no error but " + attempt.run();
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof SigningException signing) return signing.code();
            }
            return error.toString();
        }
    }

    interface Condition {
        boolean isMet() throws Exception;
    }

    static void waitFor(Condition condition) throws Exception {
        long end = System.nanoTime() + Duration.ofMinutes(1).toNanos();
        while (!condition.isMet()) {
            check(System.nanoTime() < end, "waited for a minute");
            Thread.sleep(1);
        }
    }

    static void same(Object expected, Object actual) {
        check(Objects.equals(expected, actual), "expected " + expected + ", got " + actual);
    }

    static void check(boolean isTrue, Object problem) {
        if (!isTrue) throw new AssertionError(problem);
    }
}
