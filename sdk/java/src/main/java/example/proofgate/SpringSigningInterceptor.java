package example.proofgate;

import java.io.IOException;
import java.net.URI;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.http.client.support.HttpRequestWrapper;
import org.springframework.web.client.RestClientResponseException;

/**
 * Signs the requests of Spring's {@code RestClient} and {@code RestTemplate}, as their last interceptor. It does not see what a
 * request factory repeats or redirects by itself, which would carry the same proof: switch both off there. Simpler, and with
 * redirects: no interceptor, but {@code new JdkClientHttpRequestFactory(new SigningHttpClient(signer))}.
 */
public final class SpringSigningInterceptor implements ClientHttpRequestInterceptor {
    private final Signer signer;

    /** Signs each request that Spring gives to the request factory. */
    public SpringSigningInterceptor(Signer signer) {
        this.signer = signer;
    }

    /** The verifier's denial, from what {@code RestClient} throws; empty when the answer is not one. */
    public static Optional<Denied> denialOf(RestClientResponseException error) {
        HttpHeaders headers = error.getResponseHeaders() == null ? new HttpHeaders() : error.getResponseHeaders();
        return Denied.of(
            error.getStatusCode().value(), headers::getFirst, error.getResponseBodyAsByteArray(), null);
    }

    /**
     * Signs and sends.
     *
     * @throws SigningException when the request was not sent because it cannot be signed
     */
    @Override
    public ClientHttpResponse intercept(HttpRequest request, byte[] body, ClientHttpRequestExecution execution)
        throws IOException {
        URI uri = ExactUri.of(request.getURI());
        Map<String, List<String>> given = new HashMap<>();
        request.getHeaders().forEach(given::put);
        Signer.Choice choice = signer.choose(request.getMethod().name(), uri.toString());
        ExactUri.requireHost(choice.url(), given);
        for (boolean isRepeated = false;; isRepeated = true) {
            HttpHeaders headers = new HttpHeaders();
            signer.withoutCredentials(given).forEach(headers::addAll);
            signer.sign(choice, given, BodyDigest.of(body)).forEach(headers::set);
            Instant sentAt = Instant.now();
            ClientHttpResponse response = execution.execute(new Signed(request, uri, headers), body);
            signer.clocks().check(response.getHeaders().getFirst("Date"), sentAt);
            boolean asks = signer.readAnswer(choice, response.getStatusCode().value(),
                response.getHeaders().getOrEmpty("DPoP-Nonce"), response.getHeaders().getOrEmpty("WWW-Authenticate"));
            if (!asks || isRepeated) return response;
            response.close();
        }
    }

    private static final class Signed extends HttpRequestWrapper {
        private final URI uri;
        private final HttpHeaders headers;

        Signed(HttpRequest request, URI uri, HttpHeaders headers) {
            super(request);
            this.uri = uri;
            this.headers = headers;
        }

        @Override
        public URI getURI() {
            return uri;
        }

        @Override
        public HttpHeaders getHeaders() {
            return headers;
        }
    }
}
