package example.proofgate;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Parses JSON (RFC 8259) and rejects duplicate members. Objects are maps, arrays lists; numbers keep their digits as
 * {@link Number}.
 */
final class StrictJson {
    /** A number as it is written. */
    record Number(String text) {}

    /** Says what is wrong, without the text. */
    static final class Invalid extends Exception {
        private static final long serialVersionUID = 1L;

        Invalid(String problem) {
            super(problem);
        }
    }

    private static final int MAX_DEPTH = 32;
    private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++)?(?:[eE][+-]?[0-9]++)?");

    private final String text;
    private int at;

    private StrictJson(String text) {
        this.text = text;
    }

    static Object parse(byte[] data) throws Invalid {
        StrictJson parser = new StrictJson(Syntax.decodeUtf8(data).orElseThrow(StrictJson::notJson));
        Object value = parser.value(0);
        if (parser.peek() != END) throw new Invalid("text after the JSON value");
        return value;
    }

    private static final int END = -1;

    private static Invalid notJson() {
        return new Invalid("not valid JSON");
    }

    /** The next character that is not white space. */
    private int peek() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
        return at < text.length() ? text.charAt(at) : END;
    }

    private boolean takes(char wanted) {
        if (peek() != wanted) return false;
        at++;
        return true;
    }

    private void expect(char wanted) throws Invalid {
        if (!takes(wanted)) throw notJson();
    }

    private Object value(int depth) throws Invalid {
        return switch (peek()) {
            case '{' -> object(deeper(depth));
            case '[' -> array(deeper(depth));
            case '"' -> string();
            case 't' -> word("true", true);
            case 'f' -> word("false", false);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private static int deeper(int depth) throws Invalid {
        if (depth == MAX_DEPTH) throw new Invalid("nested too deep");
        return depth + 1;
    }

    private Map<String, Object> object(int depth) throws Invalid {
        Map<String, Object> members = new LinkedHashMap<>();
        expect('{');
        if (takes('}')) return members;
        do {
            if (peek() != '"') throw notJson();
            String name = string();
            expect(':');
            Object value = value(depth);
            if (members.containsKey(name)) throw new Invalid("a member occurs twice in one object");
            members.put(name, value);
        } while (takes(','));
        expect('}');
        return members;
    }

    private List<Object> array(int depth) throws Invalid {
        List<Object> values = new ArrayList<>();
        expect('[');
        if (takes(']')) return values;
        do values.add(value(depth));
        while (takes(','));
        expect(']');
        return values;
    }

    private Object word(String word, Object value) throws Invalid {
        if (!text.startsWith(word, at)) throw notJson();
        at += word.length();
        return value;
    }

    private Number number() throws Invalid {
        Matcher matcher = NUMBER.matcher(text).region(at, text.length());
        if (!matcher.lookingAt()) throw notJson();
        at = matcher.end();
        return new Number(matcher.group());
    }

    private String string() throws Invalid {
        StringBuilder value = new StringBuilder();
        at++;
        while (true) {
            char c = next();
            if (c == '"') return value.toString();
            if (c < 0x20) throw notJson();
            value.append(c == '\\' ? escape() : c);
        }
    }

    private char escape() throws Invalid {
        char c = next();
        if (c == 'u') {
            int code = 0;
            for (int i = 0; i < 4; i++) {
                char digit = next();
                if (digit > 'f' || Character.digit(digit, 16) < 0) throw notJson();
                code = code * 16 + Character.digit(digit, 16);
            }
            return (char) code;
        }
        int place = "\"\\/bfnrt".indexOf(c);
        if (place < 0) throw notJson();
        return "\"\\/\b\f\n\r\t".charAt(place);
    }

    private char next() throws Invalid {
        if (at == text.length()) throw notJson();
        return text.charAt(at++);
    }
}
