package example.proofgate;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The proof format dpop (RFC 9449), and the newest nonce of each server for it (docs/design/protocol.md "DPoP"). */
final class Dpop {
    private static final int MAX_PROOF_LENGTH = 4096;
    private static final int MAX_ORIGINS = 256;
    /** RFC 9449 section 8.1. */
    private static final Pattern NONCE = Pattern.compile("[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,256}");
    private static final Pattern TOKEN = Pattern.compile("DPoP +(\\S+)", Pattern.CASE_INSENSITIVE);
    private static final Pattern CHALLENGE = Pattern.compile("(?:^|,)\\s*DPoP\\s", Pattern.CASE_INSENSITIVE);
    private static final Pattern ASKS =
        Pattern.compile("[\\s,]error=\"?use_dpop_nonce\"?(?:[\\s,]|\\z)", Pattern.CASE_INSENSITIVE);

    /** The origin whose nonce is the oldest comes first. */
    private final Map<String, String> nonces = new LinkedHashMap<>();

    /** Returns the headers to set; those given are without an earlier proof. */
    static Map<String, String> credentials(
        Signer.Choice choice, Passport passport, Map<String, List<String>> given, List<String> extra, long now, String jti,
        String nonce) throws SigningException {
        if (choice.route().hasOwnAuthorization() || !linesOf(given, "dpop").isEmpty()) {
            throw new SigningException("header_reserved", "a DPoP proof and its passport travel in DPoP and Authorization, "
                + "which the application or passport_header uses");
        }
        if (!extra.isEmpty()) throw new SigningException("header_invalid", "a DPoP proof cannot cover headers");
        if (nonce != null && !NONCE.matcher(nonce).matches())
            throw new SigningException("header_invalid", "the DPoP nonce is not one of RFC 9449");
        SigningKey key = choice.loaded().identity().key();
        RequestUrl url = choice.url();
        String header =
            "{\"typ\":\"dpop+jwt\",\"alg\":" + Passport.quoted(key.algorithm()) + ",\"jwk\":" + key.publicJwk() + "}";
        String claims = "{\"jti\":" + Passport.quoted(jti) + ",\"htm\":" + Passport.quoted(choice.method()) + ",\"htu\":"
            + Passport.quoted(url.origin() + url.target().split("\\?", 2)[0]) + ",\"iat\":" + now + ",\"ath\":"
            + Passport.quoted(passport.sha256()) + (nonce == null ? "" : ",\"nonce\":" + Passport.quoted(nonce)) + "}";
        String signingInput = Passport.encoded(header) + "." + Passport.encoded(claims);
        byte[] signature = key.sign(signingInput.getBytes(StandardCharsets.US_ASCII));
        String proof = signingInput + "." + Syntax.encodeBase64url(signature);
        if (proof.length() > MAX_PROOF_LENGTH)
            throw new SigningException("credentials_too_large", "the proof is longer than 4 KiB");
        Map<String, String> signed = new LinkedHashMap<>();
        signed.put("Authorization", "DPoP " + passport.jws());
        signed.put("DPoP", proof);
        return signed;
    }

    /** Leaves out passport and proof of an earlier signer, never another token of the application. */
    static Map<String, List<String>> withoutEarlier(Map<String, List<String>> headers) {
        List<String> tokens = linesOf(headers, "authorization");
        Matcher token = TOKEN.matcher(tokens.size() == 1 ? tokens.get(0).strip() : "");
        if (!token.matches() || Passport.parse(token.group(1)) == null) return headers;
        Map<String, List<String>> own = new TreeMap<>(headers);
        own.keySet().removeIf(name -> List.of("authorization", "dpop").contains(Syntax.lowerAscii(name)));
        return own;
    }

    synchronized String nonceOf(String origin) {
        return nonces.get(origin);
    }

    /** Keeps the nonce of an answer. Returns whether the server denied the request for want of it. */
    boolean learn(String origin, int status, List<String> given, List<String> challenges) {
        if (!isNonce(given)) return false;
        synchronized (this) {
            nonces.remove(origin);
            nonces.put(origin, given.get(0));
            if (nonces.size() > MAX_ORIGINS) nonces.remove(nonces.keySet().iterator().next());
        }
        return asks(status, given, challenges);
    }

    private static boolean isNonce(List<String> given) {
        return given.size() == 1 && NONCE.matcher(given.get(0)).matches();
    }

    /** Whether the server denied the request for want of the nonce that it gives. */
    static boolean asks(int status, List<String> given, List<String> challenges) {
        return status == 401 && isNonce(given)
            && challenges.stream().anyMatch(text -> CHALLENGE.matcher(text).find() && ASKS.matcher(text).find());
    }

    static SigningException nonceForGoneBody() {
        return new SigningException("body_not_replayable", "the server denied the request and asks for a DPoP nonce, which is "
            + "kept; this body can be sent only once: send the request again");
    }

    private static List<String> linesOf(Map<String, List<String>> headers, String lowerName) {
        return headers.entrySet().stream()
            .filter(header -> Syntax.lowerAscii(header.getKey()).equals(lowerName))
            .flatMap(header -> header.getValue().stream())
            .toList();
    }
}
