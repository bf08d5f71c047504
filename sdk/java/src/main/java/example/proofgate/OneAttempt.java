package example.proofgate;

import java.net.http.HttpRequest;
import java.nio.ByteBuffer;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A body that can be sent once. java.net.http repeats a GET when the server closes a reused connection, with the same
 * headers; it has no switch for one client, but each attempt first asks for the length of the body.
 */
final class OneAttempt implements HttpRequest.BodyPublisher {
    private final HttpRequest.BodyPublisher given;
    private final AtomicInteger attempts = new AtomicInteger();

    OneAttempt(HttpRequest.BodyPublisher given) {
        this.given = given;
    }

    /** Whether java.net.http wanted to send the same proof again. */
    boolean wasRepeated() {
        return attempts.get() > 1;
    }

    @Override
    public long contentLength() {
        if (attempts.incrementAndGet() > 1) throw new IllegalStateException("a repetition must be signed anew");
        return given.contentLength();
    }

    @Override
    public void subscribe(Flow.Subscriber<? super ByteBuffer> subscriber) {
        given.subscribe(subscriber);
    }
}
