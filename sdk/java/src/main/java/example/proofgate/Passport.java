package example.proofgate;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;

/**
 * Identifies the caller. Its signature is not verified: only the verifier knows the issuer's key.
 *
 * @param jws secret
 */
record Passport(
    String jws,
    String sha256,
    String keyId,
    String issuer,
    String subject,
    String trustDomain,
    String audience,
    String keyBinding,
    String holderThumbprint,
    long issuedAt,
    long expiresAt) {

    /** Of a JWS, and of a header's value. */
    static final int MAX_CREDENTIAL_LENGTH = 8192;

    private static final String TYPE = "proofgate-passport+jwt";
    private static final int MAX_ATTRIBUTES = 32;
    private static final long MAX_SAFE_INTEGER = (1L << 53) - 1;
    private static final Set<String> CLAIMS = Set.of(
        "iss", "sub", "trust_domain", "aud", "iat", "exp", "key_binding", "cnf", "jti", "nbf", "provenance", "context");

    @Override
    public String toString() {
        return "Passport[redacted]";
    }

    /** Makes a compact JWS that the key itself signs. All texts are visible ASCII. */
    static String make(
        SigningKey key, Profiles.Coordinates caller, String audience, long issuedAt, long expiresAt, String jti) {
        String header = "{\"typ\":" + quoted(TYPE) + ",\"alg\":" + quoted(key.algorithm()) + ",\"kid\":"
            + quoted(caller.keyId()) + "}";
        String claims = "{\"iss\":" + quoted(caller.issuer()) + ",\"sub\":" + quoted(caller.subject())
            + ",\"trust_domain\":" + quoted(caller.trustDomain()) + ",\"aud\":" + quoted(audience)
            + ",\"iat\":" + issuedAt + ",\"exp\":" + expiresAt + ",\"key_binding\":" + quoted(caller.keyBinding())
            + ",\"cnf\":{\"jwk\":" + key.publicJwk() + "},\"jti\":" + quoted(jti) + "}";
        String signingInput = encoded(header) + "." + encoded(claims);
        byte[] signature = key.sign(signingInput.getBytes(StandardCharsets.US_ASCII));
        return signingInput + "." + Syntax.encodeBase64url(signature);
    }

    static String quoted(String visible) {
        return '"' + visible.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    static String encoded(String json) {
        return Syntax.encodeBase64url(json.getBytes(StandardCharsets.US_ASCII));
    }

    /** Returns null for anything that a verifier would call malformed. */
    static Passport parse(String jws) {
        String[] parts = jws.split("\\.", -1);
        if (jws.length() > MAX_CREDENTIAL_LENGTH || parts.length != 3) return null;
        Map<?, ?> header = objectOf(parts[0]);
        Map<?, ?> claims = objectOf(parts[1]);
        boolean isSigned = Syntax.decodeBase64url(parts[2]).filter(signature -> signature.length == 64).isPresent();
        if (header == null || claims == null || !isSigned || !isHeader(header) || !hasOnlyClaims(claims)) return null;
        Passport passport = new Passport(
            jws,
            Syntax.sha256Base64url(jws),
            text(header.get("kid")),
            text(claims.get("iss")),
            text(claims.get("sub")),
            text(claims.get("trust_domain")),
            text(claims.get("aud")),
            text(claims.get("key_binding")),
            holderThumbprint(claims.get("cnf")),
            seconds(claims.get("iat")),
            seconds(claims.get("exp")));
        boolean isWellFormed = Syntax.isIdentifier(passport.issuer) && Syntax.isSubject(passport.subject)
            && Syntax.isIdentifier(passport.trustDomain) && Syntax.isIdentifier(passport.audience)
            && Syntax.isKeyBinding(passport.keyBinding) && Syntax.isIdentifier(text(claims.get("jti")))
            && !passport.holderThumbprint.isEmpty() && passport.issuedAt > 0 && passport.expiresAt > 0;
        return isWellFormed ? passport : null;
    }

    private static Map<?, ?> objectOf(String part) {
        byte[] data = Syntax.decodeBase64url(part).orElse(new byte[0]);
        for (byte each : data) {
            if (each < 0) return null;
        }
        try {
            return StrictJson.parse(data) instanceof Map<?, ?> object ? object : null;
        } catch (StrictJson.Invalid notJson) {
            return null;
        }
    }

    private static boolean isHeader(Map<?, ?> header) {
        return header.size() == 3 && TYPE.equals(header.get("typ")) && Syntax.isKeyId(text(header.get("kid")))
            && Arrays.asList("Ed25519", "ES256").contains(header.get("alg"));
    }

    private static boolean hasOnlyClaims(Map<?, ?> claims) {
        return CLAIMS.containsAll(claims.keySet())
            && (!claims.containsKey("nbf") || seconds(claims.get("nbf")) > 0)
            && areAttributes(claims, "provenance") && areAttributes(claims, "context");
    }

    private static boolean areAttributes(Map<?, ?> claims, String name) {
        if (!claims.containsKey(name)) return true;
        return claims.get(name) instanceof Map<?, ?> attributes && attributes.size() <= MAX_ATTRIBUTES
            && attributes.keySet().stream().allMatch(key -> Syntax.isIdentifier(text(key)))
            && attributes.values().stream().allMatch(value -> Syntax.isIdentifier(text(value)));
    }

    private static String holderThumbprint(Object value) {
        if (!(value instanceof Map<?, ?> confirmed && confirmed.size() == 1 && confirmed.get("jwk") instanceof Map<?, ?> jwk))
            return "";
        String x = text(jwk.get("x"));
        String y = text(jwk.get("y"));
        if (!Syntax.isBase64urlOf32Bytes(x)) return "";
        if ("OKP".equals(jwk.get("kty")) && "Ed25519".equals(jwk.get("crv")) && jwk.size() == 3)
            return SigningKey.ed25519Thumbprint(x);
        boolean isP256 = "EC".equals(jwk.get("kty")) && "P-256".equals(jwk.get("crv")) && jwk.size() == 4;
        return isP256 && Syntax.isBase64urlOf32Bytes(y) ? SigningKey.p256Thumbprint(x, y) : "";
    }

    /** Empty for anything but a string. */
    static String text(Object value) {
        return value instanceof String text ? text : "";
    }

    /** 0 for anything but a positive integer in plain digits. */
    private static long seconds(Object value) {
        if (!(value instanceof StrictJson.Number number && number.text().matches("[1-9][0-9]{0,15}"))) return 0;
        long seconds = Long.parseLong(number.text());
        return seconds <= MAX_SAFE_INTEGER ? seconds : 0;
    }
}
