package proofgate

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The end-to-end tests with nonces are in test/caller/sdk/dpop.extended.test.ts.
func TestReplacesAnEarlierDPoPProof(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header["Dpop"]...)
	}))
	defer server.Close()
	client := &http.Client{Transport: transportOf(t, writeEnrolled(t, t.TempDir(), server.URL, "dk_dpop"), DPoP)}
	earlier, err := http.NewRequest("GET", server.URL+"/v1/a", nil)
	must(t, err)
	must(t, client.Transport.(*Transport).Signer.Sign(earlier))
	response, err := client.Do(earlier)
	if statusOf(t, response, err) != 200 || len(seen) != 1 || seen[0] == earlier.Header.Get("DPoP") {
		t.Error(seen)
	}
	for _, given := range []map[string]string{
		{"DPoP": "ey.ey.AA"},
		{"Authorization": "DPoP ey.ey.AA", "DPoP": "ey.ey.AA"},
		{"authorization": "Bearer x"},
	} {
		request, err := http.NewRequest("GET", server.URL+"/v1/a", nil)
		must(t, err)
		for name, value := range given {
			request.Header[name] = []string{value}
		}
		if _, err := client.Do(request); codeOf(err) != "header_reserved" {
			t.Error(given, err)
		}
	}
	if _, err := client.Get(server.URL + "/v1/own"); codeOf(err) != "header_reserved" {
		t.Error(err)
	}
	if len(seen) != 1 {
		t.Error("a request was sent")
	}
}

func TestKeepsANonceOfEachOrigin(t *testing.T) {
	signer, err := Open(Options{KeyFile: writeEnrolled(t, t.TempDir(), "https://a.example", "dk_1"), Proof: DPoP})
	must(t, err)
	answer := func(origin string, status int, header http.Header) bool {
		request, err := http.NewRequest("GET", origin+"/v1/a", nil)
		must(t, err)
		return signer.KeepNonce(&http.Response{StatusCode: status, Header: header, Request: request})
	}
	asks := `Passport, DPoP error="use_dpop_nonce", algs="ES256"`
	for _, each := range []struct {
		status    int
		challenge string
		nonces    []string
		asks      bool
		kept      string
	}{
		{200, "", []string{"n-1"}, false, "n-1"},
		{401, asks, []string{"n-2"}, true, "n-2"},
		{403, asks, []string{"n-3"}, false, "n-3"},
		{401, `DPoP error="invalid_token"`, []string{"n-4"}, false, "n-4"},
		{401, asks, nil, false, "n-4"},
		{401, asks, []string{"n-5", "n-6"}, false, "n-4"},
		{401, asks, []string{`n "5"`}, false, "n-4"},
	} {
		header := http.Header{"Dpop-Nonce": each.nonces, "Www-Authenticate": {each.challenge}}
		if answer("https://A.example:443", each.status, header) != each.asks || signer.nonces.of("https://a.example") != each.kept {
			t.Errorf("%+v: %s", each, signer.nonces.of("https://a.example"))
		}
	}
	for i := 0; i < maxNonceOrigins; i++ {
		answer(fmt.Sprintf("https://%d.example", i), 200, http.Header{"Dpop-Nonce": {"n"}})
	}
	if signer.nonces.of("https://a.example") != "" || len(signer.nonces.byOrigin) != maxNonceOrigins {
		t.Error("nonces are kept without a bound")
	}
}
