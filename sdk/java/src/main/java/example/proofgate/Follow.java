package example.proofgate;

/** Says to which origins a redirect may lead. Others fail with the code {@code origin_not_allowed}. */
public enum Follow {
    /** The caller gets the redirect as the answer. */
    NEVER,

    /** Only the origin that redirects. */
    SAME_ORIGIN,

    /**
     * Every origin that a profile of the key names, so that one of these APIs can have a request, with its body, sent
     * to another.
     */
    PROFILES;

    /** @throws SigningException {@code origin_not_allowed} */
    void check(boolean isSameOrigin) throws SigningException {
        if (this == PROFILES || isSameOrigin) return;
        throw new SigningException("origin_not_allowed",
            "the redirect leads to another origin: Follow.PROFILES allows those of the key's profiles");
    }
}
