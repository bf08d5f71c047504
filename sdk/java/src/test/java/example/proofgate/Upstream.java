package example.proofgate;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.Signature;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Pattern;

/** A server that denies requests which do not fit their proof, and keeps all of them. Its answers are raw. */
final class Upstream implements AutoCloseable {
    private static final Pattern COMPONENT = Pattern.compile("\"([^\"]+)\"");
    private static final Pattern STATED = Pattern.compile(";([a-z]+)=\"?([^\";]+)");

    /** A request as it arrived, with header names in lower case; the transcript is empty without a proof. */
    record Arrived(String method, String target, Map<String, List<String>> headers, byte[] body) {
        String header(String name) {
            return headers.containsKey(name) ? String.join(",", headers.get(name)) : null;
        }

        String signature() {
            if (headers.containsKey("dpop")) return header("dpop");
            return header(headers.containsKey("signature") ? "signature" : "x-proofgate-signature");
        }

        /** Of an HTTP message that verifies and of a DPoP proof, the same lines as far as they say them. */
        Map<String, String> transcript() {
            if (headers.containsKey("dpop")) return dpop();
            if (headers.containsKey("signature-input")) return httpMessage();
            Map<String, String> lines = new HashMap<>();
            byte[] text = Syntax.decodeBase64url(header("x-proofgate-transcript") + "").orElse(new byte[0]);
            for (String line : new String(text, StandardCharsets.US_ASCII).split("\n")) {
                if (line.contains("=")) lines.put(line.substring(0, line.indexOf('=')), line.substring(line.indexOf('=') + 1));
            }
            return lines;
        }

        /** The proof covers neither query nor body. */
        private Map<String, String> dpop() {
            try {
                byte[] text = Syntax.decodeBase64url(header("dpop").split("\\.")[1]).orElseThrow();
                Map<?, ?> claims = (Map<?, ?>) StrictJson.parse(text);
                boolean isForUrl = claims.get("htu").equals("http://" + header("host") + target.split("\\?", 2)[0]);
                boolean isForToken =
                    claims.get("ath").equals(Syntax.sha256Base64url(header("authorization").substring("DPoP ".length())));
                if (!isForUrl || !isForToken) return Map.of();
                String content = body.length > 0 || method.equals("POST") ? Syntax.encodeBase64url(Syntax.sha256(body)) : "-";
                return Map.of("method", (String) claims.get("htm"), "target", target, "authority", header("host"),
                    "jti", (String) claims.get("jti"), "content-sha256", content, "route-id", "other");
            } catch (StrictJson.Invalid notJson) {
                return Map.of();
            }
        }

        private Map<String, String> httpMessage() {
            String params = header("signature-input").substring("sig=".length());
            StringBuilder base = new StringBuilder();
            Set<String> covered = new HashSet<>();
            COMPONENT.matcher(params.substring(0, params.indexOf(')'))).results().forEach(match -> {
                String name = match.group(1);
                String value = name.equals("@method") ? method
                    : name.equals("@target-uri") ? "http://" + header("host") + target : header(name);
                base.append(match.group()).append(": ").append(value).append('\n');
                covered.add(name);
            });
            base.append("\"@signature-params\": ").append(params);
            Map<String, String> stated = new HashMap<>();
            STATED.matcher(params).results().forEach(match -> stated.put(match.group(1), match.group(2)));
            boolean isTyped = covered.contains("content-digest") && headers.containsKey("content-type");
            boolean covers = covered.containsAll(Set.of("@method", "@target-uri"))
                && covered.contains("content-type") == isTyped;
            if (!covers || !verifies(stated.get("keyid"), base.toString())) return Map.of();
            String digest = covered.contains("content-digest") ? header("content-digest") : "";
            String content = digest.isEmpty() ? "-" : Syntax.encodeBase64url(bytesOf(digest.substring("sha-256=".length())));
            return Map.of("method", method, "target", target, "authority", header("host"), "content-sha256", content,
                "key-id", stated.get("keyid"), "jti", stated.get("nonce"),
                "route-id", target.equals("/v1/uploads") ? "upload" : "other");
        }

        private boolean verifies(String keyId, String base) {
            try {
                Signature verifier = Signature.getInstance("Ed25519");
                verifier.initVerify(Fixture.PUBLIC_KEYS.get(keyId));
                verifier.update(base.getBytes(StandardCharsets.US_ASCII));
                return verifier.verify(bytesOf(header("signature").substring("sig=".length())));
            } catch (GeneralSecurityException invalid) {
                return false;
            }
        }

        /** Of a byte sequence of RFC 9651. */
        private static byte[] bytesOf(String text) {
            return Base64.getDecoder().decode(text.substring(1, text.length() - 1));
        }

        boolean fits() {
            Map<String, String> signed = transcript();
            boolean isHashed = body.length > 0 || method.equals("POST") || headers.containsKey("content-digest");
            String content = isHashed ? Syntax.encodeBase64url(Syntax.sha256(body)) : "-";
            return method.equals(signed.get("method")) && target.equals(signed.get("target"))
                && header("host").equals(signed.get("authority"))
                && ("upload".equals(signed.get("route-id")) ? "-" : content).equals(signed.get("content-sha256"));
        }
    }

    interface Answer {
        /** An answer without the version of the status line. */
        String to(Arrived request);
    }

    /** What happens to the second request of a connection, once. */
    record Fault(boolean isBeforeBody, boolean isReset, boolean isHanging, String answer) {}

    static final String OK = "200 OK\r\nContent-Length: 2\r\n\r\nok";

    final List<Arrived> all = new CopyOnWriteArrayList<>();
    volatile Answer answer = request -> OK;
    volatile Fault fault;
    /** Whether the client has closed the connection of a request that hangs. */
    volatile boolean hasGivenUp;
    private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));

    Upstream() throws IOException {
        start(() -> {
            while (true) {
                Socket connection = server.accept();
                start(() -> serve(connection));
            }
        });
    }

    private interface Work {
        void run() throws Exception;
    }

    private static void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception closed) {
                // The client or the test has ended.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    String origin() {
        return "http://127.0.0.1:" + server.getLocalPort();
    }

    Arrived last() {
        return all.get(all.size() - 1);
    }

    @Override
    public void close() throws IOException {
        server.close();
    }

    private void serve(Socket connection) throws Exception {
        try (connection; InputStream in = new BufferedInputStream(connection.getInputStream())) {
            for (int count = 1; ; count++) {
                String[] start = line(in).split(" ");
                Map<String, List<String>> headers = new HashMap<>();
                for (String line = line(in); !line.isEmpty(); line = line(in)) {
                    int colon = line.indexOf(':');
                    headers.computeIfAbsent(Syntax.lowerAscii(line.substring(0, colon)), name -> new ArrayList<>())
                        .add(line.substring(colon + 1).trim());
                }
                Fault now = count > 1 ? takeFault() : null;
                byte[] body = now != null && now.isBeforeBody ? new byte[0] : body(in, headers);
                Arrived arrived = new Arrived(start[0], start[1], headers, body);
                all.add(arrived);
                if (now != null && now.answer == null) {
                    // Until the client gives up.
                    if (now.isHanging && in.read() < 0) hasGivenUp = true;
                    if (now.isReset) connection.setSoLinger(true, 0);
                    return;
                }
                String answered = now != null ? now.answer : arrived.fits() ? answer.to(arrived)
                    : "401 No\r\nX-Proofgate-Reason: invalid_request_proof\r\nContent-Length: 0\r\n\r\n";
                if (arrived.method.equals("HEAD")) answered = answered.substring(0, answered.indexOf("\r\n\r\n") + 4);
                connection.getOutputStream().write(("HTTP/1.1 " + answered).getBytes(StandardCharsets.ISO_8859_1));
            }
        }
    }

    private synchronized Fault takeFault() {
        Fault taken = fault;
        fault = null;
        return taken;
    }

    private static String line(InputStream in) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) throw new IOException("closed");
            if (c != '\r') line.write(c);
        }
        return line.toString(StandardCharsets.ISO_8859_1);
    }

    private static byte[] body(InputStream in, Map<String, List<String>> headers) throws IOException {
        if (!headers.containsKey("transfer-encoding"))
            return in.readNBytes(Integer.parseInt(headers.getOrDefault("content-length", List.of("0")).get(0)));
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        for (int size = Integer.parseInt(line(in), 16); ; size = Integer.parseInt(line(in), 16)) {
            body.write(in.readNBytes(size));
            line(in);
            if (size == 0) return body.toByteArray();
        }
    }
}
