package proofgate

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"sort"
	"strings"
)

const notBound = "-"

// header is a signed header: name in lower case, value without white space at its ends.
type header struct{ name, value string }

// bodyDigest is the SHA-256 and the length of a body; the zero value is no body.
type bodyDigest struct {
	sha256 [32]byte
	length int64
}

// sum also knows the hash of no body.
func (b bodyDigest) sum() [32]byte {
	if b.length == 0 {
		return sha256.Sum256(nil)
	}
	return b.sha256
}

// isBodyBound reports whether a proof must bind this body.
func isBodyBound(method, rule string, body bodyDigest) bool {
	isBodyBearing := method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
	return rule == "bound" && (body.length > 0 || isBodyBearing)
}

func contentSHA256(method, rule string, body bodyDigest) string {
	if !isBodyBound(method, rule, body) {
		return notBound
	}
	sum := body.sum()
	return encodeBase64url(sum[:])
}

// selectSignedHeaders returns the headers of the route and of the caller, sorted.
func selectSignedHeaders(given http.Header, route *routeProfile, extra []string) ([]header, error) {
	names := append([]string(nil), route.signedHeaders...)
	for _, name := range extra {
		names = append(names, lowerASCII(name))
	}
	sort.Strings(names)
	headers := []header{}
	for i, name := range names {
		if i > 0 && names[i-1] == name {
			continue
		}
		if !isSignableHeaderName(name, route.hasOwnAuthorization) {
			return nil, failf("header_invalid", "%q is not a header that can be signed", name)
		}
		value, err := oneValue(given, name)
		if err != nil {
			return nil, err
		}
		headers = append(headers, header{name, value})
	}
	return headers, nil
}

func oneValue(given http.Header, name string) (string, error) {
	values := linesOf(given, name)
	switch len(values) {
	case 0:
		return "", failf("header_missing", "the header %s must be signed and is not given", name)
	case 1:
	default:
		return "", failf("header_repeated", "the header %s must be signed and is given twice", name)
	}
	value := strings.Trim(values[0], " \t")
	isVisible := strings.IndexFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0
	if value == "" || !isVisible {
		return "", failf("header_invalid", "the header %s must be signed: its value must be visible ASCII", name)
	}
	return value, nil
}

// formatTranscript writes the text that a proof signs (docs/design/protocol.md "Transcript").
func formatTranscript(lines [][2]string, headers []header) []byte {
	var text strings.Builder
	text.WriteString("transcript-v1\n")
	for _, line := range lines {
		fmt.Fprintf(&text, "%s=%s\n", line[0], line[1])
	}
	names := make([]string, len(headers))
	for i, signed := range headers {
		names[i] = signed.name
	}
	if len(names) == 0 {
		names = []string{notBound}
	}
	fmt.Fprintf(&text, "headers=%s\n", strings.Join(names, ","))
	for _, signed := range headers {
		fmt.Fprintf(&text, "header.%s=%s\n", signed.name, signed.value)
	}
	return []byte(text.String())
}
