// Package auth takes the place of a fork that the Go module proxy does not serve. Only Traefik's BasicAuth and DigestAuth use it; they deny
// every request here.
package auth

import "net/http"

// SecretProvider returns the secret of a user.
type SecretProvider func(user, realm string) string

// BasicAuth denies everything.
type BasicAuth struct {
	Realm   string
	Secrets SecretProvider
}

// RequireAuth denies.
func (*BasicAuth) RequireAuth(w http.ResponseWriter, _ *http.Request) { deny(w) }

// CheckSecret accepts no password.
func CheckSecret(_, _ string) bool { return false }

// DigestAuth denies everything.
type DigestAuth struct{}

// NewDigestAuthenticator returns one that denies everything.
func NewDigestAuthenticator(_ string, _ SecretProvider) *DigestAuth { return &DigestAuth{} }

// CheckAuth accepts nobody.
func (*DigestAuth) CheckAuth(_ *http.Request) (string, *string) { return "", nil }

// RequireAuth denies.
func (*DigestAuth) RequireAuth(w http.ResponseWriter, _ *http.Request) { deny(w) }

// RequireAuthStale denies.
func (*DigestAuth) RequireAuthStale(w http.ResponseWriter, _ *http.Request) { deny(w) }

// DigestAuthParams reads nothing.
func DigestAuthParams(_ string) map[string]string { return nil }

func deny(w http.ResponseWriter) { http.Error(w, "Unauthorized", http.StatusUnauthorized) }
