package proofgate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// Denial is the verifier's answer to a request that did not reach the API behind it.
type Denial struct {
	Status     int
	Reason     string
	Detail     string
	DecisionID string
	RouteID    string
	RetryAfter time.Duration
	// ClockAhead is how far the local clock is ahead of the server's, negative when it is behind; 0 where it is not the matter.
	ClockAhead time.Duration
}

func (d *Denial) Error() string {
	text := fmt.Sprintf("%d %s", d.Status, d.Reason)
	if d.Detail != "" {
		text += "/" + d.Detail
	}
	if d.Reason == "jti_replay" {
		text += repeated
	}
	if d.ClockAhead != 0 {
		text += "; " + clockText(d.ClockAhead)
	}
	return text
}

// Each request is signed anew, so the client did not send this proof twice.
const repeated = "; something on the way repeated this request, and an earlier copy may have been executed: " +
	"ask the API before you send it again"

var reasonPattern = regexp.MustCompile(`^[a-z_]{1,64}$`)

const (
	maxProblemBytes = 64 << 10
	// A site's default; Date and the network add one second.
	skew              = 5 * time.Second
	clockWarnInterval = time.Minute
)

// DenialOf returns the verifier's denial, or nil when the answer is not one. The body can still be read afterwards.
func DenialOf(response *http.Response) *Denial {
	reason := response.Header.Get("X-Proofgate-Reason")
	// 429: a 503 that comes through an Envoy which asks over HTTP (docs/design/protocol.md).
	isStatus := map[int]bool{401: true, 403: true, 429: true, 503: true}[response.StatusCode]
	if !isStatus || !reasonPattern.MatchString(reason) {
		return nil
	}
	start, _ := io.ReadAll(io.LimitReader(response.Body, maxProblemBytes))
	sentAt := sentAtOf(response)
	response.Body = &sentBody{struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), response.Body), response.Body}, sentAt}
	var problem map[string]any
	_ = json.Unmarshal(start, &problem)
	denial := &Denial{
		Status:     response.StatusCode,
		Reason:     reason,
		Detail:     visible(problem["detail"]),
		DecisionID: visible(problem["decision_id"]),
		RouteID:    visible(problem["route_id"]),
	}
	if after, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 20); err == nil {
		denial.RetryAfter = time.Duration(after) * time.Second
	}
	if reason == "invalid_request_proof" {
		denial.ClockAhead = clockAhead(response, sentAt)
	}
	return denial
}

func visible(value any) string {
	if found := text(value); isIdentifier(found) {
		return found
	}
	return ""
}

// sentBody is the body of a denial that knows when its request was sent.
type sentBody struct {
	io.ReadCloser
	at time.Time
}

func sentAtOf(response *http.Response) time.Time {
	if body, ok := response.Body.(*sentBody); ok {
		return body.at
	}
	return time.Time{}
}

// clockAhead is 0 within the skew. Without the time of sending, only a clock that is behind is certain.
func clockAhead(response *http.Response, sentAt time.Time) time.Duration {
	server, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return 0
	}
	// The server read its clock between sending and now, and dropped the fraction.
	if ahead := sentAt.Sub(server) - time.Second; !sentAt.IsZero() && ahead > skew {
		return ahead
	}
	if behind := server.Sub(time.Now()); behind > skew {
		return -behind
	}
	return 0
}

func clockText(ahead time.Duration) string {
	side := "ahead of"
	if ahead < 0 {
		side, ahead = "behind", -ahead
	}
	return fmt.Sprintf("this clock is %d s %s the server's; verifiers accept 5 s by default: synchronize it",
		int(ahead.Round(time.Second).Seconds()), side)
}

// checkClock warns, at most once a minute, when Date and the local clock differ too much.
func (t *Transport) checkClock(signer *Signer, response *http.Response, sentAt time.Time) {
	ahead := clockAhead(response, sentAt)
	if response.StatusCode == http.StatusUnauthorized {
		response.Body = &sentBody{response.Body, sentAt}
	}
	if ahead == 0 {
		return
	}
	last, now := t.warnedAt.Load(), time.Now()
	if now.UnixNano()-last < int64(clockWarnInterval) || !t.warnedAt.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	signer.warn(clockText(ahead))
}
