package proofgate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// signingKey is a private key with its public JWK. It prints as its thumbprint.
type signingKey struct {
	ed25519    ed25519.PrivateKey
	p256       *ecdsa.PrivateKey
	algorithm  string
	jwk        string // members in the order of passports
	thumbprint string // RFC 7638
}

func (k *signingKey) String() string   { return fmt.Sprintf("key %s %s", k.algorithm, k.thumbprint) }
func (k *signingKey) GoString() string { return k.String() }

func parseSigningKey(data []byte, name string) (*signingKey, error) {
	block, _ := pem.Decode(data)
	if bytes.Contains(data, []byte("PUBLIC KEY-----")) {
		return nil, failf("public_key_where_private_expected", "%s holds a public key, not a private one", name)
	}
	invalid := failf("private_key_invalid", "%s: not an unencrypted Ed25519 or P-256 private key in PEM", name)
	if block == nil {
		return nil, invalid
	}
	var parsed any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, invalid
	}
	switch key := parsed.(type) {
	case ed25519.PrivateKey:
		return newEd25519Key(key), nil
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P256() {
			return newP256Key(key), nil
		}
	}
	return nil, invalid
}

func newEd25519Key(key ed25519.PrivateKey) *signingKey {
	x := encodeBase64url(key.Public().(ed25519.PublicKey))
	return &signingKey{
		ed25519:    key,
		algorithm:  "Ed25519",
		jwk:        fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":"%s"}`, x),
		thumbprint: ed25519Thumbprint(x),
	}
}

func newP256Key(key *ecdsa.PrivateKey) *signingKey {
	x := encodeBase64url(key.X.FillBytes(make([]byte, 32)))
	y := encodeBase64url(key.Y.FillBytes(make([]byte, 32)))
	return &signingKey{
		p256:       key,
		algorithm:  "ES256",
		jwk:        fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":"%s","y":"%s"}`, x, y),
		thumbprint: p256Thumbprint(x, y),
	}
}

func ed25519Thumbprint(x string) string {
	return sha256Base64url([]byte(fmt.Sprintf(`{"crv":"Ed25519","kty":"OKP","x":"%s"}`, x)))
}

func p256Thumbprint(x, y string) string {
	return sha256Base64url([]byte(fmt.Sprintf(`{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`, x, y)))
}

// sign returns 64 bytes: of RFC 8032, or r || s of RFC 7518.
func (k *signingKey) sign(message []byte) ([]byte, error) {
	if k.ed25519 != nil {
		return ed25519.Sign(k.ed25519, message), nil
	}
	digest := sha256.Sum256(message)
	r, s, err := ecdsa.Sign(rand.Reader, k.p256, digest[:])
	if err != nil {
		return nil, err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signature, nil
}

func sha256Base64url(data []byte) string {
	digest := sha256.Sum256(data)
	return encodeBase64url(digest[:])
}
