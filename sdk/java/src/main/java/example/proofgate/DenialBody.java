package example.proofgate;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.function.Consumer;

/** Keeps the body of a denial, and then gives it to the subscriber of the caller. */
final class DenialBody<T> implements BodySubscriber<T> {
    private final CompletableFuture<byte[]> kept = new CompletableFuture<>();
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final CompletionStage<T> body;
    private Flow.Subscription subscription;

    DenialBody(BodySubscriber<T> callers, Consumer<byte[]> keep) {
        body = kept.thenCompose(all -> {
            keep.accept(all);
            callers.onSubscribe(new Flow.Subscription() {
                private boolean isDone;

                @Override
                public void request(long count) {
                    if (isDone) return;
                    isDone = true;
                    if (all.length > 0) callers.onNext(List.of(ByteBuffer.wrap(all)));
                    callers.onComplete();
                }

                @Override
                public void cancel() {
                    isDone = true;
                }
            });
            return callers.getBody();
        });
    }

    @Override
    public CompletionStage<T> getBody() {
        return body;
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        subscription = given;
        given.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        for (ByteBuffer buffer : buffers) {
            byte[] copied = new byte[buffer.remaining()];
            buffer.get(copied);
            bytes.writeBytes(copied);
        }
        if (bytes.size() <= Denied.MAX_PROBLEM_BYTES) return;
        subscription.cancel();
        kept.completeExceptionally(new IOException("the verifier's denial is longer than 64 KiB"));
    }

    @Override
    public void onError(Throwable error) {
        kept.completeExceptionally(error);
    }

    @Override
    public void onComplete() {
        kept.complete(bytes.toByteArray());
    }
}
