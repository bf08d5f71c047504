package example.proofgate;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Instant;
import java.util.Optional;
import javax.net.ssl.SSLSession;

/**
 * An answer whose request has no credentials.
 *
 * @param problem body of a denial, otherwise empty
 * @param sentAt when the request was sent
 */
record SignedResponse<T>(HttpResponse<T> answer, HttpRequest request, byte[] problem, Instant sentAt)
    implements HttpResponse<T> {

    @Override
    public int statusCode() {
        return answer.statusCode();
    }

    @Override
    public Optional<HttpResponse<T>> previousResponse() {
        return Optional.empty();
    }

    @Override
    public HttpHeaders headers() {
        return answer.headers();
    }

    @Override
    public T body() {
        return answer.body();
    }

    @Override
    public Optional<SSLSession> sslSession() {
        return answer.sslSession();
    }

    @Override
    public URI uri() {
        return answer.uri();
    }

    @Override
    public HttpClient.Version version() {
        return answer.version();
    }

    @Override
    public String toString() {
        return answer.toString();
    }
}
