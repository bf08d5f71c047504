package example.proofgate;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** The routes of one Auth Site, with what passports and transcripts say of the key. */
record Profiles(Coordinates coordinates, List<RouteProfile> routes) {
    private static final String FORMAT = "proofgate.signing-profile/v1";

    /** @param keyId null when the profile names none */
    record Coordinates(
        String authSite, String keyId, String issuer, String trustDomain, String subject, String keyBinding) {}

    /** Where a request goes: the profile and its site. */
    record Selected(Profiles profiles, RouteProfile route) {}

    static Profiles read(Object value, String place) throws SigningException {
        Reader root = new Reader(value, "profile_invalid", place);
        root.only("format", "auth_site", "key_id", "issuer", "trust_domain", "subject", "key_binding", "profiles");
        root.optional("format", FORMAT::equals, null);
        Coordinates coordinates = readCoordinates(root, root.required("auth_site", Syntax::isIdentifier));
        List<RouteProfile> routes = readRoutes(root, "profiles", true);
        if (routes.isEmpty()) throw root.fault("profiles is empty");
        return new Profiles(coordinates, routes);
    }

    static Coordinates readCoordinates(Reader reader, String authSite) throws SigningException {
        return new Coordinates(
            authSite,
            reader.optional("key_id", Syntax::isKeyId, null),
            reader.required("issuer", Syntax::isIdentifier),
            reader.required("trust_domain", Syntax::isIdentifier),
            reader.required("subject", Syntax::isSubject),
            reader.required("key_binding", Syntax::isKeyBinding));
    }

    static List<RouteProfile> readRoutes(Reader root, String member, boolean isClosed) throws SigningException {
        List<RouteProfile> routes = new ArrayList<>();
        Set<String> ids = new HashSet<>();
        Set<String> names = new HashSet<>();
        for (Reader item : root.items(member)) {
            RouteProfile route = RouteProfile.read(item, isClosed);
            if (!ids.add(route.routeId()) | !names.add(route.name()))
                throw item.fault("route_id or name is there twice");
            routes.add(route);
        }
        return routes;
    }

    /** Finds the one profile of all files that fits the request. @param name null for any */
    static Selected select(List<Profiles> files, String method, RequestUrl url, String name) throws SigningException {
        Selected found = null;
        SigningException misfit = null;
        for (Profiles file : files) {
            RouteProfile route;
            try {
                route = file.select(method, url, name);
            } catch (SigningException error) {
                // A wrong origin says more than a missing profile.
                if (misfit == null || misfit.code().equals("profile_not_found")) misfit = error;
                continue;
            }
            if (found != null) {
                throw new SigningException("profile_ambiguous", "profiles of several sites fit: "
                    + found.profiles().coordinates().authSite() + ", " + file.coordinates().authSite());
            }
            found = new Selected(file, route);
        }
        if (found != null) return found;
        if (misfit != null) throw misfit;
        throw new SigningException("profile_not_found", "there is no signing profile for this caller");
    }

    private RouteProfile select(String method, RequestUrl url, String name) throws SigningException {
        if (name != null) return named(name, method, url);
        List<RouteProfile> fits =
            matchTemplates(routes, url.path()).stream().filter(route -> route.method().equals(method)).toList();
        List<RouteProfile> allowed = fits.stream().filter(route -> route.origins().contains(url.origin())).toList();
        if (fits.isEmpty()) throw new SigningException("profile_not_found", "no profile fits this method and path");
        if (allowed.isEmpty()) throw originNotAllowed(url, fits);
        if (allowed.size() > 1) {
            throw new SigningException("profile_ambiguous", "several profiles fit, name one of them: "
                + String.join(", ", allowed.stream().map(RouteProfile::name).toList()));
        }
        return allowed.get(0);
    }

    private RouteProfile named(String name, String method, RequestUrl url) throws SigningException {
        RouteProfile route = routes.stream().filter(each -> each.name().equals(name)).findFirst().orElse(null);
        if (route == null) throw new SigningException("profile_not_found", "there is no profile of this name");
        if (!route.method().equals(method))
            throw new SigningException("profile_mismatch", "the profile " + name + " is for " + route.method() + " only");
        if (matchTemplates(List.of(route), url.path()).isEmpty())
            throw new SigningException("profile_mismatch", "the profile " + name + " is for " + route.template());
        if (!route.origins().contains(url.origin())) throw originNotAllowed(url, List.of(route));
        return route;
    }

    private static SigningException originNotAllowed(RequestUrl url, List<RouteProfile> routes) {
        List<String> origins = routes.stream().flatMap(route -> route.origins().stream()).distinct().toList();
        return new SigningException(
            "origin_not_allowed", url.origin() + " is not an origin of the profile: " + String.join(", ", origins));
    }

    /** Follows the verifier's rule: segment by segment, a literal before a placeholder, without going back. */
    private static List<RouteProfile> matchTemplates(List<RouteProfile> routes, String path) {
        List<String> values = Arrays.asList(path.substring(1).split("/", -1));
        List<RouteProfile> candidates = routes;
        for (int i = 0; i < values.size(); i++) {
            String value = values.get(i);
            List<RouteProfile> exact = new ArrayList<>();
            List<RouteProfile> ones = new ArrayList<>();
            List<RouteProfile> rests = new ArrayList<>();
            boolean isNearLiteral = false;
            for (RouteProfile route : candidates) {
                if (i >= route.segments().size()) continue;
                RouteProfile.Segment here = route.segments().get(i);
                switch (here.kind()) {
                    case ONE -> ones.add(route);
                    case REST -> rests.add(route);
                    case LITERAL -> {
                        // A value that equals a literal only after decoding could be served as that literal.
                        if (here.text().equals(value)) exact.add(route);
                        else isNearLiteral |= fold(here.text()).equals(fold(value));
                    }
                }
            }
            if (!exact.isEmpty()) candidates = exact;
            else if (value.isEmpty() || isNearLiteral) return List.of();
            else if (!ones.isEmpty()) candidates = ones;
            else return values.subList(i, values.size()).contains("") ? List.of() : rests;
        }
        return candidates.stream().filter(route -> route.segments().size() == values.size()).toList();
    }

    private static String fold(String text) {
        return Syntax.lowerAscii(RequestUrl.decodePercent(text).orElse(text));
    }
}
