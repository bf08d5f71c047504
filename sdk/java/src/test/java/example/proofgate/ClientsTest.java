package example.proofgate;

import static example.proofgate.Fixture.check;
import static example.proofgate.Fixture.codeOf;
import static example.proofgate.Fixture.enrolled;
import static example.proofgate.Fixture.same;
import static example.proofgate.Fixture.waitFor;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.Authenticator;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okio.BufferedSink;

/** The adapters, against servers that look at what arrives. */
final class ClientsTest {
    void signsWhatIsSent() throws Exception {
        for (Proof proof : Proof.values()) signsWhatIsSent(proof);
    }

    private static void signsWhatIsSent(Proof proof) throws Exception {
        try (Upstream upstream = new Upstream()) {
            Signer signer = Signer.options(enrolled(upstream.origin())).proof(proof).open();
            List<Client> clients = new ArrayList<>(Client.all(signer, Follow.SAME_ORIGIN));
            clients.add(Client.interceptor(signer));
            for (Client client : clients) {
                for (String target : List.of("/v1/a", "/v1/caf%C3%A9?x=%2f&y=a%20b", "/v1/a??", "/v1/a?b=//c;d"))
                    same(200, client.send("GET", upstream.origin() + target, null).status());
                if (proof != Proof.HTTP_MESSAGE_SIGNATURES) same(200, client.send("GET", upstream.origin() + "/v1/a?", null).status());
                for (int length : new int[] {0, 1, 9 << 20})
                    same(200, client.send("POST", upstream.origin() + "/v1/a", new byte[length]).status());
                same(200, client.send("HEAD", upstream.origin() + "/v1/a", null).status());
                same(200, client.send("QUERY", upstream.origin() + "/v1/a", "state=open".getBytes()).status());
                check(!upstream.last().transcript().get("content-sha256").equals("-"), "the body of QUERY is not bound");
            }
        }
    }

    void sendsNothingThatItCannotSign() throws Exception {
        try (Upstream upstream = new Upstream()) {
            String url = upstream.origin() + "/v1/a";
            Signer signer = Signer.open(enrolled(upstream.origin()));
            List<Client> clients = new ArrayList<>(Client.all(signer, Follow.SAME_ORIGIN));
            clients.add(Client.interceptor(signer));
            for (Client client : clients) {
                same("origin_not_allowed", codeOf(() -> client.send("GET", url.replace("127.0.0.1", "localhost"), null)));
                same("profile_not_found", codeOf(() -> client.send("PUT", url, new byte[1])));
                same("url_not_canonical", codeOf(() -> client.send("GET", upstream.origin() + "/v1//a", null)));
                same("header_reserved", codeOf(() -> client.send("GET", url, null, "authorization", "Bearer x")));
            }
            for (Client client : List.of(clients.get(1), clients.get(3)))
                same("host_not_allowed", codeOf(() -> client.send("GET", url, null, "Host", "evil.example")));
            same(List.of(), upstream.all);
        }
    }

    void followsTheRedirectsThatAllSdksFollow() throws Exception {
        Path cases = Fixture.CHECKOUT.resolve("test/caller/sdk/redirects.json");
        List<?> all = (List<?>) StrictJson.parse(Files.readAllBytes(cases));
        same(8, all.size());
        for (Object each : all) {
            Map<?, ?> given = (Map<?, ?>) each;
            for (int i = 0; i < 3; i++) {
                redirects(given, i, 302, null);
                redirects(given, i, 307, "data".getBytes());
            }
        }
    }

    private static void redirects(Map<?, ?> given, int client, int status, byte[] body) throws Exception {
        try (Upstream upstream = new Upstream(); Upstream elsewhere = new Upstream()) {
            boolean hasProfile = (Boolean) given.get("has_profile");
            boolean isSame = given.get("to").equals("same");
            Upstream to = isSame ? upstream : elsewhere;
            String path = isSame && !hasProfile ? "/new" : "/v1/new";
            upstream.answer = request -> !request.target().equals("/v1/old") ? Upstream.OK
                : status + " X\r\nLocation: " + to.origin() + path + "\r\nContent-Length: 4\r\n\r\ngone";
            String[] origins = !isSame && hasProfile ? new String[] {upstream.origin(), elsewhere.origin()}
                : new String[] {upstream.origin()};
            Follow follow = given.get("follow").equals("profiles") ? Follow.PROFILES : Follow.SAME_ORIGIN;
            Client sender = Client.all(Signer.open(enrolled(origins)), follow).get(client);
            Fixture.Attempt attempt =
                () -> sender.send(body == null ? "GET" : "POST", upstream.origin() + "/v1/old", body).status();
            if (given.get("outcome").equals("signed")) {
                same(200, attempt.run());
                same(body == null ? 0 : 4, to.last().body().length);
                check(to.last().fits(), "unsigned");
                Set<String> proofs = new HashSet<>(List.of(upstream.all.get(0).signature(), to.last().signature()));
                same(2, proofs.size());
            } else {
                same(given.get("outcome"), codeOf(attempt));
                same(1, upstream.all.size());
                same(0, elsewhere.all.size());
            }
        }
    }

    void givesARedirectToTheCallerThatItDoesNotFollow() throws Exception {
        try (Upstream upstream = new Upstream()) {
            upstream.answer = request -> "302 X\r\nLocation: /v1/a\r\nContent-Length: 2\r\n\r\nok";
            Signer signer = Signer.open(enrolled(upstream.origin()));
            Client.Answer answer = Client.jdk(signer, Follow.NEVER, Client.PATIENCE).send("GET", upstream.origin() + "/v1/a", null);
            same("302 ok", answer.status() + " " + answer.body());
            // And of a redirect in a circle.
            same(302, Client.jdk(signer, Follow.SAME_ORIGIN, Client.PATIENCE).send("GET", upstream.origin() + "/v1/a", null).status());
            same(7, upstream.all.size());
        }
    }

    void sendsNoProofTwice() throws Exception {
        for (Proof proof : Proof.values()) sendsNoProofTwice(proof);
    }

    private static void sendsNoProofTwice(Proof proof) throws Exception {
        String status = " X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
        Map<String, Upstream.Fault> faults = new HashMap<>(Map.of(
            "reset after the head", new Upstream.Fault(true, true, false, null),
            "reset after the body", new Upstream.Fault(false, true, false, null),
            "end without answer", new Upstream.Fault(false, false, false, null),
            "time-out", new Upstream.Fault(false, false, true, null)));
        for (String code : List.of("401", "408", "421", "425", "503"))
            faults.put(code, new Upstream.Fault(false, false, false, code + status));
        // That of Spring is that of the JDK.
        int[] repetitions = new int[2];
        for (Map.Entry<String, Upstream.Fault> fault : faults.entrySet()) {
            for (String method : List.of("GET", "POST")) {
                for (int i = 0; i < 2; i++) repetitions[i] += repetitions(fault.getKey(), fault.getValue(), method, i, proof);
            }
        }
        for (int count : repetitions) check(count > 0, "a client repeated nothing, so this showed nothing");
    }

    private static int repetitions(String name, Upstream.Fault fault, String method, int client, Proof proof)
        throws Exception {
        try (Upstream upstream = new Upstream()) {
            Signer signer = Signer.options(enrolled(upstream.origin())).proof(proof).open();
            Client sender = Client.all(signer, Follow.SAME_ORIGIN, Duration.ofMillis(500)).get(client);
            upstream.fault = fault;
            for (int i = 0; i < 3; i++) {
                try {
                    sender.send(method, upstream.origin() + "/v1/a", method.equals("GET") ? null : new byte[1 << 16]);
                } catch (Exception failed) {
                    check(!failed.toString().contains("signed anew"), failed);
                }
            }
            Set<String> proofs = new HashSet<>();
            for (Upstream.Arrived arrived : upstream.all) {
                check(arrived.signature() != null && proofs.add(arrived.signature()),
                    name + ", " + method + ", " + client + ": one proof was sent twice, or none");
            }
            return upstream.all.size() - 3;
        }
    }

    /** The JDK repeats a GET on another connection; so does the adapter, with another proof. */
    void answersAGetWhoseConnectionWasClosed() throws Exception {
        try (Upstream upstream = new Upstream()) {
            Signer signer = Signer.open(enrolled(upstream.origin()));
            for (Client client : Client.all(signer, Follow.SAME_ORIGIN)) {
                same(200, client.send("GET", upstream.origin() + "/v1/a", null).status());
                upstream.fault = new Upstream.Fault(false, false, false, null);
                same(200, client.send("GET", upstream.origin() + "/v1/a", null).status());
            }
            same(9, upstream.all.size());
        }
    }

    void cancelsWhatIsSent() throws Exception {
        try (Upstream upstream = new Upstream()) {
            HttpClient client =
                new SigningHttpClient(Signer.open(enrolled(upstream.origin())), Client.plain(), Follow.SAME_ORIGIN);
            HttpRequest request = HttpRequest.newBuilder(URI.create(upstream.origin() + "/v1/a")).build();
            client.send(request, BodyHandlers.discarding());
            upstream.fault = new Upstream.Fault(false, false, true, null);
            CompletableFuture<HttpResponse<Void>> answer = client.sendAsync(request, BodyHandlers.discarding());
            waitFor(() -> upstream.all.size() == 2);
            answer.cancel(true);
            waitFor(() -> upstream.hasGivenUp);
        }
    }

    void takesNoClientOfTheJdkThatRepeatsProofs() throws Exception {
        Signer signer = Signer.open(enrolled("https://api.shop.example"));
        HttpClient redirects = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NORMAL).build();
        HttpClient authenticates = HttpClient.newBuilder().authenticator(new Authenticator() {}).build();
        for (HttpClient refused : List.of(redirects, authenticates)) {
            check(codeOf(() -> new SigningHttpClient(signer, refused, Follow.NEVER)).contains("IllegalArgument"), refused);
        }
    }

    void takesNoInterceptorOfOkHttpThatSeesOneAttempt() throws Exception {
        try (Upstream upstream = new Upstream()) {
            Signer signer = Signer.open(enrolled(upstream.origin()));
            OkHttpClient client = new OkHttpClient.Builder().addInterceptor(new OkHttpSigningInterceptor(signer)).build();
            Request request = new Request.Builder().url(upstream.origin() + "/v1/a").build();
            check(codeOf(() -> client.newCall(request).execute()).contains("addNetworkInterceptor"), "sent");
            same(List.of(), upstream.all);
        }
    }

    void readsStreamsOfTheJdkOnce() throws Exception {
        try (Upstream upstream = new Upstream()) {
            HttpClient client =
                new SigningHttpClient(Signer.open(enrolled(upstream.origin())), Client.plain(), Follow.SAME_ORIGIN);
            URI url = URI.create(upstream.origin() + "/v1/a");
            int[] opened = {0};
            BodyPublisher stream = BodyPublishers.ofInputStream(() -> {
                opened[0]++;
                return new ByteArrayInputStream("data".getBytes());
            });
            same(200, client.send(HttpRequest.newBuilder(url).POST(stream).build(), BodyHandlers.ofString()).statusCode());
            same("data", new String(upstream.last().body()));
            same(1, opened[0]);
            Path large = Files.write(Fixture.newFolder().resolve("large"), new byte[9 << 20]);
            HttpRequest upload = HttpRequest.newBuilder(url).POST(BodyPublishers.ofFile(large)).build();
            same(200, client.send(upload, BodyHandlers.ofString()).statusCode());
            int arrived = upstream.all.size();
            BodyPublisher endless = BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(new byte[9 << 20]));
            same("body_not_replayable",
                codeOf(() -> client.send(HttpRequest.newBuilder(url).POST(endless).build(), BodyHandlers.ofString())));
            same(arrived, upstream.all.size());
            HttpRequest unbound = HttpRequest.newBuilder(URI.create(upstream.origin() + "/v1/uploads")).POST(endless).build();
            same(200, client.send(unbound, BodyHandlers.ofString()).statusCode());
        }
    }

    void readsOneShotBodiesOfOkHttpOnce() throws Exception {
        try (Upstream upstream = new Upstream()) {
            OkHttpClient client = new OkHttpClient.Builder()
                .addNetworkInterceptor(new OkHttpSigningInterceptor(Signer.open(enrolled(upstream.origin()))))
                .build();
            for (int length : new int[] {4, 9 << 20}) {
                int[] written = {0};
                RequestBody body = new RequestBody() {
                    @Override
                    public MediaType contentType() {
                        return null;
                    }

                    @Override
                    public boolean isOneShot() {
                        return true;
                    }

                    @Override
                    public void writeTo(BufferedSink sink) throws IOException {
                        written[0]++;
                        sink.write(new byte[length]);
                    }
                };
                Request request = new Request.Builder().url(upstream.origin() + "/v1/a").post(body).build();
                Fixture.Attempt attempt = () -> client.newCall(request).execute().code();
                if (length == 4) same(200, attempt.run());
                else same("body_not_replayable", codeOf(attempt));
                same(1, written[0]);
            }
            same(1, upstream.all.size());
        }
    }

    void keepsTheNewestNonceWhenOkHttpAuthenticates() throws Exception {
        String url = "https://api.shop.example/v1/a";
        Signer signer = Signer.options(enrolled("https://api.shop.example")).proof(Proof.DPOP).open();
        Request request = new Request.Builder().url(url).build();
        okhttp3.Response denied = new okhttp3.Response.Builder()
            .request(request)
            .protocol(okhttp3.Protocol.HTTP_1_1)
            .code(401)
            .message("")
            .header("DPoP-Nonce", "older")
            .header("WWW-Authenticate", "DPoP error=\"use_dpop_nonce\"")
            .build();
        // Another answer arrives between the denial and its repetition.
        signer.readAnswer(signer.choose("GET", url), 200, List.of("newer"), List.of());
        same(request, new OkHttpSigningInterceptor(signer).authenticate(null, denied));
        String[] proof = {""};
        signer.sign("GET", url, Map.of(), null).forEach((name, value) -> proof[0] = name.equals("DPoP") ? value : proof[0]);
        Map<?, ?> claims = (Map<?, ?>) StrictJson.parse(Syntax.decodeBase64url(proof[0].split("\\.")[1]).orElseThrow());
        same("newer", claims.get("nonce"));
    }

    void replacesCredentialsOfTheCaller() throws Exception {
        try (Upstream upstream = new Upstream()) {
            Signer signer = Signer.open(enrolled(upstream.origin()));
            List<Client> clients = new ArrayList<>(Client.all(signer, Follow.SAME_ORIGIN));
            clients.add(Client.interceptor(signer));
            for (Client client : clients) {
                same(200, client.send("GET", upstream.origin() + "/v1/a", null, "authorization", "Passport x",
                    "X_Proofgate_Subject", "root", "x-proofgate-signature", "x", "X-Own", "kept").status());
                Upstream.Arrived arrived = upstream.last();
                same(1, arrived.headers().get("authorization").size());
                same(1, arrived.headers().get("x-proofgate-signature").size());
                same(null, arrived.header("x_proofgate_subject"));
                same("kept", arrived.header("x-own"));
                for (String given : List.of("Bearer x", "Passport x", "Bearer x, passport y")) {
                    same(200, client.send("GET", upstream.origin() + "/v1/own", null, "Authorization", given).status());
                    same(given.equals("Bearer x") ? given : null, upstream.last().header("authorization"));
                    check(Passport.parse(upstream.last().header("x-proofgate-passport")) != null, "no passport");
                }
            }
        }
    }

    void replacesAnEarlierHttpMessageSignature() throws Exception {
        try (Upstream upstream = new Upstream()) {
            Signer signer = Signer.options(enrolled(upstream.origin())).proof(Proof.HTTP_MESSAGE_SIGNATURES).open();
            List<Client> clients = new ArrayList<>(Client.all(signer, Follow.SAME_ORIGIN));
            clients.add(Client.interceptor(signer));
            String url = upstream.origin() + "/v1/a";
            List<String> earlier = new ArrayList<>();
            signer.sign("POST", url, Map.of(), new byte[1]).forEach((name, value) -> earlier.addAll(List.of(name, value)));
            for (Client client : clients) {
                for (byte[] body : new byte[][] {null, new byte[2]}) {
                    String method = body == null ? "GET" : "POST";
                    same(200, client.send(method, url, body, earlier.toArray(new String[0])).status());
                    for (String name : List.of("signature", "signature-input", "content-digest"))
                        same(1, upstream.last().headers().get(name).size());
                }
                String uploads = upstream.origin() + "/v1/uploads";
                same(200, client.send("POST", uploads, new byte[2], "Content-Digest", "sha-512=:AAAA:").status());
                same("sha-512=:AAAA:", upstream.last().header("content-digest"));
            }
        }
    }

    void sendsNothingThatNoVerifierAccepts() throws Exception {
        try (Upstream upstream = new Upstream()) {
            Signer signer = Signer.options(enrolled(upstream.origin())).proof(Proof.HTTP_MESSAGE_SIGNATURES).open();
            List<Client> clients = new ArrayList<>(Client.all(signer, Follow.SAME_ORIGIN));
            clients.add(Client.interceptor(signer));
            String url = upstream.origin() + "/v1/a";
            for (Client client : clients) {
                same("header_reserved", codeOf(() -> client.send("GET", url, null, "signature", "keyId=\"app\"")));
                same("header_reserved", codeOf(() -> client.send("GET", url, null, "Signature-Input", "app=(\"@method\")")));
            }
            // The JDK sends no bare "?".
            same("url_not_canonical", codeOf(() -> clients.get(1).send("GET", url + "?", null)));
            same(List.of(), upstream.all);
        }
    }

    void showsNoCredentials() throws Exception {
        try (Upstream upstream = new Upstream()) {
            Signer signer = Signer.open(enrolled(upstream.origin()));
            for (Client client : Client.all(signer, Follow.PROFILES)) {
                String shown = client.send("GET", upstream.origin() + "/v1/a", null).shown();
                check(!shown.contains("assport") && !shown.contains(upstream.last().signature()), shown);
            }
            SignedRequest signed = signer.sign("GET", upstream.origin() + "/v1/a", Map.of(), null);
            Signer.Choice choice = signer.choose("GET", upstream.origin() + "/v1/a");
            String shown = signer + " " + signed + " " + choice + " " + choice.loaded().identity();
            signed.forEach((name, value) -> check(!shown.contains(value) && !shown.contains(value.substring(9)), name));
        }
    }

    void reportsADenial() throws Exception {
        String problem = "{\"reason\":\"jti_replay\",\"detail\":\"x\",\"decision_id\":\"d_7\"}";
        try (Upstream upstream = new Upstream()) {
            upstream.answer = request -> "403 No\r\nX-Proofgate-Reason: jti_replay\r\nRetry-After: 3\r\nContent-Length: "
                + problem.length() + "\r\n\r\n" + problem;
            Signer signer = Signer.open(enrolled(upstream.origin()));
            List<Client> clients = new ArrayList<>(Client.all(signer, Follow.SAME_ORIGIN));
            clients.add(Client.interceptor(signer));
            for (Client client : clients) {
                Client.Answer answer = client.send("GET", upstream.origin() + "/v1/a", null);
                Denied denied = answer.denied().orElseThrow();
                check(denied.getMessage().startsWith("403 jti_replay/x; something on the way repeated"), denied);
                same("d_7", denied.decisionId());
                same(Duration.ofSeconds(3), denied.retryAfter());
                same(problem, answer.body());
            }
            HttpClient client = new SigningHttpClient(signer);
            HttpRequest request = HttpRequest.newBuilder(URI.create(upstream.origin() + "/v1/a")).build();
            HttpResponse<Void> discarded = client.sendAsync(request, BodyHandlers.discarding()).get();
            same("x", SigningHttpClient.denialOf(discarded).orElseThrow().detail());
        }
        same(true, Denied.of(429, Map.of("X-Proofgate-Reason", "x")::get, new byte[0], null).isPresent());
        same(false, Denied.of(403, Map.of("Retry-After", "1")::get, new byte[0], null).isPresent());
        same(false, Denied.of(404, Map.of("X-Proofgate-Reason", "x")::get, new byte[0], null).isPresent());
    }

    void aDenialSaysHowFarTheClockIsOff() throws Exception {
        try (Upstream upstream = new Upstream()) {
            List<String> warnings = new ArrayList<>();
            Signer signer = Signer.options(enrolled(upstream.origin())).warn(warnings::add).open();
            for (int seconds : new int[] {45, -45, 0}) {
                upstream.answer = request -> "401 No\r\nX-Proofgate-Reason: invalid_request_proof\r\nDate: "
                    + DateTimeFormatter.RFC_1123_DATE_TIME.format(Instant.now().plusSeconds(seconds).atOffset(ZoneOffset.UTC))
                    + "\r\nContent-Length: 0\r\n\r\n";
                for (Client client : Client.all(signer, Follow.SAME_ORIGIN).subList(0, 2)) {
                    Denied denied = client.send("GET", upstream.origin() + "/v1/a", null).denied().orElseThrow();
                    check(Math.abs(denied.clockAhead().toSeconds() + seconds) <= 2, denied);
                    same(seconds != 0, denied.getMessage().contains("this clock is 4"));
                }
            }
            same(1, warnings.size());
        }
    }
}
