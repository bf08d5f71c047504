package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
)

const passportSeconds = 300

// passportRequest is a passport that somebody else made (JWS), or what one says that is to be made.
type passportRequest struct {
	JWS         string          `json:"jws"`
	KeyFile     string          `json:"key_file"`
	KeyID       string          `json:"key_id"`
	Issuer      string          `json:"issuer"`
	Subject     string          `json:"subject"`
	TrustDomain string          `json:"trust_domain"`
	KeyBinding  string          `json:"key_binding"`
	IssuedAt    int64           `json:"issued_at"`
	ExpiresAt   int64           `json:"expires_at"`
	NotBefore   int64           `json:"not_before"`
	JTI         string          `json:"jti"`
	Provenance  json.RawMessage `json:"provenance"`
	Context     json.RawMessage `json:"context"`
}

type passport struct {
	jws    string
	keyID  string
	claims claims
}

type header struct {
	Type      string `json:"typ"`
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
}

// claims stand in the order of the page's table, which nothing but a comparison of bytes needs.
type claims struct {
	Issuer       string          `json:"iss"`
	Subject      string          `json:"sub"`
	TrustDomain  string          `json:"trust_domain"`
	Audience     string          `json:"aud"`
	IssuedAt     int64           `json:"iat"`
	ExpiresAt    int64           `json:"exp"`
	NotBefore    int64           `json:"nbf,omitempty"`
	KeyBinding   string          `json:"key_binding"`
	Confirmation confirmation    `json:"cnf"`
	ID           string          `json:"jti"`
	Provenance   json.RawMessage `json:"provenance,omitempty"`
	Context      json.RawMessage `json:"context,omitempty"`
}

type confirmation struct {
	JWK publicJWK `json:"jwk"`
}

type publicJWK struct {
	KeyType string `json:"kty"`
	Curve   string `json:"crv"`
	X       string `json:"x"`
}

func makePassport(asked passportRequest, audience string, holder ed25519.PrivateKey, now int64) (passport, error) {
	key, err := readPrivateKey(asked.KeyFile)
	if err != nil {
		return passport{}, err
	}
	issuedAt := orElse(asked.IssuedAt, now)
	made := claims{
		Issuer:       asked.Issuer,
		Subject:      asked.Subject,
		TrustDomain:  asked.TrustDomain,
		Audience:     audience,
		IssuedAt:     issuedAt,
		ExpiresAt:    orElse(asked.ExpiresAt, issuedAt+passportSeconds),
		NotBefore:    asked.NotBefore,
		KeyBinding:   asked.KeyBinding,
		Confirmation: confirmation{publicJWK{"OKP", "Ed25519", encode(holder.Public().(ed25519.PublicKey))}},
		ID:           asked.JTI,
		Provenance:   asked.Provenance,
		Context:      asked.Context,
	}
	if made.ID == "" {
		if made.ID, err = newJTI(); err != nil {
			return passport{}, err
		}
	}
	headerPart, err := encodeJSON(header{"proofgate-passport+jwt", "Ed25519", asked.KeyID})
	if err != nil {
		return passport{}, err
	}
	claimsPart, err := encodeJSON(made)
	if err != nil {
		return passport{}, err
	}
	input := headerPart + "." + claimsPart
	return passport{input + "." + encode(ed25519.Sign(key, []byte(input))), asked.KeyID, made}, nil
}

// readPassport takes from a passport what the transcript repeats. Its signature is the verifier's to check.
func readPassport(jws string) (passport, error) {
	parts := strings.Split(jws, ".")
	if len(parts) != 3 {
		return passport{}, fmt.Errorf("the passport is no compact JWS")
	}
	read := passport{jws: jws}
	var head header
	for index, into := range []any{&head, &read.claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[index])
		if err != nil {
			return passport{}, err
		}
		if err := json.Unmarshal(text, into); err != nil {
			return passport{}, err
		}
	}
	read.keyID = head.KeyID
	return read, nil
}

// readPrivateKey reads an Ed25519 key in PEM, PKCS#8.
func readPrivateKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, isEd25519 := parsed.(ed25519.PrivateKey)
	if !isEd25519 {
		return nil, fmt.Errorf("%s: not an Ed25519 key", path)
	}
	return key, nil
}

// encodeJSON writes no white space and does not escape <, > and &.
func encodeJSON(value any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return encode(bytes.TrimSuffix(text.Bytes(), []byte("\n"))), nil
}

func newJTI() (string, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	return encode(random), nil
}

func encode(data []byte) string {
	return base64.RawURLEncoding.EncodeToString(data)
}

func orElse(value, other int64) int64 {
	if value != 0 {
		return value
	}
	return other
}
