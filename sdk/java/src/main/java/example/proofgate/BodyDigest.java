package example.proofgate;

/** SHA-256 and length of a body, which is sent as it is. */
record BodyDigest(byte[] sha256, long length) {
    /** A body up to this length may be kept in memory, to be sent as it was hashed. */
    static final int MAX_KEPT_BYTES = 8 << 20;

    static final BodyDigest NONE = of(new byte[0]);

    /** @param body null for none */
    static BodyDigest of(byte[] body) {
        byte[] bytes = body == null ? new byte[0] : body;
        return new BodyDigest(Syntax.sha256(bytes), bytes.length);
    }

    static SigningException notReplayable(String why) {
        return new SigningException("body_not_replayable", why + ", and its hash must be known before it is sent: use "
            + "bytes, a string or a file, or declare body: unbound at the route");
    }
}
