package proofgate

import (
	"crypto/ed25519"
	"net/http"
	"strings"
	"testing"
)

func BenchmarkBareSignature(b *testing.B) {
	_, key, err := ed25519.GenerateKey(nil)
	must(b, err)
	message := make([]byte, 600)
	for i := 0; i < b.N; i++ {
		ed25519.Sign(key, message)
	}
}

func BenchmarkSign(b *testing.B) {
	signer, err := Open(Options{KeyFile: writeEnrolled(b, b.TempDir(), "https://api.shop.example", "dk_1")})
	must(b, err)
	for i := 0; i < b.N; i++ {
		request, err := http.NewRequest("POST", "https://api.shop.example/v1/orders", strings.NewReader(`{"item":"book","count":2}`))
		must(b, err)
		must(b, signer.Sign(request))
	}
}
