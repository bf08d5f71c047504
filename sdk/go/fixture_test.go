package proofgate

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// publicKeys has the newest key with each key ID.
var publicKeys sync.Map

// writeEnrolled writes a key as "proofgate enroll" leaves it, for an origin or several with spaces between them, and
// returns the path of the key file.
func writeEnrolled(t testing.TB, folder, origin, keyID string) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	keyFile := filepath.Join(folder, "key.pem")
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	publicKeys.Store(keyID, private.Public())
	thumbprint := newEd25519Key(private).thumbprint
	profile := func(method, routeID, template, body string) object {
		route := object{
			"route_id": routeID, "method": method, "path_template": template, "body": body,
			"audience": "https://api.shop.example", "origins": strings.Fields(origin), "signed_headers": []string{},
		}
		if routeID == "own" {
			route["passport_header"] = passportHeaderName
		}
		return route
	}
	state, err := json.Marshal(object{
		"format":         enrollmentFormat,
		"key_thumbprint": thumbprint,
		"control_url":    "https://control.shop.example",
		"policy":         "epr_1",
		"enrolled": object{
			"control_url": "https://control.shop.example", "policy": "epr_1", "enrollment_id": "e_1",
			"auth_site": "shop-eu", "created_at": "2026-01-01T00:00:00Z",
			"derived_key": object{
				"key_id": keyID, "fingerprint": thumbprint, "status": "active", "expires_at": "2099-01-01T00:00:00Z",
				"client_id": "billing", "issuer": "https://control.shop.example/sites/shop-eu",
				"trust_domain": "shop.example", "subject": "client:billing", "key_binding": "software",
			},
			"signing_profiles": []object{
				profile("GET", "read", "/v1/{path*}", "bound"),
				profile("GET", "own", "/v1/own", "bound"),
				profile("POST", "write", "/v1/{path*}", "bound"), profile("QUERY", "query", "/v1/{path*}", "bound"),
				profile("POST", "upload", "/v1/uploads", "unbound"),
			},
		},
	})
	must(t, err)
	must(t, os.WriteFile(keyFile+".enrollment.json", state, 0o600))
	return keyFile
}

// installPair installs a key and its state as "proofgate agent" does.
func installPair(t testing.TB, folder, origin string, number int) string {
	t.Helper()
	pair := fmt.Sprintf(".key.pem.%d", number)
	must(t, os.Mkdir(filepath.Join(folder, pair), 0o700))
	writeEnrolled(t, filepath.Join(folder, pair), origin, fmt.Sprintf("dk_%d", number))
	link := filepath.Join(folder, ".new")
	must(t, os.Symlink(pair, link))
	must(t, os.Rename(link, filepath.Join(folder, ".key.pem.current")))
	for _, name := range []string{"key.pem", "key.pem.enrollment.json"} {
		if err := os.Symlink(filepath.Join(".key.pem.current", name), filepath.Join(folder, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "key.pem")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// arrived is a request as the server got it.
type arrived struct {
	method, target, host string
	header               http.Header
	body                 []byte
	// Nil without a proof. Of an HTTP message that verifies, the same lines as far as it says them.
	transcript map[string]string
}

// fits reports whether the transcript is for this request.
func (a arrived) fits() bool {
	content := sha256Base64url(a.body)
	if len(a.body) == 0 && a.method != http.MethodPost && a.header.Get("Content-Digest") == "" {
		content = notBound
	}
	return a.transcript["method"] == a.method && a.transcript["target"] == a.target &&
		a.transcript["authority"] == a.host &&
		(a.transcript["content-sha256"] == content || a.transcript["route-id"] == "upload")
}

// recorder denies requests that do not fit their proof, and keeps all of them.
type recorder struct {
	*httptest.Server
	mutex  sync.Mutex
	all    []arrived
	answer http.HandlerFunc
}

func newRecorder(t testing.TB) *recorder {
	r := &recorder{answer: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		a := arrived{request.Method, request.RequestURI, request.Host, request.Header, body, nil}
		if data, isProof := decodeBase64url(request.Header.Get("X-Proofgate-Transcript")); isProof && len(data) > 0 {
			a.transcript = map[string]string{}
			for _, line := range strings.Split(string(data), "\n") {
				name, value, _ := strings.Cut(line, "=")
				a.transcript[name] = value
			}
		}
		if a.header.Get("Signature-Input") != "" {
			a.transcript = httpMessageOf(a)
		}
		r.mutex.Lock()
		r.all = append(r.all, a)
		r.mutex.Unlock()
		if !a.fits() {
			w.Header().Set("X-Proofgate-Reason", "invalid_request_proof")
			w.WriteHeader(401)
			return
		}
		r.answer(w, request)
	}))
	t.Cleanup(r.Close)
	return r
}

// signedWith counts the requests that arrived with a proof of this key.
func (r *recorder) signedWith(keyID string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	count := 0
	for _, a := range r.all {
		if a.transcript["key-id"] == keyID {
			count++
		}
	}
	return count
}
