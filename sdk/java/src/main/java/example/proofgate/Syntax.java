package example.proofgate;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.Optional;
import java.util.regex.Pattern;

/** Syntax of the small values that passports, transcripts and profiles share (docs/design/protocol.md). */
final class Syntax {
    private static final Pattern METHOD = Pattern.compile("[!#$%&'*+\\-.^_`|~0-9A-Za-z]{1,32}");
    private static final Pattern HEADER_NAME = Pattern.compile("[a-z0-9][a-z0-9_-]{0,127}");
    private static final Pattern OF_32_BYTES = Pattern.compile("[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]");
    private static final Pattern SPIFFE_ID =
        Pattern.compile("spiffe://[a-z0-9._-]{1,255}(?:/(?!\\.\\.?(?:/|\\z))[A-Za-z0-9._-]++)++");

    private Syntax() {}

    static boolean isVisible(String value, int maxLength) {
        return !value.isEmpty() && value.length() <= maxLength && value.chars().allMatch(c -> 0x21 <= c && c <= 0x7e);
    }

    static boolean isIdentifier(String value) {
        return isVisible(value, 512);
    }

    static boolean isKeyId(String value) {
        return isVisible(value, 128);
    }

    static boolean isMethod(String value) {
        return METHOD.matcher(value).matches();
    }

    static boolean isKeyBinding(String value) {
        return value.equals("software") || value.equals("attested_workload");
    }

    static boolean isBase64urlOf32Bytes(String value) {
        return OF_32_BYTES.matcher(value).matches();
    }

    /** Accepts a SPIFFE ID in its one spelling; other subjects are compared as they are. */
    static boolean isSubject(String value) {
        boolean isSpiffe = lowerAscii(value).startsWith("spiffe:");
        return isIdentifier(value) && (!isSpiffe || SPIFFE_ID.matcher(value).matches());
    }

    static boolean isSignableHeaderName(String name, boolean hasOwnAuthorization) {
        return HEADER_NAME.matcher(name).matches() && (hasOwnAuthorization || !name.equals("authorization"))
            && !name.startsWith("x-proofgate-");
    }

    /** Leaves characters beyond ASCII alone: Unicode's mapping would fold the Kelvin sign to "k". */
    static String lowerAscii(String text) {
        StringBuilder lower = new StringBuilder(text.length());
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            lower.append('A' <= c && c <= 'Z' ? (char) (c + 32) : c);
        }
        return lower.toString();
    }

    static String encodeBase64url(byte[] data) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(data);
    }

    /** Accepts the canonical encoding alone. */
    static Optional<byte[]> decodeBase64url(String text) {
        try {
            byte[] data = Base64.getUrlDecoder().decode(text);
            return encodeBase64url(data).equals(text) ? Optional.of(data) : Optional.empty();
        } catch (IllegalArgumentException notBase64) {
            return Optional.empty();
        }
    }

    static Optional<String> decodeUtf8(byte[] data) {
        try {
            return Optional.of(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(data)).toString());
        } catch (CharacterCodingException notUtf8) {
            return Optional.empty();
        }
    }

    static byte[] sha256(byte[] data) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(data);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible); // Every JDK has it.
        }
    }

    static String sha256Base64url(String text) {
        return encodeBase64url(sha256(text.getBytes(StandardCharsets.US_ASCII)));
    }
}
