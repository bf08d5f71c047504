package example.proofgate;

/** A format in which a {@link Signer} signs. The route must accept it. */
public enum Proof {
    /** A passport and a transcript. */
    TRANSCRIPT_V1,
    /** RFC 9421, without a passport: for a key with a key ID, not for one with passports of a broker. */
    HTTP_MESSAGE_SIGNATURES,
    /** RFC 9449, with a passport. It covers neither query, headers nor body. */
    DPOP
}
