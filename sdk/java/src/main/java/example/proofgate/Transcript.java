package example.proofgate;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/** The proof format transcript-v1 (docs/design/protocol.md "Transcript"). */
final class Transcript {
    private static final String NOT_BOUND = "-";
    private static final int PROOF_SECONDS = 60;

    private Transcript() {}

    /** Returns the three credentials of a request, by the names of their headers. */
    static Map<String, String> credentials(
        Signer.Choice choice,
        Passport passport,
        Map<String, String> signedHeaders,
        BodyDigest body,
        long now,
        String jti) throws SigningException {
        Profiles.Coordinates caller = choice.profiles().coordinates();
        RouteProfile route = choice.route();
        StringBuilder text = new StringBuilder("transcript-v1\n");
        line(text, "auth-site", caller.authSite());
        line(text, "key-id", passport.keyId());
        line(text, "passport-sha256", passport.sha256());
        line(text, "issuer", caller.issuer());
        line(text, "subject", caller.subject());
        line(text, "audience", route.audience());
        line(text, "route-id", route.routeId());
        line(text, "method", choice.method());
        line(text, "scheme", choice.url().scheme());
        line(text, "authority", choice.url().authority());
        line(text, "target", choice.url().target());
        line(text, "jti", jti);
        line(text, "issued-at", Long.toString(now));
        line(text, "expires-at", Long.toString(Math.min(now + PROOF_SECONDS, passport.expiresAt())));
        line(text, "content-sha256", contentSha256(choice, body));
        line(text, "headers", signedHeaders.isEmpty() ? NOT_BOUND : String.join(",", signedHeaders.keySet()));
        signedHeaders.forEach((name, value) -> line(text, "header." + name, value));
        byte[] transcript = text.toString().getBytes(StandardCharsets.US_ASCII);
        String encoded = Syntax.encodeBase64url(transcript);
        if (encoded.length() > Passport.MAX_CREDENTIAL_LENGTH)
            throw new SigningException("credentials_too_large", "passport or transcript is longer than 8 KiB");
        Map<String, String> credentials = new LinkedHashMap<>();
        if (route.hasOwnAuthorization()) credentials.put(RouteProfile.PASSPORT_HEADER, passport.jws());
        else credentials.put("Authorization", "Passport " + passport.jws());
        credentials.put("X-Proofgate-Transcript", encoded);
        credentials.put(
            "X-Proofgate-Signature", Syntax.encodeBase64url(choice.loaded().identity().key().sign(transcript)));
        return credentials;
    }

    private static void line(StringBuilder text, String name, String value) {
        text.append(name).append('=').append(value).append('\n');
    }

    /** Whether a proof must bind this body. */
    static boolean isBodyBound(Signer.Choice choice, BodyDigest body) {
        boolean isBodyBearing = List.of("POST", "PUT", "PATCH").contains(choice.method());
        return choice.route().bindsBody() && (body.length() > 0 || isBodyBearing);
    }

    private static String contentSha256(Signer.Choice choice, BodyDigest body) {
        return isBodyBound(choice, body) ? Syntax.encodeBase64url(body.sha256()) : NOT_BOUND;
    }

    /** Returns the headers of the route and of the caller, in the order of the transcript. */
    static Map<String, String> selectHeaders(
        Map<String, ? extends Collection<String>> given, RouteProfile route, List<String> extra)
        throws SigningException {
        TreeSet<String> names = new TreeSet<>(route.signedHeaders());
        for (String name : extra) names.add(Syntax.lowerAscii(name));
        Map<String, String> selected = new TreeMap<>();
        for (String name : names) {
            if (!Syntax.isSignableHeaderName(name, route.hasOwnAuthorization()))
                throw new SigningException("header_invalid", name + " is not a header that can be signed");
            selected.put(name, oneValue(given, name));
        }
        return selected;
    }

    private static String oneValue(Map<String, ? extends Collection<String>> given, String name)
        throws SigningException {
        List<String> values = new ArrayList<>();
        given.forEach((each, lines) -> {
            if (Syntax.lowerAscii(each).equals(name)) values.addAll(lines);
        });
        String subject = "the header " + name + " must be signed";
        if (values.isEmpty()) throw new SigningException("header_missing", subject + " and is not given");
        if (values.size() > 1) throw new SigningException("header_repeated", subject + " and is given twice");
        String value = trimmed(values.get(0));
        if (value.isEmpty() || !value.chars().allMatch(c -> 0x20 <= c && c <= 0x7e))
            throw new SigningException("header_invalid", subject + ": its value must be visible ASCII");
        return value;
    }

    private static String trimmed(String value) {
        int start = 0;
        int end = value.length();
        while (start < end && isBlank(value.charAt(start))) start++;
        while (end > start && isBlank(value.charAt(end - 1))) end--;
        return value.substring(start, end);
    }

    private static boolean isBlank(char c) {
        return c == ' ' || c == '\t';
    }
}
