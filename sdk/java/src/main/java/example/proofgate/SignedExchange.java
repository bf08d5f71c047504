package example.proofgate;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.time.Instant;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** One request of java.net.http, with its repetitions and redirects, each signed anew. */
final class SignedExchange<T> {
    private static final Set<Integer> REDIRECTS = Set.of(301, 302, 303, 307, 308);
    /** As many as java.net.http makes by default. */
    private static final int MAX_ATTEMPTS = 5;
    private static final int MAX_REDIRECTS = 5;

    private final Signer signer;
    private final HttpClient base;
    private final Follow follow;
    private final HttpResponse.BodyHandler<T> handler;
    private final CompletableFuture<HttpResponse<T>> result = new CompletableFuture<>();
    /** Without credentials. */
    private volatile HttpRequest request;
    private volatile CompletableFuture<?> sending;
    private int attempts;
    /** Whether the request was repeated for a nonce. */
    private boolean isRepeated;
    private int redirects;

    SignedExchange(
        Signer signer, HttpClient base, Follow follow, HttpRequest request, HttpResponse.BodyHandler<T> handler) {
        this.signer = signer;
        this.base = base;
        this.follow = follow;
        this.request = request;
        this.handler = handler;
    }

    CompletableFuture<HttpResponse<T>> start() {
        result.whenComplete((response, error) -> {
            CompletableFuture<?> current = sending;
            if (result.isCancelled() && current != null) current.cancel(true);
        });
        attempt();
        return result;
    }

    private interface Step {
        void run() throws IOException;
    }

    /** A step that fails ends the exchange, also where nothing waits for its exception. */
    private void run(Step step) {
        try {
            step.run();
        } catch (IOException | RuntimeException | Error error) {
            result.completeExceptionally(error);
        }
    }

    private void attempt() {
        run(() -> {
            // Canceled meanwhile.
            if (result.isDone()) return;
            URI uri = ExactUri.of(request.uri());
            Signer.Choice choice = signer.choose(request.method(), uri.toString());
            ExactUri.requireHost(choice.url(), request.headers().map());
            BodyPublisher given = request.bodyPublisher().orElse(BodyPublishers.noBody());
            if (!signer.coversBody(choice) || given.contentLength() == 0) {
                send(uri, choice, BodyDigest.NONE, given);
                return;
            }
            BodyReader.read(given).whenComplete((body, error) -> run(() -> {
                if (error != null) {
                    result.completeExceptionally(error);
                    return;
                }
                request = withBody(body.publisher());
                send(uri, choice, body.digest(), body.publisher());
            }));
        });
    }

    private HttpRequest withBody(BodyPublisher publisher) {
        return HttpRequest.newBuilder(request, (name, value) -> true).method(request.method(), publisher).build();
    }

    private void send(URI uri, Signer.Choice choice, BodyDigest digest, BodyPublisher publisher) throws IOException {
        var own = signer.withoutCredentials(request.headers().map());
        SignedRequest signed = signer.sign(choice, own, digest);
        OneAttempt once = new OneAttempt(publisher);
        HttpRequest.Builder copy = HttpRequest.newBuilder(request, (name, value) -> own.containsKey(name))
            .uri(uri)
            .method(request.method(), once);
        signed.forEach(copy::setHeader);
        byte[][] problem = {new byte[0]};
        Instant sentAt = Instant.now();
        CompletableFuture<HttpResponse<T>> answer = base.sendAsync(copy.build(), info -> subscriber(choice, info, problem));
        sending = answer;
        if (result.isCancelled()) answer.cancel(true);
        answer.whenComplete((response, error) -> run(() -> {
            if (error == null) answered(choice, response, problem[0], sentAt);
            else if (once.wasRepeated() && ++attempts < MAX_ATTEMPTS) attempt();
            else if (once.wasRepeated()) throw new IOException(MAX_ATTEMPTS + " connections ended without an answer");
            else result.completeExceptionally(error instanceof CompletionException ? error.getCause() : error);
        }));
    }

    private HttpResponse.BodySubscriber<T> subscriber(
        Signer.Choice choice, HttpResponse.ResponseInfo info, byte[][] problem) {
        HttpHeaders headers = info.headers();
        signer.readAnswer(
            choice, info.statusCode(), headers.allValues("DPoP-Nonce"), headers.allValues("WWW-Authenticate"));
        if (asksForNonce(info.statusCode(), headers) && !isRepeated)
            return HttpResponse.BodySubscribers.replacing(null);
        if (isFollowed(info.statusCode(), info.headers().firstValue("Location").isPresent()))
            return HttpResponse.BodySubscribers.replacing(null);
        HttpResponse.BodySubscriber<T> callers = handler.apply(info);
        boolean isDenial = Denied.isDenial(info.statusCode(), info.headers().firstValue("X-Proofgate-Reason").orElse(null));
        return isDenial ? new DenialBody<>(callers, bytes -> problem[0] = bytes) : callers;
    }

    /** Of an answer whose nonce {@link #subscriber} has kept. */
    private boolean asksForNonce(int status, HttpHeaders headers) {
        return signer.asksForNonce(status, headers.allValues("DPoP-Nonce"), headers.allValues("WWW-Authenticate"));
    }

    private boolean isFollowed(int status, boolean hasLocation) {
        return follow != Follow.NEVER && hasLocation && REDIRECTS.contains(status) && redirects < MAX_REDIRECTS;
    }

    private void answered(Signer.Choice choice, HttpResponse<T> response, byte[] problem, Instant sentAt)
        throws SigningException {
        signer.clocks().check(response.headers().firstValue("Date").orElse(null), sentAt);
        if (asksForNonce(response.statusCode(), response.headers()) && !isRepeated) {
            // A stream's length is unknown, and its bytes may be gone.
            if (request.bodyPublisher().map(BodyPublisher::contentLength).orElse(0L) < 0) throw Dpop.nonceForGoneBody();
            isRepeated = true;
            attempt();
            return;
        }
        String location = response.headers().firstValue("Location").orElse(null);
        if (!isFollowed(response.statusCode(), location != null)) {
            result.complete(new SignedResponse<>(response, request, problem, sentAt));
            return;
        }
        redirects++;
        isRepeated = false;
        request = redirected(response.statusCode(), location);
        attempt();
    }

    private HttpRequest redirected(int status, String location) throws SigningException {
        URI from = ExactUri.of(request.uri());
        URI to;
        try {
            to = ExactUri.of(from.resolve(location));
        } catch (IllegalArgumentException notAUrl) {
            throw new SigningException("url_invalid", "the redirect leads to no URL");
        }
        boolean isSameOrigin =
            RequestUrl.parse(from.toString()).origin().equals(RequestUrl.parse(to.toString()).origin());
        follow.check(isSameOrigin);
        String method = request.method();
        boolean becomesGet = (status == 303 && !method.equals("HEAD")) || (status < 303 && method.equals("POST"));
        HttpRequest.Builder next = HttpRequest.newBuilder(request, (name, value) -> {
            String lower = Syntax.lowerAscii(name);
            boolean isOfOrigin = lower.equals("authorization") || lower.equals("cookie") || lower.equals("host");
            return (isSameOrigin || !isOfOrigin) && !(becomesGet && lower.startsWith("content-"));
        });
        return (becomesGet ? next.GET() : next).uri(to).build();
    }
}
