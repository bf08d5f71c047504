package proofgate

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

const (
	passportType       = "proofgate-passport+jwt"
	maxCredentialBytes = 8192
	maxAttributes      = 32
	maxSafeInteger     = 1<<53 - 1
)

// passport identifies the caller. Its signature is not verified: only the verifier knows the issuer's key.
type passport struct {
	jws              string
	sha256           string
	keyID            string
	issuer           string
	subject          string
	trustDomain      string
	audience         string
	keyBinding       string
	holderThumbprint string
	issuedAt         int64
	expiresAt        int64
}

type passportHeader struct {
	Type      string `json:"typ"`
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
}

type passportClaims struct {
	Issuer      string       `json:"iss"`
	Subject     string       `json:"sub"`
	TrustDomain string       `json:"trust_domain"`
	Audience    string       `json:"aud"`
	IssuedAt    int64        `json:"iat"`
	ExpiresAt   int64        `json:"exp"`
	KeyBinding  string       `json:"key_binding"`
	Holder      confirmation `json:"cnf"`
	ID          string       `json:"jti"`
}

type confirmation struct {
	JWK json.RawMessage `json:"jwk"`
}

// makePassport returns a compact JWS, signed by the key itself.
func makePassport(key *signingKey, keyID string, claims passportClaims) (string, error) {
	claims.Holder.JWK = json.RawMessage(key.jwk)
	signingInput := encodeJSON(passportHeader{passportType, key.algorithm, keyID}) + "." + encodeJSON(claims)
	signature, err := key.sign([]byte(signingInput))
	return signingInput + "." + encodeBase64url(signature), err
}

// encodeJSON escapes nothing that JSON does not demand, unlike json.Marshal.
func encodeJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	// Strings, integers and a valid JWK: this cannot fail.
	_ = encoder.Encode(value)
	return encodeBase64url(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

// parsePassport returns nil for anything that a verifier would call malformed.
func parsePassport(jws string) *passport {
	parts := strings.Split(jws, ".")
	if len(jws) > maxCredentialBytes || len(parts) != 3 {
		return nil
	}
	header, claims := objectOf(parts[0]), objectOf(parts[1])
	signature, isCanonical := decodeBase64url(parts[2])
	if header == nil || claims == nil || !isCanonical || len(signature) != 64 {
		return nil
	}
	keyID := text(header["kid"])
	algorithm := text(header["alg"])
	if len(header) != 3 || text(header["typ"]) != passportType || !isKeyID(keyID) ||
		(algorithm != "Ed25519" && algorithm != "ES256") || !hasOnlyClaims(claims) {
		return nil
	}
	p := passport{
		jws:              jws,
		sha256:           sha256Base64url([]byte(jws)),
		keyID:            keyID,
		issuer:           text(claims["iss"]),
		subject:          text(claims["sub"]),
		trustDomain:      text(claims["trust_domain"]),
		audience:         text(claims["aud"]),
		keyBinding:       text(claims["key_binding"]),
		holderThumbprint: holderThumbprint(claims["cnf"]),
		issuedAt:         seconds(claims["iat"]),
		expiresAt:        seconds(claims["exp"]),
	}
	isWellFormed := isIdentifier(p.issuer) && isSubject(p.subject) && isIdentifier(p.trustDomain) &&
		isIdentifier(p.audience) && isKeyBinding(p.keyBinding) && isIdentifier(text(claims["jti"])) &&
		p.holderThumbprint != "" && p.issuedAt > 0 && p.expiresAt > 0
	if !isWellFormed {
		return nil
	}
	return &p
}

func objectOf(part string) object {
	data, isCanonical := decodeBase64url(part)
	if !isCanonical || bytes.ContainsFunc(data, func(r rune) bool { return r > 0x7f }) {
		return nil
	}
	value, err := parseStrictJSON(data)
	if err != nil {
		return nil
	}
	members, _ := value.(object)
	return members
}

func hasOnlyClaims(claims object) bool {
	for name, value := range claims {
		switch name {
		case "iss", "sub", "trust_domain", "aud", "iat", "exp", "key_binding", "cnf", "jti":
		case "nbf":
			if seconds(value) == 0 {
				return false
			}
		case "provenance", "context":
			if !isAttributes(value) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func isAttributes(value any) bool {
	attributes, isObject := value.(object)
	if !isObject || len(attributes) > maxAttributes {
		return false
	}
	for name, attribute := range attributes {
		if !isIdentifier(name) || !isIdentifier(text(attribute)) {
			return false
		}
	}
	return true
}

func holderThumbprint(value any) string {
	confirmed, _ := value.(object)
	jwk, _ := confirmed["jwk"].(object)
	x, y := text(jwk["x"]), text(jwk["y"])
	if len(confirmed) != 1 || !isBase64urlOf32Bytes(x) {
		return ""
	}
	switch {
	case text(jwk["kty"]) == "OKP" && text(jwk["crv"]) == "Ed25519" && len(jwk) == 3:
		return ed25519Thumbprint(x)
	case text(jwk["kty"]) == "EC" && text(jwk["crv"]) == "P-256" && len(jwk) == 4 && isBase64urlOf32Bytes(y):
		return p256Thumbprint(x, y)
	}
	return ""
}

// text is empty for anything but a string.
func text(value any) string {
	found, _ := value.(string)
	return found
}

// seconds is 0 for anything but a positive integer in plain digits.
func seconds(value any) int64 {
	number, isNumber := value.(json.Number)
	if !isNumber {
		return 0
	}
	found, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || found < 0 || found > maxSafeInteger {
		return 0
	}
	return found
}
