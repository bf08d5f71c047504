package proofgate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
)

// Syntax of the small values that passports, transcripts and profiles share (docs/design/protocol.md).
var (
	methodPattern     = regexp.MustCompile("^[!#$%&'*+\\-.^_`|~0-9A-Za-z]{1,32}$")
	headerNamePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,127}$`)
	of32BytesPattern  = regexp.MustCompile(`^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$`)
	spiffeIDPattern   = regexp.MustCompile(`^spiffe://[a-z0-9._-]{1,255}(?:/[A-Za-z0-9._-]+)+$`)
)

func isVisible(value string, maxLength int) bool {
	for i := 0; i < len(value); i++ {
		if value[i] < 0x21 || value[i] > 0x7e {
			return false
		}
	}
	return value != "" && len(value) <= maxLength
}

func isIdentifier(value string) bool { return isVisible(value, 512) }

func isKeyID(value string) bool { return isVisible(value, 128) }

func isMethod(value string) bool { return methodPattern.MatchString(value) }

func isKeyBinding(value string) bool { return value == "software" || value == "attested_workload" }

func isBase64urlOf32Bytes(value string) bool { return of32BytesPattern.MatchString(value) }

// isSubject accepts a SPIFFE ID in its one spelling; other subjects are compared as they are.
func isSubject(value string) bool {
	if !isIdentifier(value) {
		return false
	}
	if len(value) < 7 || !strings.EqualFold(value[:7], "spiffe:") {
		return true
	}
	if !spiffeIDPattern.MatchString(value) {
		return false
	}
	for _, segment := range strings.Split(value, "/")[3:] {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

func isSignableHeaderName(name string, hasOwnAuthorization bool) bool {
	return headerNamePattern.MatchString(name) && (hasOwnAuthorization || name != "authorization") &&
		!strings.HasPrefix(name, "x-proofgate-")
}

func encodeBase64url(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// decodeBase64url accepts the canonical encoding alone.
func decodeBase64url(text string) ([]byte, bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// The decoder skips line breaks.
	return data, err == nil && encodeBase64url(data) == text
}

type object = map[string]any

// parseStrictJSON rejects duplicate members, which encoding/json accepts. Numbers are json.Number.
func parseStrictJSON(data []byte) (any, error) {
	if !json.Valid(data) {
		return nil, errors.New("not valid JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	value, err := strictValue(decoder, 0)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("text after the JSON value")
	}
	return value, nil
}

const maxJSONDepth = 32

func strictValue(decoder *json.Decoder, depth int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	delimiter, isDelimiter := token.(json.Delim)
	if !isDelimiter {
		return token, nil
	}
	if depth == maxJSONDepth {
		return nil, errors.New("nested too deep")
	}
	if delimiter == '[' {
		list := []any{}
		for decoder.More() {
			value, err := strictValue(decoder, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := decoder.Token()
		return list, err
	}
	members := object{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		if _, isTwice := members[name.(string)]; isTwice {
			return nil, errors.New("a member occurs twice in one object")
		}
		if members[name.(string)], err = strictValue(decoder, depth+1); err != nil {
			return nil, err
		}
	}
	_, err = decoder.Token()
	return members, err
}
