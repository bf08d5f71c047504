package proofgate

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

func transportOf(t testing.TB, keyFile string, proof Proof) *Transport {
	t.Helper()
	signer, err := Open(Options{KeyFile: keyFile, Proof: proof})
	must(t, err)
	return &Transport{Signer: signer}
}

var proofs = map[string]Proof{"transcript-v1": TranscriptV1, "http-message-signatures": HTTPMessageSignatures, "dpop": DPoP}

// proofIn is another for each proof, whatever its format.
func proofIn(headers http.Header) string {
	return headers.Get("X-Proofgate-Signature") + headers.Get("Signature") + headers.Get("DPoP")
}

var (
	componentPattern = regexp.MustCompile(`"([^"]+)"`)
	statedPattern    = regexp.MustCompile(`;([a-z]+)="?([^";]+)`)
)

// httpMessageOf returns nil for a signature that does not verify or that does not cover enough.
func httpMessageOf(a arrived) map[string]string {
	if len(a.header["Signature-Input"]) != 1 || len(a.header["Signature"]) != 1 {
		return nil
	}
	params := strings.TrimPrefix(a.header.Get("Signature-Input"), "sig=")
	values := map[string]string{"@method": a.method, "@target-uri": "http://" + a.host + a.target}
	list, _, _ := strings.Cut(params, ")")
	base, covered := "", map[string]bool{}
	for _, match := range componentPattern.FindAllStringSubmatch(list, -1) {
		name, lines := match[1], a.header[http.CanonicalHeaderKey(match[1])]
		if len(lines) == 1 {
			values[name] = lines[0]
		}
		covered[name] = true
		base += match[0] + ": " + values[name] + "\n"
	}
	stated := map[string]string{}
	for _, match := range statedPattern.FindAllStringSubmatch(params, -1) {
		stated[match[1]] = match[2]
	}
	key, _ := publicKeys.Load(stated["keyid"])
	encoded := strings.TrimSuffix(strings.TrimPrefix(a.header.Get("Signature"), "sig=:"), ":")
	signature, _ := base64.StdEncoding.DecodeString(encoded)
	isTyped := a.header.Get("Content-Type") != ""
	if key == nil || !ed25519.Verify(key.(ed25519.PublicKey), []byte(base+`"@signature-params": `+params), signature) ||
		!covered["@method"] || !covered["@target-uri"] || covered["content-type"] != (isTyped && covered["content-digest"]) {
		return nil
	}
	content, route := notBound, "other"
	if covered["content-digest"] {
		digest := strings.TrimSuffix(strings.TrimPrefix(values["content-digest"], "sha-256=:"), ":")
		data, _ := base64.StdEncoding.DecodeString(digest)
		content = encodeBase64url(data)
	}
	if a.target == "/v1/uploads" {
		route = "upload"
	}
	return map[string]string{
		"jti": stated["nonce"], "key-id": stated["keyid"], "method": a.method, "target": a.target, "authority": a.host,
		"content-sha256": content, "route-id": route,
	}
}

func TestSignsWhatIsSentAsHTTPMessages(t *testing.T) {
	server := newRecorder(t)
	server.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/old" {
			http.Redirect(w, r, "/v1/new", http.StatusTemporaryRedirect)
		} else if r.URL.Path == "/v1/form" {
			http.Redirect(w, r, "/v1/new", http.StatusSeeOther)
		}
	}
	client := &http.Client{Transport: transportOf(t, writeEnrolled(t, t.TempDir(), server.URL, "dk_http"), HTTPMessageSignatures)}
	for _, target := range []string{"/v1/a", "/v1/caf%C3%A9?x=%2f&y=a%20b", "/v1/a?b=//c;d", "/v1/a??"} {
		response, err := client.Get(server.URL + target)
		if status := statusOf(t, response, err); status != 200 {
			t.Errorf("%s: %d", target, status)
		}
	}
	for _, target := range []string{"/v1/a", "/v1/old", "/v1/form", "/v1/uploads"} {
		for _, body := range []string{"", "x", strings.Repeat("x", 10<<20)} {
			response, err := client.Post(server.URL+target, "text/plain", strings.NewReader(body))
			if status := statusOf(t, response, err); status != 200 {
				t.Errorf("%s, %d bytes: %d", target, len(body), status)
			}
			if got := server.all[len(server.all)-1]; got.method == "POST" && string(got.body) != body {
				t.Errorf("%s: %d of %d bytes", target, len(got.body), len(body))
			}
		}
	}
}

func TestReplacesAnEarlierHTTPMessageSignature(t *testing.T) {
	server := newRecorder(t)
	keyFile := writeEnrolled(t, t.TempDir(), server.URL, "dk_http")
	client := &http.Client{Transport: transportOf(t, keyFile, HTTPMessageSignatures)}
	earlier, err := http.NewRequest("POST", server.URL+"/v1/a", strings.NewReader("other"))
	must(t, err)
	must(t, client.Transport.(*Transport).Signer.Sign(earlier))
	for _, method := range []string{"GET", "POST"} {
		request, err := http.NewRequest(method, server.URL+"/v1/a", nil)
		must(t, err)
		for name, lines := range earlier.Header {
			request.Header[strings.ToLower(name)] = lines
		}
		response, err := client.Do(request)
		if status := statusOf(t, response, err); status != 200 {
			t.Errorf("%s: %d", method, status)
		}
	}
	// The digest of a body that is not bound is the application's.
	request, err := http.NewRequest("POST", server.URL+"/v1/uploads", strings.NewReader("data"))
	must(t, err)
	request.Header.Set("Content-Digest", "sha-512=:AAAA:")
	response, err := client.Do(request)
	if status := statusOf(t, response, err); status != 200 {
		t.Error(status)
	}
	if got := server.all[len(server.all)-1].header["Content-Digest"]; len(got) != 1 || got[0] != "sha-512=:AAAA:" {
		t.Error(got)
	}
}

func TestSendsNothingThatNoVerifierAccepts(t *testing.T) {
	server := newRecorder(t)
	keyFile := writeEnrolled(t, t.TempDir(), server.URL, "dk_http")
	client := &http.Client{Transport: transportOf(t, keyFile, HTTPMessageSignatures)}
	if _, err := client.Get(server.URL + "/v1/a?"); codeOf(err) != "url_not_canonical" {
		t.Error(err)
	}
	for name, value := range map[string]string{"Signature": `keyId="app"`, "signature-input": `app=("@method")`} {
		request, err := http.NewRequest("GET", server.URL+"/v1/a", nil)
		must(t, err)
		request.Header[name] = []string{value}
		if _, err := client.Do(request); codeOf(err) != "header_reserved" {
			t.Error(name, err)
		}
	}
	if len(server.all) != 0 {
		t.Error("a request was sent")
	}
}
