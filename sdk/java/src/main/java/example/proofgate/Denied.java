package example.proofgate;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;

/** The verifier's answer to a request that did not reach the API behind it. */
public final class Denied extends RuntimeException {
    private static final long serialVersionUID = 1L;

    static final int MAX_PROBLEM_BYTES = 64 << 10;

    /** 429: a 503 that comes through an Envoy which asks over HTTP (docs/design/protocol.md). */
    private static final Set<Integer> STATUSES = Set.of(401, 403, 429, 503);
    private static final Pattern REASON = Pattern.compile("[a-z_]{1,64}");
    private static final Pattern SECONDS = Pattern.compile("[0-9]{1,6}");
    /** Each request is signed anew, so the client did not send this proof twice. */
    private static final String REPEATED = "; something on the way repeated this request, and an earlier copy may have "
        + "been executed: ask the API before you send it again";

    private final int status;
    private final String reason;
    private final String detail;
    private final String decisionId;
    private final String routeId;
    private final Duration retryAfter;
    private final Duration clockAhead;

    private Denied(int status, String reason, Map<?, ?> problem, Duration retryAfter, Duration clockAhead) {
        super(text(status, reason, visible(problem.get("detail")), clockAhead));
        this.status = status;
        this.reason = reason;
        this.detail = visible(problem.get("detail"));
        this.decisionId = visible(problem.get("decision_id"));
        this.routeId = visible(problem.get("route_id"));
        this.retryAfter = retryAfter;
        this.clockAhead = clockAhead;
    }

    private static String text(int status, String reason, String detail, Duration clockAhead) {
        return status + " " + reason + (detail == null ? "" : "/" + detail)
            + (reason.equals("jti_replay") ? REPEATED : "")
            + (clockAhead.isZero() ? "" : "; " + Clocks.text(clockAhead));
    }

    static boolean isDenial(int status, String reason) {
        return reason != null && STATUSES.contains(status) && REASON.matcher(reason).matches();
    }

    /**
     * Reads the verifier's denial from an answer of any HTTP client; empty when the answer is not one.
     *
     * @param header gives the value of a header by its name; null without it
     * @param body of the answer, or its beginning
     * @param sentAt when the request was sent; null when unknown
     */
    public static Optional<Denied> of(int status, UnaryOperator<String> header, byte[] body, Instant sentAt) {
        String reason = header.apply("X-Proofgate-Reason");
        if (!isDenial(status, reason)) return Optional.empty();
        String retryAfter = header.apply("Retry-After");
        boolean hasSeconds = retryAfter != null && SECONDS.matcher(retryAfter).matches();
        boolean mayBeTheClock = reason.equals("invalid_request_proof");
        return Optional.of(new Denied(
            status,
            reason,
            problemOf(body),
            hasSeconds ? Duration.ofSeconds(Long.parseLong(retryAfter)) : null,
            mayBeTheClock ? Clocks.ahead(header.apply("Date"), sentAt) : Duration.ZERO));
    }

    private static Map<?, ?> problemOf(byte[] body) {
        try {
            return StrictJson.parse(body) instanceof Map<?, ?> problem ? problem : Map.of();
        } catch (StrictJson.Invalid notJson) {
            return Map.of();
        }
    }

    private static String visible(Object value) {
        return Syntax.isIdentifier(Passport.text(value)) ? Passport.text(value) : null;
    }

    /** The HTTP status: 401, 403, 429 or 503. */
    public int status() {
        return status;
    }

    /** Why, such as {@code invalid_request_proof}. */
    public String reason() {
        return reason;
    }

    /** More about the reason, such as {@code proof_expired}; null without it. */
    public String detail() {
        return detail;
    }

    /** Names the decision in the verifier's log; null without it. */
    public String decisionId() {
        return decisionId;
    }

    /** The route, when it is known, otherwise null. */
    public String routeId() {
        return routeId;
    }

    /** How long to wait at least before a repetition; null when the verifier does not say it. */
    public Duration retryAfter() {
        return retryAfter;
    }

    /** How far the local clock is ahead of the server's, negative when it is behind; zero where it is not the matter. */
    public Duration clockAhead() {
        return clockAhead;
    }
}
