package example.proofgate;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/** Tells the credentials in the headers of a request from what belongs to the application. */
final class Credentials {
    /** As in src/protocol/wire-names.ts: upstreams may read other characters as "-", or drop them. */
    private static final Pattern VENDOR =
        Pattern.compile("[^a-z0-9]*" + String.join("[^a-z0-9]*", "xproofgate".split("")) + ".*", Pattern.DOTALL);
    /** At the beginning, or in a line that was joined from several. */
    private static final Pattern PASSPORT =
        Pattern.compile("(?:^|,)[\\s\\h\\v]*Passport(?:[\\s\\h\\v,]|\\z)", Pattern.CASE_INSENSITIVE);

    private Credentials() {}

    static boolean isCredential(String name, String value) {
        String lower = Syntax.lowerAscii(name);
        return lower.equals("authorization") ? PASSPORT.matcher(value).find() : VENDOR.matcher(lower).matches();
    }

    /** Leaves what belongs to the application. Of an Authorization with a passport on any line nothing is left. */
    static Map<String, List<String>> without(Map<String, ? extends Collection<String>> headers) {
        Map<String, List<String>> own = new TreeMap<>();
        headers.forEach((name, values) -> {
            if (!isCredential(name, String.join(",", values))) own.put(name, new ArrayList<>(values));
        });
        return own;
    }
}
