package proofgate

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

const (
	maxDPoPProofBytes = 4096
	maxNonceOrigins   = 256
)

var (
	// RFC 9449 section 8.1.
	noncePattern     = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,256}$`)
	ownTokenPattern  = regexp.MustCompile(`(?i)^DPoP +(\S+)$`)
	dpopPattern      = regexp.MustCompile(`(?i)(?:^|,)\s*DPoP\s`)
	asksNoncePattern = regexp.MustCompile(`(?i)[\s,]error="?use_dpop_nonce"?(?:[\s,]|$)`)
)

type dpopHeader struct {
	Type      string          `json:"typ"`
	Algorithm string          `json:"alg"`
	JWK       json.RawMessage `json:"jwk"`
}

type dpopClaims struct {
	ID       string `json:"jti"`
	Method   string `json:"htm"`
	URL      string `json:"htu"`
	IssuedAt int64  `json:"iat"`
	Token    string `json:"ath"`
	Nonce    string `json:"nonce,omitempty"`
}

// dpop returns the headers of RFC 9449 (docs/design/protocol.md "DPoP"). headers are without an earlier proof.
func (s *Signer) dpop(headers http.Header, c choice, pass *passport, now int64, jti string) ([][2]string, error) {
	if c.route.hasOwnAuthorization || len(linesOf(headers, "dpop")) > 0 {
		return nil, failf("header_reserved",
			"a DPoP proof and its passport travel in DPoP and Authorization, which the application or passport_header uses")
	}
	if len(s.options.SignHeaders) > 0 {
		return nil, failf("header_invalid", "a DPoP proof cannot cover headers")
	}
	key := c.loaded.identity.key
	claims := dpopClaims{jti, c.method, c.url.origin() + c.url.path(), now, pass.sha256, s.nonces.of(c.url.origin())}
	signingInput := encodeJSON(dpopHeader{"dpop+jwt", key.algorithm, json.RawMessage(key.jwk)}) + "." + encodeJSON(claims)
	signature, err := key.sign([]byte(signingInput))
	proof := signingInput + "." + encodeBase64url(signature)
	if len(proof) > maxDPoPProofBytes {
		return nil, failf("credentials_too_large", "the proof is longer than 4 KiB")
	}
	return [][2]string{{"Authorization", "DPoP " + pass.jws}, {"DPoP", proof}}, err
}

// removeEarlierDPoP removes passport and proof of an earlier signer, never another token of the application.
func removeEarlierDPoP(headers http.Header) {
	tokens := linesOf(headers, "authorization")
	if len(tokens) != 1 {
		return
	}
	match := ownTokenPattern.FindStringSubmatch(strings.Trim(tokens[0], " \t"))
	if match != nil && parsePassport(match[1]) != nil {
		removeHeader(headers, "authorization")
		removeHeader(headers, "dpop")
	}
}

// KeepNonce keeps the DPoP-Nonce of an answer for the origin of its request, and says whether the server denied the request
// for want of it: sign and send it once more, never twice. It is for clients without a Transport.
func (s *Signer) KeepNonce(response *http.Response) bool {
	return response.Request != nil && s.keepNonce(response.Request, response)
}

func (s *Signer) keepNonce(request *http.Request, response *http.Response) bool {
	given := linesOf(response.Header, "dpop-nonce")
	if s.options.Proof != DPoP || len(given) != 1 || !noncePattern.MatchString(given[0]) {
		return false
	}
	text, err := urlText(request)
	if err != nil {
		return false
	}
	url, err := parseRequestURL(text)
	if err != nil {
		return false
	}
	s.nonces.keep(url.origin(), given[0])
	if response.StatusCode != http.StatusUnauthorized {
		return false
	}
	for _, challenge := range linesOf(response.Header, "www-authenticate") {
		if dpopPattern.MatchString(challenge) && asksNoncePattern.MatchString(challenge) {
			return true
		}
	}
	return false
}

// serverNonces has the newest nonce of each origin.
type serverNonces struct {
	mutex    sync.Mutex
	byOrigin map[string]string
	// The origin whose nonce is the oldest comes first.
	order []string
}

func (n *serverNonces) of(origin string) string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.byOrigin[origin]
}

func (n *serverNonces) keep(origin, nonce string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.byOrigin == nil {
		n.byOrigin = map[string]string{}
	}
	n.byOrigin[origin] = nonce
	kept := n.order[:0]
	for _, each := range n.order {
		if each != origin {
			kept = append(kept, each)
		}
	}
	n.order = append(kept, origin)
	if len(n.order) > maxNonceOrigins {
		delete(n.byOrigin, n.order[0])
		n.order = n.order[1:]
	}
}

// repeatable returns the request with its body from the beginning.
func repeatable(request *http.Request) (*http.Request, error) {
	again := request.Clone(request.Context())
	if request.Body == nil || request.Body == http.NoBody {
		return again, nil
	}
	if request.GetBody != nil {
		if body, err := request.GetBody(); err == nil {
			again.Body = body
			return again, nil
		}
	}
	return nil, failf("body_not_replayable", "the server denied the request and asks for a DPoP nonce, which is kept; "+
		"this body can be sent only once: send the request again")
}

// discard reads a short rest, so that the connection can be used again.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64*1024)
	body.Close()
}
