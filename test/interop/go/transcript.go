package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

const proofSeconds = 60

var defaultPorts = map[string]string{"http": ":80", "https": ":443"}

func sign(asked job, now int64) (answer, error) {
	holder, err := readPrivateKey(asked.HolderKeyFile)
	if err != nil {
		return answer{}, err
	}
	var carried passport
	if asked.Passport.JWS != "" {
		carried, err = readPassport(asked.Passport.JWS)
	} else {
		carried, err = makePassport(asked.Passport, asked.Route.Audience, holder, now)
	}
	if err != nil {
		return answer{}, err
	}
	place, err := splitURL(asked.Request.URL)
	if err != nil {
		return answer{}, err
	}
	transcript, err := writeTranscript(asked, carried, place, now)
	if err != nil {
		return answer{}, err
	}
	passportHeader, value := "Authorization", "Passport "+carried.jws
	if asked.Route.PassportHeader != "" {
		passportHeader, value = asked.Route.PassportHeader, carried.jws
	}
	return answer{
		Authority:  place.authority,
		Target:     place.target,
		Transcript: transcript,
		Headers: map[string]string{
			passportHeader:           value,
			"X-Proofgate-Transcript": encode([]byte(transcript)),
			"X-Proofgate-Signature":  encode(ed25519.Sign(holder, []byte(transcript))),
		},
	}, nil
}

func writeTranscript(asked job, carried passport, where place, now int64) (string, error) {
	headers, err := signedHeaders(append(asked.Route.SignedHeaders, asked.AlsoSigned...), asked.Request.Headers)
	if err != nil {
		return "", err
	}
	jti := asked.JTI
	if jti == "" {
		if jti, err = newJTI(); err != nil {
			return "", err
		}
	}
	issuedAt := orElse(asked.IssuedAt, now)
	var names []string
	for _, signed := range headers {
		names = append(names, signed[0])
	}
	lines := [][2]string{
		{"auth-site", asked.AuthSite},
		{"key-id", carried.keyID},
		{"passport-sha256", hash([]byte(carried.jws))},
		{"issuer", carried.claims.Issuer},
		{"subject", carried.claims.Subject},
		{"audience", carried.claims.Audience},
		{"route-id", asked.Route.RouteID},
		{"method", asked.Request.Method},
		{"scheme", where.scheme},
		{"authority", where.authority},
		{"target", where.target},
		{"jti", jti},
		{"issued-at", strconv.FormatInt(issuedAt, 10)},
		{"expires-at", strconv.FormatInt(orElse(asked.ExpiresAt, issuedAt+proofSeconds), 10)},
		{"content-sha256", contentSHA256(asked.Route, asked.Request)},
		{"headers", orDash(strings.Join(names, ","))},
	}
	for _, signed := range headers {
		lines = append(lines, [2]string{"header." + signed[0], signed[1]})
	}
	var text strings.Builder
	text.WriteString("transcript-v1\n")
	for _, line := range lines {
		fmt.Fprintf(&text, "%s=%s\n", line[0], line[1])
	}
	return text.String(), nil
}

type place struct {
	scheme, authority, target string
}

var (
	urlForm       = regexp.MustCompile(`^((?i:https?))://([^/?#]*)([^#]*)`)
	authorityForm = regexp.MustCompile(`^(\[[^\]]*\]|[^:]*)(:[0-9]*)?$`)
	visible       = regexp.MustCompile(`^[!-~]+$`)
	signable      = regexp.MustCompile(`^[ -~]+$`)
)

// splitURL works on the text: a URL parser would decode, and escape anew.
func splitURL(url string) (place, error) {
	parts := urlForm.FindStringSubmatch(url)
	if parts == nil {
		return place{}, fmt.Errorf("not an http or https URL")
	}
	scheme := strings.ToLower(parts[1])
	named := authorityForm.FindStringSubmatch(parts[2][strings.LastIndex(parts[2], "@")+1:])
	if named == nil {
		return place{}, fmt.Errorf("not an authority")
	}
	host, port := strings.TrimSuffix(lowerASCII(named[1]), "."), named[2]
	if port == ":" || port == defaultPorts[scheme] {
		port = ""
	}
	target := parts[3]
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	if !visible.MatchString(host + target) {
		return place{}, fmt.Errorf("the URL holds bytes that must be escaped, or a host that must be an A-label")
	}
	return place{scheme, host + port, target}, nil
}

func lowerASCII(text string) string {
	return strings.Map(func(letter rune) rune {
		if letter >= 'A' && letter <= 'Z' {
			return letter + 'a' - 'A'
		}
		return letter
	}, text)
}

// signedHeaders gives name and value of each signed header, in order.
func signedHeaders(wanted []string, lines [][2]string) ([][2]string, error) {
	names := map[string]bool{}
	for _, name := range wanted {
		names[strings.ToLower(name)] = true
	}
	var found [][2]string
	for name := range names {
		var values []string
		for _, line := range lines {
			if strings.ToLower(line[0]) == name {
				values = append(values, strings.Trim(line[1], " \t"))
			}
		}
		if len(values) != 1 || !signable.MatchString(values[0]) {
			return nil, fmt.Errorf("%s is not in the request once, with a value that can be signed", name)
		}
		found = append(found, [2]string{name, values[0]})
	}
	sort.Slice(found, func(a, b int) bool { return found[a][0] < found[b][0] })
	return found, nil
}

func contentSHA256(to route, sent request) string {
	hasHash := len(sent.BodyBase64) > 0 || sent.Method == "POST" || sent.Method == "PUT" || sent.Method == "PATCH"
	if to.Body == "unbound" || !hasHash {
		return "-"
	}
	return hash(sent.BodyBase64)
}

func hash(data []byte) string {
	digest := sha256.Sum256(data)
	return encode(digest[:])
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
