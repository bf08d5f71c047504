package proofgate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func codeOf(err error) string {
	var failure *SigningError
	if errors.As(err, &failure) {
		return failure.Code
	}
	return fmt.Sprint(err)
}

func statusOf(t testing.TB, response *http.Response, err error) int {
	t.Helper()
	must(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	must(t, err)
	response.Body.Close()
	return response.StatusCode
}

func TestSignsWhatIsSent(t *testing.T) {
	server := newRecorder(t)
	client := &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1")}}
	for _, target := range []string{"/v1/a", "/v1/caf%C3%A9?x=%2f&y=a%20b", "/v1/a?", "/v1/a?b=//c;d"} {
		response, err := client.Get(server.URL + target)
		if status := statusOf(t, response, err); status != 200 {
			t.Errorf("%s: %d", target, status)
		}
	}
	for _, body := range []string{"", "x", strings.Repeat("x", 10<<20)} {
		response, err := client.Post(server.URL+"/v1/a", "text/plain", strings.NewReader(body))
		if status := statusOf(t, response, err); status != 200 {
			t.Errorf("%d bytes: %d", len(body), status)
		}
	}
	if response, err := client.Get(server.URL + "/v1/a"); statusOf(t, response, err) != 200 {
		t.Error("not signed")
	} else if response.Request.Header.Get("Authorization") != "" {
		t.Error("the caller's request was changed")
	}
}

func TestBindsTheBodyOfAQuery(t *testing.T) {
	server := newRecorder(t)
	client := &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1")}}
	request, err := http.NewRequest("QUERY", server.URL+"/v1/a", strings.NewReader("state=open"))
	must(t, err)
	response, err := client.Do(request)
	if statusOf(t, response, err) != 200 || server.all[0].transcript["content-sha256"] == notBound {
		t.Error(server.all)
	}
}

func TestSendsAFileFromWhereItIs(t *testing.T) {
	server := newRecorder(t)
	path := filepath.Join(t.TempDir(), "body")
	must(t, os.WriteFile(path, []byte("skipped and sent"), 0o600))
	client := &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1")}}
	for i := 0; i < 2; i++ {
		file, err := os.Open(path)
		must(t, err)
		_, err = file.Seek(12, io.SeekStart)
		must(t, err)
		request, err := http.NewRequest("POST", server.URL+"/v1/a", file)
		must(t, err)
		if i == 1 {
			must(t, client.Transport.(*Transport).opened.Sign(request))
			client = http.DefaultClient
		}
		response, err := client.Do(request)
		if statusOf(t, response, err) != 200 {
			t.Error("not signed")
		}
		last := server.all[len(server.all)-1]
		if string(last.body) != "sent" || last.header.Get("Transfer-Encoding") != "" {
			t.Errorf("%q", last.body)
		}
	}
	read, write, err := os.Pipe()
	must(t, err)
	defer write.Close()
	request, err := http.NewRequest("POST", server.URL+"/v1/a", read)
	must(t, err)
	client = &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1")}}
	if _, err := client.Do(request); codeOf(err) != "body_not_replayable" {
		t.Error(err)
	}
}

func TestSendsNothingThatItCannotSign(t *testing.T) {
	server := newRecorder(t)
	client := &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1")}}
	stream := func() io.Reader { return io.MultiReader(strings.NewReader("part")) }
	cases := map[string]func(*http.Request){
		"body_not_replayable": func(r *http.Request) { r.Method, r.Body = "POST", io.NopCloser(stream()) },
		"origin_not_allowed":  func(r *http.Request) { r.URL.Host, r.Host = "127.0.0.1:9", "" },
		"host_not_allowed":    func(r *http.Request) { r.Host = "evil.example" },
		"profile_not_found":   func(r *http.Request) { r.Method = "DELETE" },
		"url_not_canonical":   func(r *http.Request) { r.URL.Path = "/v1//a" },
		"url_invalid":         func(r *http.Request) { r.URL.Opaque = "evil.example/a" },
		"header_reserved":     func(r *http.Request) { r.Header["authorization"] = []string{"Bearer x"} },
	}
	for code, change := range cases {
		request, err := http.NewRequest("GET", server.URL+"/v1/a", nil)
		must(t, err)
		change(request)
		if _, err := client.Do(request); codeOf(err) != code {
			t.Errorf("%s: %v", code, err)
		}
	}
	if len(server.all) != 0 {
		t.Errorf("%d requests were sent", len(server.all))
	}
	response, err := client.Post(server.URL+"/v1/uploads", "text/plain", stream())
	if status := statusOf(t, response, err); status != 200 {
		t.Errorf("a stream whose body is not bound: %d", status)
	}
}

func TestSignsRedirectsWithinTheOriginsAnew(t *testing.T) {
	server, elsewhere := newRecorder(t), newRecorder(t)
	location := "/v1/new"
	server.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/old" {
			http.Redirect(w, r, location, http.StatusTemporaryRedirect)
		}
	}
	client := &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1")}}
	response, err := client.Post(server.URL+"/v1/old", "text/plain", strings.NewReader("data"))
	if status := statusOf(t, response, err); status != 200 || string(server.all[1].body) != "data" {
		t.Errorf("%d", status)
	}
	if server.all[0].transcript["jti"] == server.all[1].transcript["jti"] {
		t.Error("one proof was sent twice")
	}
	location = elsewhere.URL + "/v1/new"
	if _, err := client.Get(server.URL + "/v1/old"); codeOf(err) != "origin_not_allowed" {
		t.Error(err)
	}
	if len(elsewhere.all) != 0 {
		t.Error("another origin got a request")
	}
}

func TestFollowsTheRedirectsThatAllSDKsFollow(t *testing.T) {
	text, err := os.ReadFile("../../test/caller/sdk/redirects.json")
	must(t, err)
	var cases []struct {
		To, Follow, Outcome string
		HasProfile          bool `json:"has_profile"`
	}
	must(t, json.Unmarshal(text, &cases))
	if len(cases) != 8 {
		t.Fatal("no redirects")
	}
	for _, c := range cases {
		for status, body := range map[int]string{http.StatusFound: "", http.StatusTemporaryRedirect: "data"} {
			server, elsewhere := newRecorder(t), newRecorder(t)
			to, origins, path := server, []string{server.URL}, "/v1/new"
			if c.To == "other" {
				to = elsewhere
			}
			if to == elsewhere && c.HasProfile {
				origins = append(origins, elsewhere.URL)
			} else if to == server && !c.HasProfile {
				path = "/new"
			}
			server.answer = func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/old" {
					http.Redirect(w, r, to.URL+path, status)
				}
			}
			transport := &Transport{KeyFile: writeEnrolled(t, t.TempDir(), strings.Join(origins, " "), "dk_1")}
			if c.Follow == "profiles" {
				transport.Follow = FollowProfiles
			}
			client := &http.Client{Transport: transport}
			var response *http.Response
			if body == "" {
				response, err = client.Get(server.URL + "/v1/old")
			} else {
				response, err = client.Post(server.URL+"/v1/old", "text/plain", strings.NewReader(body))
			}
			if c.Outcome == "signed" {
				last := func() arrived { return to.all[len(to.all)-1] }
				if got := statusOf(t, response, err); got != 200 || string(last().body) != body || !last().fits() {
					t.Errorf("%+v, %d: %d", c, status, got)
				}
			} else if codeOf(err) != c.Outcome || len(server.all) != 1 || len(elsewhere.all) != 0 {
				t.Errorf("%+v, %d: %v, sent %d and %d", c, status, err, len(server.all), len(elsewhere.all))
			}
		}
	}
}

func TestReplacesCredentialsOfTheCaller(t *testing.T) {
	server := newRecorder(t)
	client := &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1")}}
	request, err := http.NewRequest("GET", server.URL+"/v1/a", nil)
	must(t, err)
	request.Header = http.Header{"authorization": {"Passport x"}, "X_Proofgate_Subject": {"root"}, "X-Proofgate-Signature": {"x", "y"}}
	response, err := client.Do(request)
	if status := statusOf(t, response, err); status != 200 {
		t.Error(status)
	}
	got := server.all[0].header
	if len(got["Authorization"]) != 1 || len(got["X-Proofgate-Signature"]) != 1 || got["X_proofgate_subject"] != nil {
		t.Error(got)
	}
}

func TestKeepsTheAuthorizationOfTheApplicationWhereTheRouteSaysSo(t *testing.T) {
	server := newRecorder(t)
	client := &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1")}}
	for given, kept := range map[string]string{"Bearer x": "Bearer x", "Passport x": "", "Bearer x, passport y": ""} {
		request, err := http.NewRequest("GET", server.URL+"/v1/own", nil)
		must(t, err)
		request.Header.Set("Authorization", given)
		response, err := client.Do(request)
		if status := statusOf(t, response, err); status != 200 {
			t.Error(status)
		}
		got := server.all[len(server.all)-1].header
		if got.Get("Authorization") != kept || parsePassport(got.Get("X-Proofgate-Passport")) == nil {
			t.Error(got)
		}
	}
}

// http.Transport sends a GET again when the server closes a reused connection without an answer.
func TestSignsAnAttemptOnAnotherConnectionAnew(t *testing.T) {
	for name, proof := range proofs {
		t.Run(name, func(t *testing.T) { signsAnAttemptOnAnotherConnectionAnew(t, proof) })
	}
}

func signsAnAttemptOnAnotherConnectionAnew(t *testing.T, proof Proof) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	var sent sync.Map
	var requests atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, isTwice := sent.LoadOrStore(proofIn(r.Header), true); isTwice {
			t.Error("one proof was sent twice")
		}
		if requests.Add(1) == 2 {
			connection, _, _ := w.(http.Hijacker).Hijack()
			connection.Close()
		}
	})}
	go server.Serve(listener)
	defer server.Close()
	origin := "http://" + listener.Addr().String()
	client := &http.Client{Transport: transportOf(t, writeEnrolled(t, t.TempDir(), origin, "dk_1"), proof)}
	for i := 0; i < 2; i++ {
		response, err := client.Get(origin + "/v1/a")
		if status := statusOf(t, response, err); status != 200 {
			t.Error(status)
		}
	}
	if requests.Load() != 3 {
		t.Errorf("%d attempts", requests.Load())
	}
}

// failing keeps a connection for a request, and fails at the next one. Its own answers are raw, so that none is tidied up.
type failing struct {
	net.Listener
	mutex     sync.Mutex
	proofs    []string
	hasFailed bool
}

func newFailing(t *testing.T, fail func(*net.TCPConn, *http.Request)) *failing {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	f := &failing{Listener: listener}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go f.serve(connection.(*net.TCPConn), fail)
		}
	}()
	return f
}

func (f *failing) serve(connection *net.TCPConn, fail func(*net.TCPConn, *http.Request)) {
	defer connection.Close()
	reader := bufio.NewReader(connection)
	for count := 1; ; count++ {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		f.mutex.Lock()
		f.proofs = append(f.proofs, proofIn(request.Header))
		fails := count > 1 && !f.hasFailed
		f.hasFailed = f.hasFailed || fails
		f.mutex.Unlock()
		if fails {
			fail(connection, request)
			return
		}
		io.Copy(io.Discard, request.Body)
		io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
}

func TestSendsNoProofTwice(t *testing.T) {
	for name, proof := range proofs {
		t.Run(name, func(t *testing.T) { sendsNoProofTwice(t, proof) })
	}
}

func sendsNoProofTwice(t *testing.T, proof Proof) {
	answer := func(status int) func(*net.TCPConn, *http.Request) {
		return func(c *net.TCPConn, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			fmt.Fprintf(c, "HTTP/1.1 %d X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n", status)
		}
	}
	faults := map[string]func(*net.TCPConn, *http.Request){
		"reset after the head": func(c *net.TCPConn, _ *http.Request) { c.SetLinger(0) },
		"reset after the body": func(c *net.TCPConn, r *http.Request) { io.Copy(io.Discard, r.Body); c.SetLinger(0) },
		"end without answer":   func(c *net.TCPConn, r *http.Request) { io.Copy(io.Discard, r.Body) },
		"time-out":             func(_ *net.TCPConn, r *http.Request) { <-time.After(300 * time.Millisecond) },
		"408":                  answer(408), "421": answer(421), "425": answer(425), "503": answer(503),
	}
	repetitions := 0
	for name, fault := range faults {
		for _, method := range []string{"GET", "POST"} {
			server := newFailing(t, fault)
			origin := "http://" + server.Addr().String()
			base := &http.Transport{ResponseHeaderTimeout: 100 * time.Millisecond}
			defer base.CloseIdleConnections()
			transport := transportOf(t, writeEnrolled(t, t.TempDir(), origin, "dk_1"), proof)
			transport.Base = base
			client := &http.Client{Transport: transport}
			for i := 0; i < 3; i++ {
				request, err := http.NewRequest(method, origin+"/v1/a", strings.NewReader(strings.Repeat("x", 1<<16)))
				must(t, err)
				request.Header.Set("Idempotency-Key", "k")
				if response, err := client.Do(request); err == nil {
					io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
			}
			server.mutex.Lock()
			seen := map[string]bool{}
			for _, proof := range server.proofs {
				if proof == "" || seen[proof] {
					t.Errorf("%s, %s: one proof was sent twice, or none", name, method)
				}
				seen[proof] = true
			}
			repetitions += len(server.proofs) - 3
			server.mutex.Unlock()
		}
	}
	if repetitions == 0 {
		t.Error("http.Transport repeated nothing, so this showed nothing")
	}
}

// An attempt that cannot be signed anew goes without credentials, and is denied: it never repeats a proof.
func TestRepeatsNoProofWhenTheKeyHasEnded(t *testing.T) {
	for name, proof := range proofs {
		t.Run(name, func(t *testing.T) { repeatsNoProofWhenTheKeyHasEnded(t, proof) })
	}
}

func repeatsNoProofWhenTheKeyHasEnded(t *testing.T, proof Proof) {
	server := newFailing(t, func(*net.TCPConn, *http.Request) {})
	origin := "http://" + server.Addr().String()
	signer, err := Open(Options{KeyFile: writeEnrolled(t, t.TempDir(), origin, "dk_1"), Proof: proof})
	must(t, err)
	made := 0
	if proof == HTTPMessageSignatures {
		made = 1
	}
	signer.newJTI = func() (string, error) {
		// Those of the passport, if there is one, and of two requests.
		if made++; made > 3 {
			return "", errors.New("no entropy")
		}
		return newJTI()
	}
	client := &http.Client{Transport: &Transport{Signer: signer}}
	for i := 0; i < 2; i++ {
		response, err := client.Get(origin + "/v1/a")
		statusOf(t, response, err)
	}
	if len(server.proofs) != 3 || server.proofs[2] != "" {
		t.Errorf("%d requests", len(server.proofs))
	}
}

func TestReportsADenial(t *testing.T) {
	server := newRecorder(t)
	server.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Proofgate-Reason", "jti_replay")
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(403)
		io.WriteString(w, `{"reason":"jti_replay","detail":"x","decision_id":"d_7"}`)
	}
	client := &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1")}}
	response, err := client.Get(server.URL + "/v1/a")
	must(t, err)
	denial := DenialOf(response)
	if denial == nil || !strings.HasPrefix(denial.Error(), "403 jti_replay/x; something on the way repeated this request") || denial.DecisionID != "d_7" || denial.RetryAfter != 3*time.Second {
		t.Errorf("%+v", denial)
	}
	if body, _ := io.ReadAll(response.Body); !bytes.Contains(body, []byte("d_7")) {
		t.Error("the body is gone")
	}
	response.StatusCode = 429
	if DenialOf(response) == nil {
		t.Error("429 is a denial of an Envoy that asks over HTTP")
	}
	response.Header.Del("X-Proofgate-Reason")
	if DenialOf(response) != nil {
		t.Error("the API's own answer is not a denial")
	}
}

func TestADenialSaysHowFarTheClockIsOff(t *testing.T) {
	server := newRecorder(t)
	offset := time.Duration(0)
	server.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(offset).UTC().Format(http.TimeFormat))
		w.Header().Set("X-Proofgate-Reason", "invalid_request_proof")
		w.WriteHeader(401)
	}
	client := &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1")}}
	for _, seconds := range []int{45, -45, 0} {
		offset = time.Duration(seconds) * time.Second
		response, err := client.Get(server.URL + "/v1/a")
		must(t, err)
		for i := 0; i < 2; i++ {
			denial := DenialOf(response)
			off := denial.ClockAhead + offset
			if off > 2*time.Second || off < -2*time.Second || (seconds == 0) != (denial.ClockAhead == 0) {
				t.Errorf("%d s: %v", seconds, denial.ClockAhead)
			}
			if strings.Contains(denial.Error(), "this clock is 4") != (seconds != 0) {
				t.Error(denial)
			}
		}
	}
}

func TestWarnsOfAWrongClockOnce(t *testing.T) {
	server := newRecorder(t)
	server.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(30*time.Second).UTC().Format(http.TimeFormat))
	}
	var warnings []string
	signer, err := Open(Options{
		KeyFile: writeEnrolled(t, t.TempDir(), server.URL, "dk_1"),
		Warn:    func(message string) { warnings = append(warnings, message) },
	})
	must(t, err)
	client := &http.Client{Transport: &Transport{Signer: signer}}
	for i := 0; i < 2; i++ {
		response, err := client.Get(server.URL + "/v1/a")
		statusOf(t, response, err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "behind") {
		t.Error(warnings)
	}
}

func TestReplacesTheKeyWhile32ConnectionsSend(t *testing.T) {
	server := newRecorder(t)
	folder := t.TempDir()
	signer, err := Open(Options{KeyFile: installPair(t, folder, server.URL, 1)})
	must(t, err)
	base := &http.Transport{MaxIdleConnsPerHost: 32}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: &Transport{Signer: signer, Base: base}}
	done := make(chan struct{})
	var senders sync.WaitGroup
	for i := 0; i < 32; i++ {
		senders.Add(1)
		go func() {
			defer senders.Done()
			for {
				select {
				case <-done:
					return
				default:
				}
				response, err := client.Get(server.URL + "/v1/a")
				if err != nil {
					t.Error(err)
					return
				}
				if status := statusOf(t, response, err); status != 200 {
					t.Error(status)
				}
			}
		}()
	}
	for number := 2; number < 22 && !t.Failed(); number++ {
		installPair(t, folder, server.URL, number)
		deadline := time.Now().Add(time.Minute)
		for keyID := fmt.Sprintf("dk_%d", number); server.signedWith(keyID) < 64 && !t.Failed(); {
			if time.Now().After(deadline) {
				t.Errorf("%s is not used", keyID)
			}
			signer.checkedAt.Store(0)
			time.Sleep(time.Millisecond)
		}
	}
	close(done)
	senders.Wait()
}

func TestKeepsTheOldKeyWhenTheNewOneIsBroken(t *testing.T) {
	folder := t.TempDir()
	var warnings []string
	signer, err := Open(Options{
		KeyFile: installPair(t, folder, "https://api.shop.example", 1),
		Warn:    func(message string) { warnings = append(warnings, message) },
	})
	must(t, err)
	installPair(t, folder, "https://api.shop.example", 2)
	must(t, os.Remove(folder+"/.key.pem.2/key.pem.enrollment.json"))
	signer.checkedAt.Store(0)
	request, _ := http.NewRequest("GET", "https://api.shop.example/v1/a", nil)
	must(t, signer.Sign(request))
	if len(warnings) != 1 || !strings.Contains(warnings[0], "enrollment_missing") {
		t.Error(warnings)
	}
	for _, value := range request.Header {
		for _, shown := range []string{fmt.Sprintf("%v %+v %#v", signer.current.Load().identity.key, signer.current.Load().identity.key, signer.current.Load().identity.key)} {
			if strings.Contains(shown, value[0]) || strings.Contains(shown, "private") {
				t.Error("a key shows itself")
			}
		}
	}
}

func TestStopsSigningOnceTheStateSaysThatTheKeyWasRevoked(t *testing.T) {
	keyFile := writeEnrolled(t, t.TempDir(), "https://api.shop.example", "dk_1")
	signer, err := Open(Options{KeyFile: keyFile})
	must(t, err)
	statePath := keyFile + ".enrollment.json"
	state, err := os.ReadFile(statePath)
	must(t, err)
	must(t, os.WriteFile(statePath, []byte(strings.Replace(string(state), `"active"`, `"revoked"`, 1)), 0o600))
	for i := 0; i < 2; i++ {
		signer.checkedAt.Store(0)
		request, err := http.NewRequest("GET", "https://api.shop.example/v1/orders/7", nil)
		must(t, err)
		if err := signer.Sign(request); codeOf(err) != "key_revoked" {
			t.Error(err)
		}
	}
}

func TestFailsWithTheCodesOfTheCommandLine(t *testing.T) {
	keyFile := writeEnrolled(t, t.TempDir(), "https://api.shop.example", "dk_1")
	statePath := keyFile + ".enrollment.json"
	whole, err := os.ReadFile(statePath)
	must(t, err)
	cases := []struct{ code, old, new string }{
		{"key_revoked", `"active"`, `"revoked"`},
		{"key_expired", "2099", "2020"},
		{"enrollment_state_invalid", `"format":`, `"format":"x","format":`},
		{"enrollment_state_invalid", `"/v1/uploads"`, `"/v1/../uploads"`},
		{"enrollment_pending", `"enrolled":`, `"attempt":`},
		{"enrollment_missing", `"enrolled":`, `"other":`},
	}
	for _, c := range cases {
		must(t, os.WriteFile(statePath, []byte(strings.Replace(string(whole), c.old, c.new, 1)), 0o600))
		if _, err := Open(Options{KeyFile: keyFile}); codeOf(err) != c.code {
			t.Errorf("%s: %v", c.code, err)
		}
	}
	must(t, os.Chmod(keyFile, 0o640))
	if _, err := Open(Options{KeyFile: keyFile}); codeOf(err) != "file_permissions" {
		t.Error(err)
	}
	must(t, os.WriteFile(keyFile+".2", []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), 0o600))
	if _, err := Open(Options{KeyFile: keyFile + ".2"}); codeOf(err) != "private_key_invalid" {
		t.Error(err)
	}
}

func TestRemovesTheHeadersThatAllSDKsRemove(t *testing.T) {
	text, err := os.ReadFile("../../test/caller/sdk/caller-headers.json")
	must(t, err)
	var headers struct{ Credentials, Others [][2]string }
	must(t, json.Unmarshal(text, &headers))
	if len(headers.Credentials) == 0 || len(headers.Others) == 0 {
		t.Fatal("no headers")
	}
	for _, header := range headers.Credentials {
		if left := withoutCredentials(http.Header{header[0]: {header[1]}}); len(left) != 0 {
			t.Errorf("keeps %q", header)
		}
	}
	for _, header := range headers.Others {
		if left := withoutCredentials(http.Header{header[0]: {header[1]}}); len(left) != 1 {
			t.Errorf("removes %q", header)
		}
	}
}
