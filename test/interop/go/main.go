// Signs one request, as docs/design/protocol.md says: a job as JSON on standard input, the headers as JSON on standard
// output. Needs Go 1.21 and nothing else. The job is described in ../README.md.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

type job struct {
	HolderKeyFile string          `json:"holder_key_file"`
	Passport      passportRequest `json:"passport"`
	AuthSite      string          `json:"auth_site"`
	Route         route           `json:"route"`
	Request       request         `json:"request"`
	AlsoSigned    []string        `json:"also_signed"`
	JTI           string          `json:"jti"`
	IssuedAt      int64           `json:"issued_at"`
	ExpiresAt     int64           `json:"expires_at"`
}

type route struct {
	RouteID        string   `json:"route_id"`
	Audience       string   `json:"audience"`
	Body           string   `json:"body"`
	SignedHeaders  []string `json:"signed_headers"`
	PassportHeader string   `json:"passport_header"`
}

type request struct {
	Method     string      `json:"method"`
	URL        string      `json:"url"`
	Headers    [][2]string `json:"headers"`
	BodyBase64 []byte      `json:"body_base64"`
}

type answer struct {
	Authority  string            `json:"authority"`
	Target     string            `json:"target"`
	Transcript string            `json:"transcript"`
	Headers    map[string]string `json:"headers"`
}

func main() {
	var asked job
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fail(err)
	}
	signed, err := sign(asked, time.Now().Unix())
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(signed); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "sign: %v\n", err)
	os.Exit(1)
}
