// Package proofgate signs HTTP requests to APIs behind Proofgate.
//
//	client := &http.Client{Transport: &proofgate.Transport{KeyFile: "/var/run/proofgate/key.pem"}}
package proofgate

import (
	"crypto/rand"
	"errors"
	"log"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Version is that of the whole project.
const Version = "0.4.0"

const (
	proofSeconds    = 60
	passportSeconds = 300
	// A passport is reused for two thirds of its life: verifiers cache it.
	reuseSeconds   = 200
	reloadInterval = time.Second
)

// Options say with which key a Signer signs, and how.
type Options struct {
	// KeyFile has the state file beside it, as "proofgate enroll" and "proofgate agent" write them.
	KeyFile string
	// ProfileFile is a signing profile in JSON, for a key without an enrollment.
	ProfileFile string
	// Profile names the profile where several fit.
	Profile string
	// SignHeaders are names of headers to sign beyond those of the route.
	SignHeaders []string
	// Proof is the format of the proofs.
	Proof Proof
	// Warn gets warnings; nil means the standard logger.
	Warn func(message string)
}

// Signer signs with a key file and the state beside it, and follows both when they are replaced.
// It is safe for concurrent use.
type Signer struct {
	options   Options
	now       func() time.Time
	newJTI    func() (string, error)
	current   atomic.Pointer[loaded]
	reloading sync.Mutex
	checkedAt atomic.Int64
	versions  fileVersions
	nonces    serverNonces
}

// Open reads the files. Its errors are of type *SigningError.
func Open(options Options) (*Signer, error) {
	s := &Signer{options: options, now: time.Now, newJTI: newJTI}
	s.versions = versionsOf(options.KeyFile, options.ProfileFile)
	id, err := readIdentity(options.KeyFile, options.ProfileFile, time.Now())
	if err != nil {
		return nil, err
	}
	s.current.Store(newLoaded(id))
	s.checkedAt.Store(time.Now().UnixNano())
	return s, nil
}

func newJTI() (string, error) {
	random := make([]byte, 16)
	_, err := rand.Read(random)
	return encodeBase64url(random), err
}

// Sign sets the credential headers of the request, in place of those that it has. Send it once, and sign a
// repetition anew. The body is read from GetBody, which http.NewRequest sets for bytes and strings, or twice, such as an
// *os.File. Its errors are of type *SigningError.
func (s *Signer) Sign(request *http.Request) error {
	chosen, err := s.choose(request)
	if err != nil {
		return err
	}
	var body bodyDigest
	if s.coversBody(chosen.route) {
		if body, err = digestOf(request); err != nil {
			return err
		}
	}
	setLength(request, body)
	return s.sign(request, chosen, body)
}

func (s *Signer) coversBody(route *routeProfile) bool {
	return route.body == "bound" && s.options.Proof != DPoP
}

// choice is how a request will be signed.
type choice struct {
	loaded   *loaded
	profiles *profiles
	route    *routeProfile
	method   string
	url      requestURL
}

func (s *Signer) choose(request *http.Request) (choice, error) {
	method := request.Method
	if method == "" {
		method = http.MethodGet
	}
	text, err := urlText(request)
	if err != nil {
		return choice{}, err
	}
	return s.chooseFor(method, text)
}

func (s *Signer) chooseFor(method, url string) (choice, error) {
	if !isMethod(method) {
		return choice{}, failf("method_invalid", "the method is not an HTTP method")
	}
	parsed, err := parseRequestURL(url)
	if err != nil {
		return choice{}, err
	}
	l, err := s.load()
	if err != nil {
		return choice{}, err
	}
	file, route, err := selectProfile(l.identity.files, method, parsed, s.options.Profile)
	return choice{l, file, route, method, parsed}, err
}

func (s *Signer) sign(request *http.Request, c choice, body bodyDigest) error {
	if request.Header == nil {
		request.Header = http.Header{}
	}
	own := withoutCredentials(request.Header)
	signed, err := s.credentials(own, c, body)
	if err != nil {
		return err
	}
	s.removeProof(request.Header)
	for _, line := range signed {
		removeHeader(request.Header, lowerASCII(line[0]))
		request.Header.Set(line[0], line[1])
	}
	return nil
}

// removeProof leaves a request that no verifier accepts.
func (s *Signer) removeProof(headers http.Header) {
	removeCredentials(headers)
	if s.options.Proof == HTTPMessageSignatures {
		removeHeader(headers, "signature")
		removeHeader(headers, "signature-input")
	}
	if s.options.Proof == DPoP {
		removeEarlierDPoP(headers)
	}
}

func removeHeader(headers http.Header, lowerName string) {
	for name := range headers {
		if lowerASCII(name) == lowerName {
			delete(headers, name)
		}
	}
}

func (s *Signer) credentials(headers http.Header, c choice, body bodyDigest) ([][2]string, error) {
	now := s.now().Unix()
	jti, err := s.newJTI()
	if err != nil {
		return nil, err
	}
	if s.options.Proof == DPoP {
		headers = headers.Clone()
		removeEarlierDPoP(headers)
	}
	if !c.route.hasOwnAuthorization && hasAuthorization(headers) {
		return nil, failf("header_reserved", "the passport of this profile travels in Authorization; a route with passport_header allows both")
	}
	if s.options.Proof == HTTPMessageSignatures {
		return s.httpMessage(headers, c, body, now, jti)
	}
	pass, err := c.loaded.passportFor(c.profiles, c.route, now, s.newJTI)
	if err != nil {
		return nil, err
	}
	if s.options.Proof == DPoP {
		return s.dpop(headers, c, pass, now, jti)
	}
	signedHeaders, err := selectSignedHeaders(headers, c.route, s.options.SignHeaders)
	if err != nil {
		return nil, err
	}
	expiresAt := now + proofSeconds
	if pass.expiresAt < expiresAt {
		expiresAt = pass.expiresAt
	}
	transcript := formatTranscript([][2]string{
		{"auth-site", c.profiles.coordinates.authSite},
		{"key-id", pass.keyID},
		{"passport-sha256", pass.sha256},
		{"issuer", c.profiles.coordinates.issuer},
		{"subject", c.profiles.coordinates.subject},
		{"audience", c.route.audience},
		{"route-id", c.route.routeID},
		{"method", c.method},
		{"scheme", c.url.scheme},
		{"authority", c.url.authority},
		{"target", c.url.target},
		{"jti", jti},
		{"issued-at", strconv.FormatInt(now, 10)},
		{"expires-at", strconv.FormatInt(expiresAt, 10)},
		{"content-sha256", contentSHA256(c.method, c.route.body, body)},
	}, signedHeaders)
	encoded := encodeBase64url(transcript)
	if len(encoded) > maxCredentialBytes {
		return nil, failf("credentials_too_large", "passport or transcript is longer than 8 KiB")
	}
	signature, err := c.loaded.identity.key.sign(transcript)
	return [][2]string{
		passportLine(c.route, pass.jws),
		{"X-Proofgate-Transcript", encoded},
		{"X-Proofgate-Signature", encodeBase64url(signature)},
	}, err
}

func passportLine(route *routeProfile, jws string) [2]string {
	if route.hasOwnAuthorization {
		return [2]string{passportHeaderName, jws}
	}
	return [2]string{"Authorization", "Passport " + jws}
}

// load returns the current identity, after a look at the files at most once a second.
func (s *Signer) load() (*loaded, error) {
	if time.Now().UnixNano()-s.checkedAt.Load() >= int64(reloadInterval) && s.reloading.TryLock() {
		err := s.reloadIfReplaced()
		if err == nil {
			s.checkedAt.Store(time.Now().UnixNano())
		}
		s.reloading.Unlock()
		if err != nil {
			return nil, err
		}
	}
	l := s.current.Load()
	if expiresAt := l.identity.expiresAt; !expiresAt.IsZero() && !s.now().Before(expiresAt) {
		return nil, keyExpired(s.options.KeyFile)
	}
	return l, nil
}

// reloadIfReplaced keeps the old key when the new files cannot be used, unless they say that the key has ended.
func (s *Signer) reloadIfReplaced() error {
	versions := versionsOf(s.options.KeyFile, s.options.ProfileFile)
	if versions.equal(s.versions) {
		return nil
	}
	id, err := readIdentity(s.options.KeyFile, s.options.ProfileFile, s.now())
	var failure *SigningError
	if errors.As(err, &failure) && (failure.Code == "key_revoked" || failure.Code == "key_expired") {
		return err
	}
	if err != nil {
		// A later check tries again.
		s.warn("the key file was replaced and cannot be used: " + err.Error())
		return nil
	}
	s.current.Store(newLoaded(id))
	s.versions = versions
	return nil
}

func (s *Signer) warn(message string) {
	if s.options.Warn != nil {
		s.options.Warn(message)
		return
	}
	log.Print("proofgate: " + message)
}

// loaded is an identity with the passports that its key has signed.
type loaded struct {
	identity *identity
	mutex    sync.Mutex
	made     map[madeKey]*passport
}

type madeKey struct {
	coordinates coordinates
	audience    string
}

func newLoaded(id *identity) *loaded { return &loaded{identity: id, made: map[madeKey]*passport{}} }

func (l *loaded) passportFor(file *profiles, route *routeProfile, now int64, newJTI func() (string, error)) (*passport, error) {
	if l.identity.passports != nil {
		return l.givenPassport(file, route, now)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := madeKey{file.coordinates, route.audience}
	if found := l.made[key]; found != nil && found.issuedAt <= now && now < found.issuedAt+reuseSeconds {
		return found, nil
	}
	made, err := l.makePassport(file.coordinates, route.audience, now, newJTI)
	if err != nil {
		return nil, err
	}
	l.made[key] = made
	return made, nil
}

func (l *loaded) givenPassport(file *profiles, route *routeProfile, now int64) (*passport, error) {
	found := l.identity.passports[route.audience]
	if found == nil {
		return nil, failf("passport_required", "there is no passport for the audience %s", route.audience)
	}
	c := file.coordinates
	for _, claim := range [][3]string{
		{"iss", found.issuer, c.issuer},
		{"sub", found.subject, c.subject},
		{"trust_domain", found.trustDomain, c.trustDomain},
		{"key_binding", found.keyBinding, c.keyBinding},
	} {
		if claim[1] != claim[2] {
			return nil, failf("passport_mismatch", "the passport's %s is not the one of the profile", claim[0])
		}
	}
	if found.expiresAt <= now {
		return nil, failf("passport_expired", "the passport has expired")
	}
	return found, nil
}

func (l *loaded) makePassport(c coordinates, audience string, now int64, newJTI func() (string, error)) (*passport, error) {
	if c.keyID == "" {
		return nil, failf("key_id_missing", "the profile names no key_id")
	}
	if c.keyBinding != "software" {
		return nil, failf("passport_required", "a broker's passport is needed for this profile")
	}
	id, err := newJTI()
	if err != nil {
		return nil, err
	}
	jws, err := makePassport(l.identity.key, c.keyID, passportClaims{
		Issuer:      c.issuer,
		Subject:     c.subject,
		TrustDomain: c.trustDomain,
		Audience:    audience,
		IssuedAt:    now,
		ExpiresAt:   now + passportSeconds,
		KeyBinding:  c.keyBinding,
		ID:          id,
	})
	if err != nil {
		return nil, err
	}
	made := parsePassport(jws)
	if made == nil {
		return nil, failf("credentials_too_large", "the passport is longer than 8 KiB")
	}
	return made, nil
}

func removeCredentials(headers http.Header) {
	for name, values := range headers {
		if isCredential(lowerASCII(name), values) {
			delete(headers, name)
		}
	}
}

// withoutCredentials leaves what belongs to the application.
func withoutCredentials(headers http.Header) http.Header {
	own := http.Header{}
	for name, values := range headers {
		if !isCredential(lowerASCII(name), values) {
			own[name] = values
		}
	}
	return own
}

// vendorPattern is that of src/protocol/wire-names.ts: upstreams may read other characters as "-", or drop them.
var vendorPattern = regexp.MustCompile("^[^a-z0-9]*" + strings.Join(strings.Split("xproofgate", ""), "[^a-z0-9]*"))

func isCredential(lowerName string, values []string) bool {
	if lowerName == "authorization" {
		return hasPassport(values)
	}
	return vendorPattern.MatchString(lowerName)
}

func hasAuthorization(headers http.Header) bool {
	for name := range headers {
		if lowerASCII(name) == "authorization" {
			return true
		}
	}
	return false
}

// hasPassport looks at every line, and at the elements of lines that were joined.
func hasPassport(values []string) bool {
	for _, credentials := range strings.Split(strings.Join(values, ","), ",") {
		fields := strings.Fields(credentials)
		if len(fields) > 0 && strings.EqualFold(fields[0], "Passport") {
			return true
		}
	}
	return false
}
