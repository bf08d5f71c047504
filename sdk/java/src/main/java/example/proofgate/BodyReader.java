package example.proofgate;

import java.io.ByteArrayOutputStream;
import java.net.http.HttpRequest;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;

/** Reads the body of a request of java.net.http in order to hash it. */
final class BodyReader implements Flow.Subscriber<ByteBuffer> {
    /** A hashed body, and the publisher that sends it. */
    record Body(BodyDigest digest, HttpRequest.BodyPublisher publisher) {}

    private final HttpRequest.BodyPublisher given;
    private final CompletableFuture<Body> done = new CompletableFuture<>();
    private final MessageDigest hash;
    /** Null for a long body, which is sent by a second subscription. */
    private final ByteArrayOutputStream kept;
    private long length;
    private Flow.Subscription subscription;

    private BodyReader(HttpRequest.BodyPublisher given) {
        this.given = given;
        this.kept = given.contentLength() > BodyDigest.MAX_KEPT_BYTES ? null : new ByteArrayOutputStream();
        try {
            this.hash = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible); // Every JDK has it.
        }
    }

    /** Keeps a body in memory, up to 8 MiB. A longer one whose length is known, such as a file's, is read twice. */
    static CompletableFuture<Body> read(HttpRequest.BodyPublisher given) {
        BodyReader reader = new BodyReader(given);
        given.subscribe(reader);
        return reader.done;
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        subscription = given;
        given.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(ByteBuffer bytes) {
        length += bytes.remaining();
        if (kept != null && length > BodyDigest.MAX_KEPT_BYTES) {
            subscription.cancel();
            done.completeExceptionally(BodyDigest.notReplayable("the body is a stream of unknown length above 8 MiB"));
            return;
        }
        byte[] copied = new byte[bytes.remaining()];
        bytes.get(copied);
        hash.update(copied);
        if (kept != null) kept.writeBytes(copied);
    }

    @Override
    public void onError(Throwable error) {
        done.completeExceptionally(error);
    }

    @Override
    public void onComplete() {
        if (done.isDone()) return;
        BodyDigest digest = new BodyDigest(hash.digest(), length);
        done.complete(new Body(
            digest, kept == null ? given : HttpRequest.BodyPublishers.ofByteArray(kept.toByteArray())));
    }
}
