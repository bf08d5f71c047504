package example.proofgate;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** Compares the local clock with the {@code Date} of answers, and warns at most once a minute. */
final class Clocks {
    /** A site's default; Date and the network add one second. */
    private static final Duration SKEW = Duration.ofSeconds(5);
    private static final long WARN_NANOS = Duration.ofMinutes(1).toNanos();

    private final Consumer<String> warn;
    private final AtomicLong warnedAt = new AtomicLong(System.nanoTime() - WARN_NANOS);

    Clocks(Consumer<String> warn) {
        this.warn = warn;
    }

    /**
     * Returns how far the local clock is ahead of the server's, negative when it is behind; zero within the skew.
     *
     * @param date null without one
     * @param sentAt null when unknown: then only a clock that is behind is certain
     */
    static Duration ahead(String date, Instant sentAt) {
        Instant server;
        try {
            server = ZonedDateTime.parse(date == null ? "" : date, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
        } catch (DateTimeException notADate) {
            return Duration.ZERO;
        }
        // The server read its clock between sending and now, and dropped the fraction.
        if (sentAt != null) {
            Duration ahead = Duration.between(server, sentAt).minusSeconds(1);
            if (ahead.compareTo(SKEW) > 0) return ahead;
        }
        Duration behind = Duration.between(Instant.now(), server);
        return behind.compareTo(SKEW) > 0 ? behind.negated() : Duration.ZERO;
    }

    void check(String date, Instant sentAt) {
        Duration ahead = ahead(date, sentAt);
        long last = warnedAt.get();
        long now = System.nanoTime();
        if (ahead.isZero() || now - last < WARN_NANOS || !warnedAt.compareAndSet(last, now)) return;
        warn.accept(text(ahead));
    }

    static String text(Duration ahead) {
        String side = ahead.isNegative() ? "behind" : "ahead of";
        return "this clock is " + ahead.abs().plusMillis(500).toSeconds() + " s " + side
            + " the server's; verifiers accept 5 s by default: synchronize it";
    }
}
