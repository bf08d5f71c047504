package example.proofgate;

import java.io.IOException;

/** Says why a request, or that of a redirect, was not signed and not sent. Its message has no secrets. */
public final class SigningException extends IOException {
    private static final long serialVersionUID = 1L;

    private final String code;

    SigningException(String code, String message) {
        super(code + ": " + message);
        this.code = code;
    }

    /** The error's code: stable, and the same as in the command line, such as {@code profile_not_found}. */
    public String code() {
        return code;
    }
}
