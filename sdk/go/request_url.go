package proofgate

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// requestURL is a URL that was split without changing a byte of its target (docs/design/protocol.md "Routes, origins, paths").
// net/url would resolve and escape.
type requestURL struct {
	scheme    string
	authority string // lower case, without the scheme's default port
	target    string // path and query as given; "/" for an empty path
}

func (u requestURL) origin() string { return u.scheme + "://" + u.authority }

func (u requestURL) path() string { return pathOf(u.target) }

func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}

var (
	urlPattern  = regexp.MustCompile(`(?s)^([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\\]*)(.*)$`)
	defaultPort = map[string]string{"http": ":80", "https": ":443"}

	authorityPattern = regexp.MustCompile(
		`^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?$`)
	targetPattern       = regexp.MustCompile(`^/[\x21\x22\x24-\x7e]*$`)
	notCanonicalPattern = regexp.MustCompile(`[;\\]|//|/\.\.?(?:/|$)`)
	// Of an unreserved character, "/", "\", "%" or a control character.
	refusedEscapePattern = regexp.MustCompile(
		`(?i)%(?:[01][0-9a-f]|7f|2[def5]|3[0-9]|4[1-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9ae])`)
)

const maxPort = 65535

func parseRequestURL(text string) (requestURL, error) {
	match := urlPattern.FindStringSubmatch(text)
	if match == nil || defaultPort[lowerASCII(match[1])] == "" {
		return requestURL{}, failf("url_invalid", "the URL must begin with https:// or http://")
	}
	scheme := lowerASCII(match[1])
	authority := normalizeAuthority(scheme, match[2])
	if !isCanonicalAuthority(scheme, authority) {
		return requestURL{}, failf("url_invalid",
			"the URL must name a host and perhaps a port, without user name or other characters")
	}
	if port, _ := strconv.Atoi(authorityPattern.FindStringSubmatch(authority)[1]); port > maxPort {
		return requestURL{}, failf("url_invalid", "the port is above %d", maxPort)
	}
	target := match[3]
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	if !isCanonicalTarget(target) {
		return requestURL{}, failf("url_not_canonical",
			`the path must have no dot segments, "//", ";", "\" or needless escapes, and path and query only visible ASCII characters and no "#"`)
	}
	return requestURL{scheme, authority, target}, nil
}

// lowerASCII leaves characters beyond ASCII alone: Unicode's mapping would fold the Kelvin sign to "k".
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

func normalizeAuthority(scheme, authority string) string {
	return strings.TrimSuffix(lowerASCII(authority), defaultPort[scheme])
}

func isCanonicalAuthority(scheme, authority string) bool {
	return len(authority) <= 512 && authorityPattern.MatchString(authority) &&
		normalizeAuthority(scheme, authority) == authority
}

func isCanonicalOrigin(text string) bool {
	scheme, authority, found := strings.Cut(text, "://")
	return found && defaultPort[scheme] != "" && isCanonicalAuthority(scheme, authority)
}

// isCanonicalTarget reports whether no server could read the target's path as another path.
func isCanonicalTarget(target string) bool {
	path := pathOf(target)
	if !targetPattern.MatchString(target) || notCanonicalPattern.MatchString(path) || refusedEscapePattern.MatchString(path) {
		return false
	}
	decoded, err := url.PathUnescape(path)
	if err != nil || !utf8.ValidString(decoded) {
		return false
	}
	return !strings.ContainsFunc(decoded, func(r rune) bool { return 0x80 <= r && r <= 0x9f })
}
