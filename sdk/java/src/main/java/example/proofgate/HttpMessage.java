package example.proofgate;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The proof format http-message-signatures, of a derived key (docs/design/protocol.md "HTTP Message Signatures"). */
final class HttpMessage {
    private static final String LABEL = "sig";
    private static final int MAX_FIELD_LENGTH = 8192;
    private static final int PROOF_SECONDS = 60;
    private static final String DIGEST = "content-digest";
    private static final String INPUT = "signature-input";
    private static final String SIGNATURE = "signature";

    private HttpMessage() {}

    /** Returns the headers to set, in place of the request's own. */
    static Map<String, String> credentials(
        Signer.Choice choice, Map<String, List<String>> given, List<String> extra, BodyDigest body, long now, String nonce)
        throws SigningException {
        Profiles.Coordinates caller = choice.profiles().coordinates();
        Identity identity = choice.loaded().identity();
        requireOwnKey(caller, identity);
        String target = choice.url().target();
        if (target.indexOf('?') == target.length() - 1) {
            throw new SigningException("url_not_canonical",
                "an HTTP message signature cannot tell a URL that ends with \"?\" from one without: leave it out");
        }
        refuseOtherSignatures(given);
        Map<String, String> signed = new LinkedHashMap<>();
        String digest = digestOf(choice, given, body);
        if (digest != null) signed.put("Content-Digest", digest);
        Map<String, String> covered = new LinkedHashMap<>();
        covered.put("@method", choice.method());
        covered.put("@target-uri", choice.url().origin() + target);
        covered.putAll(fields(choice.route(), given, extra, digest));
        long end = identity.expiresAt() == null ? Long.MAX_VALUE : identity.expiresAt().getEpochSecond();
        String params = "(" + String.join(" ", covered.keySet().stream().map(HttpMessage::quoted).toList()) + ");created=" + now
            + ";expires=" + Math.min(now + PROOF_SECONDS, end) + ";nonce=" + quoted(nonce) + ";keyid="
            + quoted(caller.keyId()) + ";tag=" + quoted("proofgate/" + caller.authSite());
        String input = LABEL + "=" + params;
        if (input.length() > MAX_FIELD_LENGTH)
            throw new SigningException("credentials_too_large", "the proof is longer than 8 KiB");
        StringBuilder base = new StringBuilder();
        covered.forEach((name, value) -> base.append(quoted(name)).append(": ").append(value).append('\n'));
        base.append("\"@signature-params\": ").append(params);
        byte[] signature = identity.key().sign(base.toString().getBytes(StandardCharsets.US_ASCII));
        signed.put("Signature-Input", input);
        signed.put("Signature", LABEL + "=:" + Base64.getEncoder().encodeToString(signature) + ":");
        return signed;
    }

    private static void requireOwnKey(Profiles.Coordinates caller, Identity identity) throws SigningException {
        if (identity.passports() != null || caller.keyId() == null) {
            throw new SigningException("key_id_missing", "HTTP messages are signed with a key that has a key_id in its profile, "
                + "and no passports of a broker");
        }
        if (!caller.keyBinding().equals("software"))
            throw new SigningException("passport_required", "a broker's passport is needed for this profile");
    }

    /**
     * Null for a body that is not bound. An application's digest may be that of an earlier body, so that it is replaced where
     * the body is bound.
     */
    private static String digestOf(Signer.Choice choice, Map<String, List<String>> given, BodyDigest body) {
        boolean isGiven = choice.route().bindsBody() && !linesOf(given, DIGEST).isEmpty();
        if (!isGiven && !Transcript.isBodyBound(choice, body)) return null;
        return "sha-256=:" + Base64.getEncoder().encodeToString(body.sha256()) + ":";
    }

    private static Map<String, String> fields(
        RouteProfile route, Map<String, List<String>> given, List<String> extra, String digest) throws SigningException {
        Map<String, List<String>> sent = new TreeMap<>(given);
        List<String> names = new ArrayList<>(extra);
        if (digest != null) {
            sent.keySet().removeIf(name -> Syntax.lowerAscii(name).equals(DIGEST));
            sent.put(DIGEST, List.of(digest));
            names.add(DIGEST);
            if (!linesOf(sent, "content-type").isEmpty()) names.add("content-type");
        }
        Map<String, String> fields = Transcript.selectHeaders(sent, route, names);
        // A signature cannot cover itself, and no verifier compares the digest of a body that is not bound.
        for (String name : fields.keySet()) {
            if (name.equals(SIGNATURE) || name.equals(INPUT) || (name.equals(DIGEST) && digest == null))
                throw new SigningException("header_invalid", "an HTTP message signature for this route cannot cover " + name);
        }
        return fields;
    }

    /** An earlier signature of this signer is replaced, never one of the application. */
    private static void refuseOtherSignatures(Map<String, List<String>> given) throws SigningException {
        List<String> inputs = linesOf(given, INPUT);
        if (inputs.isEmpty() && linesOf(given, SIGNATURE).isEmpty()) return;
        if (inputs.size() == 1 && isOfSigner(inputs.get(0).strip())) return;
        throw new SigningException("header_reserved",
            "the proof of this request travels in Signature and Signature-Input, and the application has its own");
    }

    private static boolean isOfSigner(String input) {
        return input.startsWith(LABEL + "=(") && input.contains(";tag=\"proofgate/") && !input.contains(", ");
    }

    private static List<String> linesOf(Map<String, List<String>> headers, String lowerName) {
        List<String> lines = new ArrayList<>();
        headers.forEach((name, values) -> {
            if (Syntax.lowerAscii(name).equals(lowerName)) lines.addAll(values);
        });
        return lines;
    }

    /** Serializes a string of RFC 9651. */
    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
