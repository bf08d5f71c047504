package example.proofgate;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a request to one route must sign.
 *
 * @param bindsBody the proof covers the body
 * @param hasOwnAuthorization the passport goes into {@link #PASSPORT_HEADER}
 */
record RouteProfile(
    String name,
    String routeId,
    String method,
    String template,
    List<Segment> segments,
    String audience,
    List<String> origins,
    List<String> signedHeaders,
    boolean bindsBody,
    boolean hasOwnAuthorization) {

    /** Where a passport goes beside the application's own Authorization. */
    static final String PASSPORT_HEADER = "X-Proofgate-Passport";

    enum Kind { LITERAL, ONE, REST }

    record Segment(Kind kind, String text) {}

    private static final Pattern PLACEHOLDER = Pattern.compile("\\{([A-Za-z_][A-Za-z0-9_]{0,63})(\\*?)\\}");

    static RouteProfile read(Reader item, boolean isClosed) throws SigningException {
        if (isClosed) {
            item.only("name", "route_id", "method", "path_template", "audience", "origins", "signed_headers", "body",
                "passport_header");
        }
        String routeId = item.required("route_id", Syntax::isIdentifier);
        String template = item.required("path_template", text -> true);
        boolean hasOwnAuthorization = item.optional("passport_header", PASSPORT_HEADER::equals, null) != null;
        String body = item.optional("body", text -> text.equals("bound") || text.equals("unbound"), "bound");
        List<String> signedHeaders =
            item.texts("signed_headers", header -> Syntax.isSignableHeaderName(header, hasOwnAuthorization));
        List<String> origins = item.texts("origins", RequestUrl::isCanonicalOrigin);
        List<Segment> segments = parseTemplate(template);
        if (segments == null) throw item.fault("path_template is not valid; one reads /v1/orders/{order_id}");
        if (origins.isEmpty()) throw item.fault("origins is missing or empty");
        return new RouteProfile(
            item.optional("name", Syntax::isIdentifier, routeId),
            routeId,
            item.required("method", Syntax::isMethod),
            template,
            segments,
            item.required("audience", Syntax::isIdentifier),
            origins,
            signedHeaders,
            body.equals("bound"),
            hasOwnAuthorization);
    }

    /** Returns null for an invalid template. */
    private static List<Segment> parseTemplate(String template) {
        if (!template.startsWith("/") || template.contains("?")) return null;
        String[] texts = template.substring(1).split("/", -1);
        List<Segment> segments = new ArrayList<>();
        StringBuilder example = new StringBuilder();
        Set<String> names = new HashSet<>();
        for (int i = 0; i < texts.length; i++) {
            Matcher match = PLACEHOLDER.matcher(texts[i]);
            if (!match.matches()) {
                if (texts[i].contains("{") || texts[i].contains("}")) return null;
                segments.add(new Segment(Kind.LITERAL, texts[i]));
                example.append('/').append(texts[i]);
                continue;
            }
            boolean isRest = !match.group(2).isEmpty();
            if (!names.add(match.group(1)) || (isRest && i != texts.length - 1)) return null;
            segments.add(new Segment(isRest ? Kind.REST : Kind.ONE, match.group(1)));
            example.append("/x");
        }
        return RequestUrl.isCanonicalTarget(example.toString()) ? segments : null;
    }
}
