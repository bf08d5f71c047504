package example.proofgate;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientResponseException;

/** One HTTP client with its adapter. */
interface Client {
    record Answer(int status, Optional<Denied> denied, String body, String shown) {}

    /** Sends header names and values in turn. @param body null for none */
    Answer send(String method, String url, byte[] body, String... headers) throws Exception;

    /** Longer than any test. */
    Duration PATIENCE = Duration.ofMinutes(5);

    static HttpClient plain() {
        return HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    }

    static Client jdk(Signer signer, Follow follow, Duration timeout) {
        HttpClient client = new SigningHttpClient(signer, plain(), follow);
        return (method, url, body, headers) -> {
            HttpRequest.BodyPublisher publisher =
                body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body);
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url)).timeout(timeout);
            if (body == null && method.equals("GET")) request.GET();
            else request.method(method, publisher);
            if (headers.length > 0) request.headers(headers);
            HttpResponse<String> response = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
            String shown = response + " " + response.request() + " " + response.request().headers();
            return new Answer(response.statusCode(), SigningHttpClient.denialOf(response), response.body(), shown);
        };
    }

    static Client okHttp(Signer signer, Follow follow, Duration timeout) {
        OkHttpClient client = new OkHttpClient.Builder()
            .addNetworkInterceptor(new OkHttpSigningInterceptor(signer, follow))
            .readTimeout(timeout.toMillis(), TimeUnit.MILLISECONDS)
            .build();
        return (method, url, body, headers) -> {
            Request.Builder request = new Request.Builder().url(url);
            boolean needsBody = body == null && method.equals("POST");
            request.method(method, body == null && !needsBody ? null : RequestBody.create(needsBody ? new byte[0] : body));
            for (int i = 0; i < headers.length; i += 2) request.addHeader(headers[i], headers[i + 1]);
            try (okhttp3.Response response = client.newCall(request.build()).execute()) {
                Optional<Denied> denied = OkHttpSigningInterceptor.denialOf(response);
                String shown = response + " " + response.networkResponse().request() + " " + response.request();
                return new Answer(response.code(), denied, response.body().string(), shown);
            }
        };
    }

    /** RestClient over the client of the JDK: what the README recommends. */
    static Client restClient(Signer signer, Follow follow, Duration timeout) {
        JdkClientHttpRequestFactory factory =
            new JdkClientHttpRequestFactory(new SigningHttpClient(signer, plain(), follow));
        factory.setReadTimeout(timeout);
        return ofSpring(RestClient.builder().requestFactory(factory).build());
    }

    static Client interceptor(Signer signer) {
        ClientHttpRequestFactory factory = new JdkClientHttpRequestFactory(plain());
        return ofSpring(RestClient.builder()
            .requestFactory(factory)
            .requestInterceptor(new SpringSigningInterceptor(signer))
            .build());
    }

    private static Client ofSpring(RestClient client) {
        return (method, url, body, headers) -> {
            RestClient.RequestBodySpec request = client.method(HttpMethod.valueOf(method)).uri(URI.create(url));
            for (int i = 0; i < headers.length; i += 2) request.header(headers[i], headers[i + 1]);
            if (body != null) request.body(body);
            try {
                var response = request.retrieve().toEntity(byte[].class);
                String text = response.getBody() == null ? "" : new String(response.getBody());
                return new Answer(response.getStatusCode().value(), Optional.empty(), text, response.toString());
            } catch (RestClientResponseException error) {
                return new Answer(error.getStatusCode().value(), SpringSigningInterceptor.denialOf(error),
                    error.getResponseBodyAsString(), error.toString());
            }
        };
    }

    /** All that sign redirects and repetitions anew. */
    static List<Client> all(Signer signer, Follow follow) {
        return all(signer, follow, PATIENCE);
    }

    static List<Client> all(Signer signer, Follow follow, Duration timeout) {
        return List.of(jdk(signer, follow, timeout), okHttp(signer, follow, timeout), restClient(signer, follow, timeout));
    }
}
