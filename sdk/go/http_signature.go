package proofgate

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// Proof is a format in which a Signer signs. The route must accept it.
type Proof int

const (
	// TranscriptV1 is a passport and a transcript.
	TranscriptV1 Proof = iota
	// HTTPMessageSignatures is RFC 9421, without a passport: for a key with a key ID, not for one with passports of a broker.
	HTTPMessageSignatures
	// DPoP is RFC 9449, with a passport. It covers neither query, headers nor body.
	DPoP
)

const (
	signatureLabel = "sig"
	maxFieldBytes  = 8192
)

// httpMessage returns the headers of an HTTP message signature (docs/design/protocol.md "HTTP Message Signatures"), to set
// in place of the request's own.
func (s *Signer) httpMessage(headers http.Header, c choice, body bodyDigest, now int64, nonce string) ([][2]string, error) {
	file := c.profiles.coordinates
	if c.loaded.identity.passports != nil {
		return nil, failf("key_id_missing", "a key with a broker's passports has no key_id of its own to sign HTTP messages")
	}
	if file.keyID == "" {
		return nil, failf("key_id_missing", "the profile names no key_id")
	}
	if file.keyBinding != "software" {
		return nil, failf("passport_required", "a broker's passport is needed for this profile")
	}
	if strings.IndexByte(c.url.target, '?') == len(c.url.target)-1 {
		return nil, failf("url_not_canonical",
			`an HTTP message signature cannot tell a URL that ends with "?" from one without: leave it out`)
	}
	if err := refuseOtherSignatures(headers); err != nil {
		return nil, err
	}
	digest := contentDigest(headers, c, body)
	fields, err := coveredFields(headers, c.route, s.options.SignHeaders, digest)
	if err != nil {
		return nil, err
	}
	expires := now + proofSeconds
	if end := c.loaded.identity.expiresAt; !end.IsZero() && end.Unix() < expires {
		expires = end.Unix()
	}
	covered := append([]header{{"@method", c.method}, {"@target-uri", c.url.origin() + c.url.target}}, fields...)
	names := make([]string, len(covered))
	var base strings.Builder
	for i, field := range covered {
		names[i] = quoted(field.name)
		fmt.Fprintf(&base, "%s: %s\n", names[i], field.value)
	}
	params := fmt.Sprintf("(%s);created=%d;expires=%d;nonce=%s;keyid=%s;tag=%s", strings.Join(names, " "), now, expires,
		quoted(nonce), quoted(file.keyID), quoted("proofgate/"+file.authSite))
	if len(signatureLabel)+1+len(params) > maxFieldBytes {
		return nil, failf("credentials_too_large", "the proof is longer than 8 KiB")
	}
	fmt.Fprintf(&base, `"@signature-params": %s`, params)
	signature, err := c.loaded.identity.key.sign([]byte(base.String()))
	signed := [][2]string{
		{"Signature-Input", signatureLabel + "=" + params},
		{"Signature", signatureLabel + "=:" + base64.StdEncoding.EncodeToString(signature) + ":"},
	}
	if digest != "" {
		signed = append([][2]string{{"Content-Digest", digest}}, signed...)
	}
	return signed, err
}

// contentDigest is empty for a body that is not bound. An application's digest may be that of an earlier body, so that
// it is replaced where the body is bound.
func contentDigest(headers http.Header, c choice, body bodyDigest) string {
	isGiven := len(linesOf(headers, "content-digest")) > 0
	if !isBodyBound(c.method, c.route.body, body) && !(isGiven && c.route.body == "bound") {
		return ""
	}
	sum := body.sum()
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func coveredFields(headers http.Header, route *routeProfile, extra []string, digest string) ([]header, error) {
	given := headers
	if digest != "" {
		given = http.Header{"Content-Digest": {digest}}
		for name, lines := range headers {
			if lowerASCII(name) != "content-digest" {
				given[name] = lines
			}
		}
		extra = append([]string{"content-digest"}, extra...)
		if len(linesOf(headers, "content-type")) > 0 {
			extra = append(extra, "content-type")
		}
	}
	fields, err := selectSignedHeaders(given, route, extra)
	if err != nil {
		return nil, err
	}
	for _, field := range fields {
		// A signature cannot cover itself, and no verifier compares the digest of a body that is not bound.
		isRefused := isSignatureField(field.name) || (field.name == "content-digest" && digest == "")
		if isRefused {
			return nil, failf("header_invalid", "an HTTP message signature for this route cannot cover %s", field.name)
		}
	}
	return fields, nil
}

// refuseOtherSignatures lets an earlier signature of the signer be replaced, never one of the application.
func refuseOtherSignatures(headers http.Header) error {
	inputs := linesOf(headers, "signature-input")
	if len(inputs) == 0 && len(linesOf(headers, "signature")) == 0 {
		return nil
	}
	if len(inputs) == 1 && isOfSigner(strings.Trim(inputs[0], " \t")) {
		return nil
	}
	return failf("header_reserved",
		"the proof of this request travels in Signature and Signature-Input, and the application has its own")
}

func isOfSigner(input string) bool {
	return strings.HasPrefix(input, signatureLabel+"=(") && strings.Contains(input, `;tag="proofgate/`) &&
		!strings.Contains(input, ", ")
}

func isSignatureField(lowerName string) bool {
	return lowerName == "signature" || lowerName == "signature-input"
}

func linesOf(headers http.Header, lowerName string) []string {
	var lines []string
	for name, values := range headers {
		if lowerASCII(name) == lowerName {
			lines = append(lines, values...)
		}
	}
	return lines
}

var quoting = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// quoted serializes a string of RFC 9651.
func quoted(text string) string { return `"` + quoting.Replace(text) + `"` }
