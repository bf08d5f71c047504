package example.proofgate;

import java.io.ByteArrayInputStream;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okio.BufferedSink;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.SimpleClientHttpRequestFactory;
import org.springframework.web.client.RestClient;

/** Sends requests with DPoP through a proxy, and prints status or code of each; for test/caller/sdk/dpop.extended.test.ts. */
final class DpopCalls {
    private static final byte[] BODY = "{\"item\":\"book\"}".getBytes(StandardCharsets.UTF_8);

    private interface Send {
        int send(String method, String url, byte[] body, boolean isStream) throws Exception;
    }

    /** Arguments: client, key file, port of the proxy, URL to read, URL to write, then GET, POST or STREAM. */
    public static void main(String[] args) throws Exception {
        Signer signer = Signer.options(Path.of(args[1])).proof(Proof.DPOP).open();
        InetSocketAddress proxy = new InetSocketAddress("127.0.0.1", Integer.parseInt(args[2]));
        Send client = switch (args[0]) {
            case "java.net.http" -> jdk(signer, proxy);
            case "OkHttp" -> okHttp(signer, proxy);
            default -> spring(signer, proxy);
        };
        for (String word : Arrays.copyOfRange(args, 5, args.length)) {
            boolean reads = word.equals("GET");
            try {
                System.out.println(
                    client.send(reads ? "GET" : "POST", args[reads ? 3 : 4], reads ? null : BODY, word.equals("STREAM")));
            } catch (SigningException error) {
                System.out.println(error.code());
            }
        }
        // Clients keep threads.
        System.exit(0);
    }

    private static Send jdk(Signer signer, InetSocketAddress proxy) {
        HttpClient base = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).proxy(ProxySelector.of(proxy)).build();
        HttpClient client = new SigningHttpClient(signer, base, Follow.SAME_ORIGIN);
        return (method, url, body, isStream) -> {
            HttpRequest.BodyPublisher publisher = body == null ? BodyPublishers.noBody()
                : isStream ? BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(body))
                : BodyPublishers.ofByteArray(body);
            HttpRequest request =
                HttpRequest.newBuilder(URI.create(url)).header("X-Tenant", "acme").method(method, publisher).build();
            return client.send(request, BodyHandlers.discarding()).statusCode();
        };
    }

    private static Send okHttp(Signer signer, InetSocketAddress proxy) {
        OkHttpSigningInterceptor signing = new OkHttpSigningInterceptor(signer);
        OkHttpClient client = new OkHttpClient.Builder().proxy(new Proxy(Proxy.Type.HTTP, proxy))
            .addNetworkInterceptor(signing).authenticator(signing).build();
        return (method, url, body, isStream) -> {
            RequestBody sent = body == null ? null : isStream ? oneShot(body) : RequestBody.create(body);
            Request request = new Request.Builder().url(url).header("X-Tenant", "acme").method(method, sent).build();
            try (okhttp3.Response response = client.newCall(request).execute()) {
                return response.code();
            }
        };
    }

    private static RequestBody oneShot(byte[] body) {
        return new RequestBody() {
            @Override
            public okhttp3.MediaType contentType() {
                return null;
            }

            @Override
            public boolean isOneShot() {
                return true;
            }

            @Override
            public void writeTo(BufferedSink sink) throws java.io.IOException {
                sink.write(body);
            }
        };
    }

    /** Spring keeps every body for its interceptors, so that a stream can be sent again. */
    private static Send spring(Signer signer, InetSocketAddress proxy) {
        SimpleClientHttpRequestFactory factory = new SimpleClientHttpRequestFactory();
        factory.setProxy(new Proxy(Proxy.Type.HTTP, proxy));
        RestClient client = RestClient.builder().requestFactory(factory)
            .requestInterceptor(new SpringSigningInterceptor(signer)).build();
        return (method, url, body, isStream) -> {
            RestClient.RequestBodySpec request =
                client.method(HttpMethod.valueOf(method)).uri(URI.create(url)).header("X-Tenant", "acme");
            if (body != null) request.body(body);
            return request.exchange((sent, response) -> response.getStatusCode().value());
        };
    }
}
