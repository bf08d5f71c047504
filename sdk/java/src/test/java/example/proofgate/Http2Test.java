package example.proofgate;

import static example.proofgate.Fixture.check;
import static example.proofgate.Fixture.enrolled;
import static example.proofgate.Fixture.same;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.Response;

/** Requests over HTTP/2 that the server refuses: each attempt has a proof of its own. */
final class Http2Test {
    // Frames of HTTP/2 (RFC 9113 section 6).
    private static final int HEADERS = 1;
    private static final int RESET = 3;
    private static final int SETTINGS = 4;
    private static final int GO_AWAY = 7;
    private static final byte REFUSED_STREAM = 7;
    private static final byte HPACK_STATUS_200 = (byte) 0x88;
    private static final String PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    /** Refuses the second request, and answers the others with 200. */
    private static final class Server implements AutoCloseable {
        final AtomicInteger requests = new AtomicInteger();
        private final ServerSocket socket = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        private final boolean isUpgraded;
        private final boolean goesAway;

        Server(boolean isUpgraded, boolean goesAway) throws IOException {
            this.isUpgraded = isUpgraded;
            this.goesAway = goesAway;
            daemon(() -> {
                while (true) {
                    Socket connection = socket.accept();
                    daemon(() -> serve(connection));
                }
            });
        }

        private interface Work {
            void run() throws IOException;
        }

        private static void daemon(Work work) {
            Thread thread = new Thread(() -> {
                try {
                    work.run();
                } catch (IOException closed) {
                    // The client or the test has ended.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        String origin() {
            return "http://127.0.0.1:" + socket.getLocalPort();
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }

        private void serve(Socket connection) throws IOException {
            try (connection) {
                DataInputStream in = new DataInputStream(connection.getInputStream());
                OutputStream out = connection.getOutputStream();
                if (isUpgraded) {
                    StringBuilder head = new StringBuilder();
                    while (head.indexOf("\r\n\r\n") < 0) head.append((char) in.readByte());
                    check(head.indexOf("h2c") > 0, "no offer of HTTP/2");
                    requests.incrementAndGet();
                    out.write("HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n".getBytes());
                }
                same(PREFACE, new String(in.readNBytes(PREFACE.length()), StandardCharsets.US_ASCII));
                frame(out, SETTINGS, 0, 0);
                if (isUpgraded) frame(out, HEADERS, 5, 1, HPACK_STATUS_200);
                while (true) {
                    int length = in.readUnsignedByte() << 16 | in.readUnsignedShort();
                    int kind = in.readUnsignedByte();
                    int flags = in.readUnsignedByte();
                    int stream = in.readInt();
                    in.readNBytes(length);
                    if (kind == SETTINGS && flags == 0) frame(out, SETTINGS, 1, 0);
                    if (kind != HEADERS) continue;
                    if (requests.incrementAndGet() != 2) {
                        frame(out, HEADERS, 5, stream, HPACK_STATUS_200);
                    } else if (goesAway) {
                        frame(out, GO_AWAY, 0, 0, new byte[8]);
                        return;
                    } else {
                        frame(out, RESET, 0, stream, (byte) 0, (byte) 0, (byte) 0, REFUSED_STREAM);
                    }
                }
            }
        }

        private static void frame(OutputStream out, int kind, int flags, int stream, byte... payload) throws IOException {
            ByteBuffer frame = ByteBuffer.allocate(9 + payload.length);
            frame.putInt(payload.length << 8 | kind).put((byte) flags).putInt(stream).put(payload);
            out.write(frame.array());
        }
    }

    private interface Sender {
        int send(String url) throws Exception;
    }

    private static Sender okHttp(Signer signer) {
        OkHttpClient client = new OkHttpClient.Builder()
            .protocols(List.of(Protocol.H2_PRIOR_KNOWLEDGE))
            .addNetworkInterceptor(new OkHttpSigningInterceptor(signer))
            .build();
        return url -> {
            try (Response response = client.newCall(new Request.Builder().url(url).build()).execute()) {
                return response.code();
            }
        };
    }

    private static Sender jdk(Signer signer) {
        HttpClient client = new SigningHttpClient(signer);
        return url -> client.send(HttpRequest.newBuilder(URI.create(url)).build(), BodyHandlers.discarding()).statusCode();
    }

    void signsEachAttemptOfOkHttpAnew() throws Exception {
        for (boolean goesAway : new boolean[] {false, true}) {
            try (Server server = new Server(false, goesAway)) {
                AtomicInteger proofs = new AtomicInteger();
                Sender sender = okHttp(counting(server, proofs));
                for (int i = 0; i < 3; i++) same(200, sender.send(server.origin() + "/v1/a"));
                same(4, server.requests.get());
                // And the passport.
                same(5, proofs.get());
            }
        }
    }

    void sendsNoProofOfTheJdkTwice() throws Exception {
        for (boolean goesAway : new boolean[] {false, true}) {
            try (Server server = new Server(true, goesAway)) {
                AtomicInteger proofs = new AtomicInteger();
                Sender sender = jdk(counting(server, proofs));
                same(200, sender.send(server.origin() + "/v1/a"));
                try {
                    sender.send(server.origin() + "/v1/a");
                } catch (IOException refused) {
                    // JDK 17 gives a refused stream to the caller.
                }
                same(200, sender.send(server.origin() + "/v1/a"));
                same(proofs.get() - 1, server.requests.get());
            }
        }
    }

    private static Signer counting(Server server, AtomicInteger proofs) throws Exception {
        Signer signer = Signer.open(enrolled(server.origin()));
        signer.newJti = () -> "jti-of-22-characters-" + proofs.incrementAndGet();
        return signer;
    }
}
