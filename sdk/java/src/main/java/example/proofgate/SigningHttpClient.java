package example.proofgate;

import java.io.IOException;
import java.net.Authenticator;
import java.net.CookieHandler;
import java.net.ProxySelector;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;

/**
 * Signs every request of {@code java.net.http} and sends it. It signs a request anew that the JDK would repeat, and that of
 * a redirect. Where an {@link HttpClient} is expected, such as in Spring's {@code JdkClientHttpRequestFactory}, this is one.
 */
public final class SigningHttpClient extends HttpClient {
    private final Signer signer;
    private final HttpClient base;
    private final Follow follow;

    /** Sends with a new client, and follows redirects to the origin that redirects. */
    public SigningHttpClient(Signer signer) {
        this(signer, HttpClient.newHttpClient(), Follow.SAME_ORIGIN);
    }

    /**
     * Sends with a client that neither follows redirects nor has an {@link Authenticator}: both would send a proof again.
     *
     * @throws IllegalArgumentException for another client
     */
    public SigningHttpClient(Signer signer, HttpClient base, Follow follow) {
        if (base.followRedirects() != Redirect.NEVER)
            throw new IllegalArgumentException("build the client with Redirect.NEVER: redirects are followed as Follow says");
        if (base.authenticator().isPresent())
            throw new IllegalArgumentException("build the client without Authenticator: it repeats requests with their proof");
        this.signer = signer;
        this.base = base;
        this.follow = follow;
    }

    /** The verifier's denial; empty when the answer is not one. The body may be of any type. */
    public static Optional<Denied> denialOf(HttpResponse<?> response) {
        SignedResponse<?> signed = response instanceof SignedResponse<?> known ? known : null;
        return Denied.of(
            response.statusCode(),
            name -> response.headers().firstValue(name).orElse(null),
            signed == null ? new byte[0] : signed.problem(),
            signed == null ? null : signed.sentAt());
    }

    /**
     * Signs and sends.
     *
     * @throws SigningException when the request, or that of a redirect, was not sent because it cannot be signed
     */
    @Override
    public <T> HttpResponse<T> send(HttpRequest request, HttpResponse.BodyHandler<T> handler)
        throws IOException, InterruptedException {
        CompletableFuture<HttpResponse<T>> answer = sendAsync(request, handler);
        try {
            return answer.get();
        } catch (InterruptedException interrupted) {
            answer.cancel(true);
            throw interrupted;
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof IOException error) throw error;
            if (failed.getCause() instanceof RuntimeException error) throw error;
            throw new IOException(failed.getCause());
        }
    }

    /** Signs and sends; the future fails with what {@link #send} throws. */
    @Override
    public <T> CompletableFuture<HttpResponse<T>> sendAsync(HttpRequest request, HttpResponse.BodyHandler<T> handler) {
        return new SignedExchange<>(signer, base, follow, request, handler).start();
    }

    /** Signs and sends. Pushed answers are refused: their requests are not signed. */
    @Override
    public <T> CompletableFuture<HttpResponse<T>> sendAsync(
        HttpRequest request, HttpResponse.BodyHandler<T> handler, HttpResponse.PushPromiseHandler<T> refused) {
        return sendAsync(request, handler);
    }

    /** Not signed: give its handshake the headers of {@link Signer#sign}, for GET and the {@code https} URL. */
    @Override
    public WebSocket.Builder newWebSocketBuilder() {
        return base.newWebSocketBuilder();
    }

    @Override
    public Optional<CookieHandler> cookieHandler() {
        return base.cookieHandler();
    }

    @Override
    public Optional<Duration> connectTimeout() {
        return base.connectTimeout();
    }

    @Override
    public Redirect followRedirects() {
        return follow == Follow.NEVER ? Redirect.NEVER : Redirect.NORMAL;
    }

    @Override
    public Optional<ProxySelector> proxy() {
        return base.proxy();
    }

    @Override
    public SSLContext sslContext() {
        return base.sslContext();
    }

    @Override
    public SSLParameters sslParameters() {
        return base.sslParameters();
    }

    @Override
    public Optional<Authenticator> authenticator() {
        return Optional.empty();
    }

    @Override
    public Version version() {
        return base.version();
    }

    @Override
    public Optional<Executor> executor() {
        return base.executor();
    }
}
