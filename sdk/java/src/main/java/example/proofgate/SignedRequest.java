package example.proofgate;

import java.util.Map;
import java.util.function.BiConsumer;

/** The credentials of one request. Send them with it once, and sign a repetition anew. */
public final class SignedRequest {
    private final Map<String, String> credentials;
    private final String url;
    private final String routeId;
    private final String jti;

    SignedRequest(Map<String, String> credentials, String url, String routeId, String jti) {
        this.credentials = credentials;
        this.url = url;
        this.routeId = routeId;
        this.jti = jti;
    }

    /**
     * Gives name and value of each header to set, in place of those that the request has:
     * {@code signed.forEach(connection::setRequestProperty)}. The values are secret.
     */
    public void forEach(BiConsumer<String, String> setHeader) {
        credentials.forEach(setHeader);
    }

    /** The URL to send, byte for byte. */
    public String url() {
        return url;
    }

    /** The route whose profile fits. */
    public String routeId() {
        return routeId;
    }

    /** The identifier of the proof, which audit events have. */
    public String jti() {
        return jti;
    }

    /** Without credentials. */
    @Override
    public String toString() {
        return "SignedRequest[" + routeId + " " + jti + "]";
    }
}
