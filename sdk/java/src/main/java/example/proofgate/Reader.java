package example.proofgate;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/** Reads an untrusted JSON object member by member; each fault has its place. */
final class Reader {
    private final String code;
    private final String place;
    final Map<?, ?> members;

    Reader(Object value, String code, String place) throws SigningException {
        this.code = code;
        this.place = place;
        this.members = value instanceof Map<?, ?> object ? object : Map.of();
        if (!(value instanceof Map)) throw fault("must be an object");
    }

    SigningException fault(String problem) {
        return new SigningException(code, place + ": " + problem);
    }

    boolean has(String name) {
        return members.containsKey(name);
    }

    String required(String name, Predicate<String> accepts) throws SigningException {
        if (!has(name)) throw fault(name + " is missing");
        if (members.get(name) instanceof String text && accepts.test(text)) return text;
        throw fault(name + " is not valid");
    }

    String optional(String name, Predicate<String> accepts, String absent) throws SigningException {
        return has(name) ? required(name, accepts) : absent;
    }

    List<?> list(String name) throws SigningException {
        if (members.get(name) instanceof List<?> values) return values;
        throw fault(name + " must be a list");
    }

    Reader child(String name, Object value) throws SigningException {
        return new Reader(value, code, place + ": " + name);
    }

    List<Reader> items(String name) throws SigningException {
        List<Reader> items = new ArrayList<>();
        for (Object value : list(name)) items.add(child(name, value));
        return items;
    }

    /** Reads a list of distinct texts; it is empty when absent. */
    List<String> texts(String name, Predicate<String> accepts) throws SigningException {
        Set<String> texts = new LinkedHashSet<>();
        for (Object value : has(name) ? list(name) : List.of()) {
            if (!(value instanceof String text && accepts.test(text) && texts.add(text)))
                throw fault(name + " is not valid, or has a value twice");
        }
        return List.copyOf(texts);
    }

    void only(String... known) throws SigningException {
        for (Object name : members.keySet()) {
            if (!List.of(known).contains(name)) throw fault(name + " is not a member of this format");
        }
    }
}
