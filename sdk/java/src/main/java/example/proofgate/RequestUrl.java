package example.proofgate;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A URL that was split without changing a byte of its target (docs/design/protocol.md "Routes, origins, paths").
 * {@code java.net.URI} would decode and resolve.
 *
 * @param authority in lower case, without the scheme's default port
 * @param target path and query as given; "/" for an empty path
 */
record RequestUrl(String scheme, String authority, String target) {
    private static final Pattern URL = Pattern.compile("([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\\\\]*)(.*)", Pattern.DOTALL);
    private static final Map<String, String> DEFAULT_PORTS = Map.of("http", ":80", "https", ":443");
    private static final String LABEL = "[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?";
    private static final Pattern AUTHORITY =
        Pattern.compile("(?:" + LABEL + "(?:\\." + LABEL + ")*|\\[[0-9a-f:.]+\\])(?::([1-9][0-9]{0,4}))?");
    private static final Pattern TARGET = Pattern.compile("/[\\x21\\x22\\x24-\\x7e]*");
    private static final Pattern NOT_CANONICAL = Pattern.compile("[;\\\\]|//|/\\.\\.?(?:/|\\z)");
    /** Of an unreserved character, "/", "\", "%" or a control character. */
    private static final Pattern REFUSED_ESCAPE = Pattern.compile(
        "%(?:[01][0-9a-f]|7f|2[def5]|3[0-9]|4[1-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9ae])", Pattern.CASE_INSENSITIVE);
    private static final int MAX_AUTHORITY = 512;
    private static final int MAX_PORT = 65535;

    static RequestUrl parse(String text) throws SigningException {
        Matcher match = URL.matcher(text);
        if (!match.matches() || !DEFAULT_PORTS.containsKey(Syntax.lowerAscii(match.group(1))))
            throw new SigningException("url_invalid", "the URL must begin with https:// or http://");
        String scheme = Syntax.lowerAscii(match.group(1));
        String authority = normalizeAuthority(scheme, match.group(2));
        if (!isCanonicalAuthority(scheme, authority) || portOf(authority) > MAX_PORT) {
            throw new SigningException("url_invalid",
                "the URL must name a host and perhaps a port up to 65535, without user name or other characters");
        }
        String rest = match.group(3);
        String target = rest.startsWith("/") ? rest : "/" + rest;
        if (!isCanonicalTarget(target)) {
            throw new SigningException("url_not_canonical", "the path must have no dot segments, \"//\", \";\", \"\\\" or "
                + "needless escapes, and path and query only visible ASCII characters and no \"#\"");
        }
        return new RequestUrl(scheme, authority, target);
    }

    String origin() {
        return scheme + "://" + authority;
    }

    String path() {
        return pathOf(target);
    }

    private static String pathOf(String target) {
        int query = target.indexOf('?');
        return query < 0 ? target : target.substring(0, query);
    }

    static String normalizeAuthority(String scheme, String authority) {
        String lower = Syntax.lowerAscii(authority);
        String port = DEFAULT_PORTS.getOrDefault(scheme, "");
        return lower.endsWith(port) ? lower.substring(0, lower.length() - port.length()) : lower;
    }

    private static boolean isCanonicalAuthority(String scheme, String authority) {
        return authority.length() <= MAX_AUTHORITY && AUTHORITY.matcher(authority).matches()
            && normalizeAuthority(scheme, authority).equals(authority);
    }

    /** 0 without a port. */
    private static int portOf(String authority) {
        Matcher match = AUTHORITY.matcher(authority);
        return match.matches() && match.group(1) != null ? Integer.parseInt(match.group(1)) : 0;
    }

    static boolean isCanonicalOrigin(String text) {
        int end = text.indexOf("://");
        return end > 0 && DEFAULT_PORTS.containsKey(text.substring(0, end))
            && isCanonicalAuthority(text.substring(0, end), text.substring(end + 3));
    }

    /** Whether no server could read the target's path as another path. */
    static boolean isCanonicalTarget(String target) {
        String path = pathOf(target);
        return TARGET.matcher(target).matches() && !NOT_CANONICAL.matcher(path).find()
            && !REFUSED_ESCAPE.matcher(path).find()
            && decodePercent(path).filter(decoded -> decoded.chars().noneMatch(c -> 0x80 <= c && c <= 0x9f)).isPresent();
    }

    /** Decodes the escapes of visible ASCII; empty when one is malformed, or when the result is not UTF-8. */
    static Optional<String> decodePercent(String text) {
        byte[] given = text.getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream decoded = new ByteArrayOutputStream(given.length);
        for (int i = 0; i < given.length; i++) {
            if (given[i] != '%') {
                decoded.write(given[i]);
                continue;
            }
            int high = i + 2 < given.length ? Character.digit(given[i + 1], 16) : -1;
            int low = i + 2 < given.length ? Character.digit(given[i + 2], 16) : -1;
            if (high < 0 || low < 0) return Optional.empty();
            decoded.write(high * 16 + low);
            i += 2;
        }
        return Syntax.decodeUtf8(decoded.toByteArray());
    }
}
