package proofgate

import (
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Transport signs every request and sends it. The zero values of Signer and Base mean Open(Options{KeyFile: KeyFile})
// at the first request, and http.DefaultTransport.
//
// It signs the request of a redirect within an origin anew. It signs again when http.Transport repeats a request on
// another connection, and repeats a request once when the server asks for a DPoP nonce.
type Transport struct {
	KeyFile string
	Signer  *Signer
	Base    http.RoundTripper
	// Follow says which redirects are signed and sent; the others fail with the code origin_not_allowed.
	Follow Follow

	mutex    sync.Mutex
	opened   *Signer
	warnedAt atomic.Int64
}

// Follow says to which origins a redirect may lead.
type Follow int

const (
	// FollowSameOrigin allows only the origin that redirects.
	FollowSameOrigin Follow = iota
	// FollowProfiles allows every origin that a profile of the key names, so that one of these APIs can have a
	// request, with its body, sent to another.
	FollowProfiles
)

// RoundTrip sends a signed copy of the request. It sends nothing when it returns a *SigningError.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	signer, signed, err := t.signedCopy(request)
	if err != nil {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, err
	}
	response, err := t.send(signer, signed)
	if err == nil && signer.keepNonce(signed, response) {
		discard(response.Body)
		if response, err = t.sendAgain(request); err == nil {
			signer.keepNonce(signed, response)
		}
	}
	if err == nil {
		// The caller's request has no credentials; nor does a redirect, which is made from it.
		response.Request = request
	}
	return response, err
}

func (t *Transport) sendAgain(request *http.Request) (*http.Response, error) {
	again, err := repeatable(request)
	if err != nil {
		return nil, err
	}
	signer, signed, err := t.signedCopy(again)
	if err != nil {
		if again.Body != nil {
			again.Body.Close()
		}
		return nil, err
	}
	return t.send(signer, signed)
}

func (t *Transport) send(signer *Signer, signed *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	sentAt := time.Now()
	response, err := base.RoundTrip(signed)
	if err == nil {
		t.checkClock(signer, response, sentAt)
	}
	return response, err
}

func (t *Transport) signedCopy(request *http.Request) (*Signer, *http.Request, error) {
	if t.Follow != FollowProfiles && isRedirectToOtherOrigin(request) {
		return nil, nil, failf("origin_not_allowed", "the redirect leads to another origin: Follow: FollowProfiles allows those of the key's profiles")
	}
	signer, err := t.signer()
	if err != nil {
		return nil, nil, err
	}
	chosen, err := signer.choose(request)
	if err != nil {
		return nil, nil, err
	}
	var body bodyDigest
	if signer.coversBody(chosen.route) {
		if body, err = digestOf(request); err != nil {
			return nil, nil, err
		}
	}
	copied := request.Clone(request.Context())
	setLength(copied, body)
	if err := signer.sign(copied, chosen, body); err != nil {
		return nil, nil, err
	}
	attempts := 0
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		// Called once for each attempt of http.Transport, before it writes, on HTTP/1 and HTTP/2. An earlier attempt
		// writes no more. Without a new proof the request is sent without credentials, and denied.
		if attempts++; attempts > 1 && signer.sign(copied, chosen, body) != nil {
			signer.removeProof(copied.Header)
		}
	}}
	traced := copied.WithContext(httptrace.WithClientTrace(request.Context(), trace))
	return signer, traced, nil
}

func (t *Transport) signer() (*Signer, error) {
	if t.Signer != nil {
		return t.Signer, nil
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.opened != nil {
		return t.opened, nil
	}
	opened, err := Open(Options{KeyFile: t.KeyFile})
	t.opened = opened
	return opened, err
}

// isRedirectToOtherOrigin compares with the request that got the redirect, which http.Client leaves in Response.
func isRedirectToOtherOrigin(request *http.Request) bool {
	if request.Response == nil || request.Response.Request == nil || request.URL == nil {
		return false
	}
	from, to := request.Response.Request.URL, request.URL
	return from.Scheme != to.Scheme || normalizeAuthority(from.Scheme, from.Host) != normalizeAuthority(to.Scheme, to.Host)
}

// urlText is the URL with the bytes that net/http sends.
func urlText(request *http.Request) (string, error) {
	u := request.URL
	if u == nil || u.User != nil {
		return "", failf("url_invalid", "the URL must name a host, without user name")
	}
	target := u.RequestURI()
	if !strings.HasPrefix(target, "/") {
		return "", failf("url_invalid", "the URL must have a path that begins with a slash")
	}
	if request.Host != "" && normalizeAuthority(u.Scheme, request.Host) != normalizeAuthority(u.Scheme, u.Host) {
		return "", failf("host_not_allowed", "the Host header is not the host of the URL")
	}
	return u.Scheme + "://" + u.Host + target, nil
}

func digestOf(request *http.Request) (bodyDigest, error) {
	if request.Body == nil || request.Body == http.NoBody {
		return bodyDigest{}, nil
	}
	if request.GetBody == nil {
		return digestOfFile(request)
	}
	body, err := request.GetBody()
	if err != nil {
		return bodyDigest{}, failf("body_not_replayable", "%s", notReplayable)
	}
	defer body.Close()
	return digestOfReader(body)
}

// digestOfFile reads a body that can be read again, such as an *os.File, from where it is, and returns there.
// net/http does not know its length and would send it chunked.
func digestOfFile(request *http.Request) (bodyDigest, error) {
	file, ok := request.Body.(io.ReadSeeker)
	if !ok {
		return bodyDigest{}, failf("body_not_replayable", "%s", notReplayable)
	}
	start, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return bodyDigest{}, failf("body_not_replayable", "%s", notReplayable)
	}
	digest, err := digestOfReader(file)
	if err != nil {
		return bodyDigest{}, err
	}
	if _, err := file.Seek(start, io.SeekStart); err != nil {
		return bodyDigest{}, failf("body_not_replayable", "the body cannot be read again")
	}
	return digest, nil
}

func digestOfReader(body io.Reader) (bodyDigest, error) {
	hash := sha256.New()
	length, err := io.Copy(hash, body)
	if err != nil {
		return bodyDigest{}, failf("body_not_replayable", "the body cannot be read")
	}
	digest := bodyDigest{length: length}
	hash.Sum(digest.sha256[:0])
	return digest, nil
}

// setLength has net/http send a body whose length only its digest knows with that length.
func setLength(request *http.Request, body bodyDigest) {
	if request.GetBody == nil && request.ContentLength == 0 && body.length > 0 {
		request.ContentLength = body.length
	}
}

const notReplayable = "the body is a stream that can be read once, and its hash must be known before it is sent: " +
	"use a bytes.Reader or an *os.File, or set GetBody, or declare body: unbound at the route"
