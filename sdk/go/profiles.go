package proofgate

import (
	"net/url"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"
)

const (
	profileFormat = "proofgate.signing-profile/v1"
	// Where a passport goes beside the application's own Authorization.
	passportHeaderName = "X-Proofgate-Passport"
)

// coordinates are what passports and transcripts say of the key.
type coordinates struct {
	authSite, keyID, issuer, trustDomain, subject, keyBinding string
}

type segment struct {
	kind string // "literal", "one" or "rest"
	text string
}

// routeProfile is what a request to one route must sign.
type routeProfile struct {
	name, routeID, method, template, audience, body string
	segments                                        []segment
	origins, signedHeaders                          []string
	// The passport goes into passportHeaderName.
	hasOwnAuthorization bool
}

// profiles are the routes of one Auth Site.
type profiles struct {
	coordinates coordinates
	routes      []routeProfile
}

func readProfiles(value any, place string) (*profiles, error) {
	root := newReader(value, "profile_invalid", place)
	root.only("format", "auth_site", "key_id", "issuer", "trust_domain", "subject", "key_binding", "profiles")
	root.optional("format", func(text string) bool { return text == profileFormat }, "")
	read := profiles{readCoordinates(root, root.required("auth_site", isIdentifier)), readRoutes(root, "profiles", true)}
	if len(read.routes) == 0 {
		root.fail("profiles is empty")
	}
	return &read, root.err()
}

func readCoordinates(r *reader, authSite string) coordinates {
	return coordinates{
		authSite:    authSite,
		keyID:       r.optional("key_id", isKeyID, ""),
		issuer:      r.required("issuer", isIdentifier),
		trustDomain: r.required("trust_domain", isIdentifier),
		subject:     r.required("subject", isSubject),
		keyBinding:  r.required("key_binding", isKeyBinding),
	}
}

func readRoutes(root *reader, member string, isClosed bool) []routeProfile {
	var routes []routeProfile
	ids, names := map[string]bool{}, map[string]bool{}
	for _, item := range root.items(member) {
		if isClosed {
			item.only("name", "route_id", "method", "path_template", "audience", "origins", "signed_headers", "body", "passport_header")
		}
		route := readRoute(item)
		if ids[route.routeID] || names[route.name] {
			item.fail("route_id or name is there twice")
		}
		ids[route.routeID], names[route.name] = true, true
		routes = append(routes, route)
	}
	return routes
}

func readRoute(item *reader) routeProfile {
	route := routeProfile{
		routeID:  item.required("route_id", isIdentifier),
		method:   item.required("method", isMethod),
		template: item.required("path_template", utf8.ValidString),
		audience: item.required("audience", isIdentifier),
		origins:  item.texts("origins", isCanonicalOrigin),
		body:     item.optional("body", func(text string) bool { return text == "bound" || text == "unbound" }, "bound"),
	}
	route.hasOwnAuthorization = item.optional("passport_header", func(text string) bool { return text == passportHeaderName }, "") != ""
	route.signedHeaders = item.texts("signed_headers", func(name string) bool { return isSignableHeaderName(name, route.hasOwnAuthorization) })
	route.name = item.optional("name", isIdentifier, route.routeID)
	route.segments = parseTemplate(route.template)
	if route.segments == nil {
		item.fail("path_template is not valid; one reads /v1/orders/{order_id}")
	}
	if len(route.origins) == 0 {
		item.fail("origins is missing or empty")
	}
	sort.Strings(route.signedHeaders)
	return route
}

var placeholderPattern = regexp.MustCompile(`^\{([A-Za-z_][A-Za-z0-9_]{0,63})(\*?)\}$`)

// parseTemplate returns nil for an invalid template.
func parseTemplate(template string) []segment {
	if !strings.HasPrefix(template, "/") || strings.Contains(template, "?") {
		return nil
	}
	texts := strings.Split(template[1:], "/")
	segments, example, names := []segment{}, []string{}, map[string]bool{}
	for i, text := range texts {
		match := placeholderPattern.FindStringSubmatch(text)
		if match == nil {
			if strings.ContainsAny(text, "{}") {
				return nil
			}
			segments, example = append(segments, segment{"literal", text}), append(example, text)
			continue
		}
		kind := "one"
		if match[2] == "*" {
			kind = "rest"
		}
		if names[match[1]] || (kind == "rest" && i != len(texts)-1) {
			return nil
		}
		names[match[1]] = true
		segments, example = append(segments, segment{kind, match[1]}), append(example, "x")
	}
	if !isCanonicalTarget("/" + strings.Join(example, "/")) {
		return nil
	}
	return segments
}

// selectProfile finds the one profile of all files that fits the request.
func selectProfile(files []*profiles, method string, u requestURL, name string) (*profiles, *routeProfile, error) {
	var foundIn *profiles
	var found *routeProfile
	misfit := failf("profile_not_found", "there is no signing profile for this caller")
	for i, file := range files {
		route, err := selectRoute(file.routes, method, u, name)
		switch {
		case err == nil && found != nil:
			sites := foundIn.coordinates.authSite + ", " + file.coordinates.authSite
			return nil, nil, failf("profile_ambiguous", "profiles of several sites fit: %s", sites)
		case err == nil:
			foundIn, found = file, route
		// A wrong origin says more than a missing profile.
		case i == 0 || (misfit.Code == "profile_not_found" && err.Code != "profile_not_found"):
			misfit = err
		}
	}
	if found == nil {
		return nil, nil, misfit
	}
	return foundIn, found, nil
}

func selectRoute(routes []routeProfile, method string, u requestURL, name string) (*routeProfile, *SigningError) {
	if name != "" {
		return namedRoute(routes, method, u, name)
	}
	var fits, allowed []*routeProfile
	for _, route := range matchTemplates(routes, u.path()) {
		if route.method != method {
			continue
		}
		fits = append(fits, route)
		if contains(route.origins, u.origin()) {
			allowed = append(allowed, route)
		}
	}
	switch {
	case len(fits) == 0:
		return nil, failf("profile_not_found", "no profile fits this method and path")
	case len(allowed) == 0:
		return nil, originNotAllowed(u, fits)
	case len(allowed) > 1:
		names := []string{}
		for _, route := range allowed {
			names = append(names, route.name)
		}
		return nil, failf("profile_ambiguous", "several profiles fit, name one of them: %s", strings.Join(names, ", "))
	}
	return allowed[0], nil
}

func namedRoute(routes []routeProfile, method string, u requestURL, name string) (*routeProfile, *SigningError) {
	for i := range routes {
		route := &routes[i]
		switch {
		case route.name != name:
			continue
		case route.method != method:
			return nil, failf("profile_mismatch", "the profile %s is for %s only", name, route.method)
		case len(matchTemplates(routes[i:i+1], u.path())) == 0:
			return nil, failf("profile_mismatch", "the profile %s is for %s", name, route.template)
		case !contains(route.origins, u.origin()):
			return nil, originNotAllowed(u, []*routeProfile{route})
		}
		return route, nil
	}
	return nil, failf("profile_not_found", "there is no profile of this name")
}

func originNotAllowed(u requestURL, routes []*routeProfile) *SigningError {
	var origins []string
	for _, route := range routes {
		origins = append(origins, route.origins...)
	}
	return failf("origin_not_allowed", "%s is not an origin of the profile: %s", u.origin(), strings.Join(origins, ", "))
}

func contains(values []string, wanted string) bool {
	for _, value := range values {
		if value == wanted {
			return true
		}
	}
	return false
}

// matchTemplates follows the verifier's rule: segment by segment, a literal before a placeholder, without going back.
func matchTemplates(routes []routeProfile, path string) []*routeProfile {
	values := strings.Split(path[1:], "/")
	candidates := make([]*routeProfile, len(routes))
	for i := range routes {
		candidates[i] = &routes[i]
	}
	for i, value := range values {
		var exact, ones, rests []*routeProfile
		isNearLiteral := false
		for _, route := range candidates {
			if i >= len(route.segments) {
				continue
			}
			switch here := route.segments[i]; {
			case here.kind == "literal" && here.text == value:
				exact = append(exact, route)
			// A value that equals a literal only after decoding could be served as that literal.
			case here.kind == "literal":
				isNearLiteral = isNearLiteral || fold(here.text) == fold(value)
			case here.kind == "one":
				ones = append(ones, route)
			default:
				rests = append(rests, route)
			}
		}
		switch {
		case len(exact) > 0:
			candidates = exact
		case value == "" || isNearLiteral:
			return nil
		case len(ones) > 0:
			candidates = ones
		case contains(values[i:], ""):
			return nil
		default:
			return rests
		}
	}
	var found []*routeProfile
	for _, route := range candidates {
		if len(route.segments) == len(values) {
			found = append(found, route)
		}
	}
	return found
}

func fold(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil && utf8.ValidString(decoded) {
		text = decoded
	}
	return lowerASCII(text)
}
