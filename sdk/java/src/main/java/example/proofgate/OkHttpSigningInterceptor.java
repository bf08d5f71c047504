package example.proofgate;

import java.io.IOException;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import okhttp3.Authenticator;
import okhttp3.HttpUrl;
import okhttp3.Interceptor;
import okhttp3.MediaType;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import okhttp3.Route;
import okio.Buffer;
import okio.BufferedSink;
import okio.HashingSink;
import okio.Okio;

/**
 * Signs every attempt of OkHttp 4 or later:
 * {@code new OkHttpClient.Builder().addNetworkInterceptor(new OkHttpSigningInterceptor(signer))}. OkHttp asks network
 * interceptors again when it repeats a request or follows a redirect, so that each gets a proof of its own. Add it as the
 * last one. With {@link Proof#DPOP} it is the {@code authenticator} too, which repeats a request for a nonce. OkHttp asks none for WebSockets: give those the headers of {@link Signer#sign}.
 */
public final class OkHttpSigningInterceptor implements Interceptor, Authenticator {
    private final Signer signer;
    private final Follow follow;

    /** Lets OkHttp follow redirects to the origin of the call. */
    public OkHttpSigningInterceptor(Signer signer) {
        this(signer, Follow.SAME_ORIGIN);
    }

    /**
     * Lets OkHttp follow these redirects.
     *
     * @throws IllegalArgumentException for {@link Follow#NEVER}, which is {@code followRedirects(false)} of OkHttp
     */
    public OkHttpSigningInterceptor(Signer signer, Follow follow) {
        if (follow == Follow.NEVER)
            throw new IllegalArgumentException("build the client with followRedirects(false) in place of Follow.NEVER");
        this.signer = signer;
        this.follow = follow;
    }

    /** The verifier's denial; empty when the answer is not one. The body can still be read afterwards. */
    public static Optional<Denied> denialOf(Response response) throws IOException {
        if (!Denied.isDenial(response.code(), response.header("X-Proofgate-Reason"))) return Optional.empty();
        byte[] problem = response.peekBody(Denied.MAX_PROBLEM_BYTES).bytes();
        return Denied.of(response.code(), response::header, problem, sentAt(response));
    }

    /**
     * Signs and sends.
     *
     * @throws SigningException when the request, or that of a redirect, was not sent because it cannot be signed
     */
    @Override
    public Response intercept(Chain chain) throws IOException {
        if (chain.connection() == null)
            throw new IOException("OkHttpSigningInterceptor must be added with addNetworkInterceptor, to sign every attempt");
        Request request = chain.request();
        requireFollowed(chain.call().request().url(), request.url());
        Signer.Choice choice = signer.choose(request.method(), urlOf(request.url()));
        ExactUri.requireHost(choice.url(), request.headers().toMultimap());
        Request.Builder copy = request.newBuilder();
        BodyDigest digest = BodyDigest.NONE;
        if (signer.coversBody(choice) && request.body() != null) {
            RequestBody body = replayable(request.body());
            digest = digestOf(body);
            copy.method(request.method(), body);
        }
        Map<String, List<String>> own = signer.withoutCredentials(request.headers().toMultimap());
        for (String name : request.headers().names()) {
            if (!own.containsKey(Syntax.lowerAscii(name))) copy.removeHeader(name);
        }
        signer.sign(choice, own, digest).forEach(copy::header);
        Response response = chain.proceed(copy.build());
        signer.clocks().check(response.header("Date"), sentAt(response));
        signer.readAnswer(
            choice, response.code(), response.headers("DPoP-Nonce"), response.headers("WWW-Authenticate"));
        // Without credentials.
        return response.newBuilder().request(request).build();
    }

    /**
     * Repeats a request once when the server asks for a DPoP nonce: {@code authenticator(interceptor)}.
     *
     * @throws SigningException when the body can be sent only once
     */
    @Override
    public Request authenticate(Route route, Response response) throws IOException {
        Request request = response.request();
        Response earlier = response.priorResponse();
        if ((earlier != null && asksForNonce(earlier)) || !asksForNonce(response)) return null;
        if (request.body() != null && request.body().isOneShot()) throw Dpop.nonceForGoneBody();
        return request;
    }

    /** Of an answer whose nonce {@link #intercept} has kept. */
    private boolean asksForNonce(Response response) {
        return signer.asksForNonce(
            response.code(), response.headers("DPoP-Nonce"), response.headers("WWW-Authenticate"));
    }

    /** A redirect of SAME_ORIGIN never leaves the origin of the call. */
    private void requireFollowed(HttpUrl called, HttpUrl now) throws SigningException {
        boolean isSameOrigin = called.scheme().equals(now.scheme()) && called.host().equals(now.host())
            && called.port() == now.port();
        follow.check(isSameOrigin);
    }

    /** The URL with the bytes that OkHttp sends. */
    private static String urlOf(HttpUrl url) {
        String user = url.username().isEmpty() && url.password().isEmpty() ? "" : "user@";
        String host = url.host().contains(":") ? "[" + url.host() + "]" : url.host();
        String query = url.encodedQuery() == null ? "" : "?" + url.encodedQuery();
        return url.scheme() + "://" + user + host + ":" + url.port() + url.encodedPath() + query;
    }

    private static Instant sentAt(Response response) {
        return Instant.ofEpochMilli(response.sentRequestAtMillis());
    }

    /** Keeps in memory a body that can be written once. */
    private static RequestBody replayable(RequestBody given) throws IOException {
        if (given.isDuplex()) throw BodyDigest.notReplayable("the body is a stream that is sent while the answer arrives");
        if (!given.isOneShot()) return given;
        Buffer bytes = new Buffer();
        BufferedSink limited = Okio.buffer(new LimitedSink(bytes));
        given.writeTo(limited);
        limited.flush();
        return new KeptBody(given.contentType(), bytes.readByteArray());
    }

    private static BodyDigest digestOf(RequestBody body) throws IOException {
        CountingSink counting = new CountingSink(Okio.blackhole());
        HashingSink hashing = HashingSink.sha256(counting);
        BufferedSink sink = Okio.buffer(hashing);
        body.writeTo(sink);
        sink.flush();
        return new BodyDigest(hashing.hash().toByteArray(), counting.count);
    }

    private static final class CountingSink extends okio.ForwardingSink {
        private long count;

        CountingSink(okio.Sink to) {
            super(to);
        }

        @Override
        public void write(Buffer source, long byteCount) throws IOException {
            count += byteCount;
            super.write(source, byteCount);
        }
    }

    private static final class LimitedSink extends okio.ForwardingSink {
        private long count;

        LimitedSink(okio.Sink to) {
            super(to);
        }

        @Override
        public void write(Buffer source, long byteCount) throws IOException {
            count += byteCount;
            if (count > BodyDigest.MAX_KEPT_BYTES) throw BodyDigest.notReplayable("the body is a one-shot stream above 8 MiB");
            super.write(source, byteCount);
        }
    }

    private static final class KeptBody extends RequestBody {
        private final MediaType type;
        private final byte[] bytes;

        KeptBody(MediaType type, byte[] bytes) {
            this.type = type;
            this.bytes = bytes;
        }

        @Override
        public MediaType contentType() {
            return type;
        }

        @Override
        public long contentLength() {
            return bytes.length;
        }

        @Override
        public void writeTo(BufferedSink sink) throws IOException {
            sink.write(bytes);
        }
    }
}
