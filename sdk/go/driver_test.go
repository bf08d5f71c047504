package proofgate

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"
)

// The test binary is also the driver of test/caller/sdk/README.md, because only tests may choose clock and identifiers.
func TestMain(m *testing.M) {
	if keyFile := os.Getenv("PROOFGATE_SDK_DRIVER_KEY"); keyFile != "" {
		drive(keyFile)
		return
	}
	os.Exit(m.Run())
}

type driverJob struct {
	ID      int         `json:"id"`
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
	Body    *[]byte     `json:"body_base64"`
	Now     int64       `json:"now"`
	JTI     string      `json:"jti"`
	Nonce   string      `json:"dpop_nonce"`
}

type driverAnswer struct {
	ID         int         `json:"id"`
	Headers    [][2]string `json:"headers"`
	Transcript string      `json:"transcript_base64"`
	Error      string      `json:"error,omitempty"`
}

func drive(keyFile string) {
	proof := proofs[os.Getenv("PROOFGATE_SDK_DRIVER_PROOF")]
	signer, err := Open(Options{KeyFile: keyFile, Proof: proof})
	if err != nil {
		panic(err)
	}
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.More() {
		var job driverJob
		if err := in.Decode(&job); err != nil {
			panic(err)
		}
		signer.now = func() time.Time { return time.Unix(job.Now, 0) }
		signer.newJTI = func() (string, error) { return job.JTI, nil }
		if err := json.NewEncoder(out).Encode(answerOf(signer, job)); err != nil {
			panic(err)
		}
	}
}

func answerOf(signer *Signer, job driverJob) driverAnswer {
	answer := driverAnswer{ID: job.ID, Headers: [][2]string{}}
	headers, body := http.Header{}, bodyDigest{}
	for _, line := range job.Headers {
		headers[line[0]] = append(headers[line[0]], line[1])
	}
	if job.Body != nil {
		body = bodyDigest{sha256.Sum256(*job.Body), int64(len(*job.Body))}
	}
	chosen, err := signer.chooseFor(job.Method, job.URL)
	if err == nil {
		signer.nonces = serverNonces{byOrigin: map[string]string{chosen.url.origin(): job.Nonce}}
		answer.Headers, err = signer.credentials(headers, chosen, body)
	}
	var failure *SigningError
	if errors.As(err, &failure) {
		return driverAnswer{ID: job.ID, Headers: [][2]string{}, Error: failure.Code}
	}
	if err != nil {
		panic(err)
	}
	if signer.options.Proof == TranscriptV1 {
		transcript, _ := decodeBase64url(answer.Headers[1][1])
		answer.Transcript = base64.StdEncoding.EncodeToString(transcript)
	}
	return answer
}
