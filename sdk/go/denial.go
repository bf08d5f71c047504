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
}

func (d *Denial) Error() string {
	if d.Detail == "" {
		return fmt.Sprintf("%d %s", d.Status, d.Reason)
	}
	return fmt.Sprintf("%d %s/%s", d.Status, d.Reason, d.Detail)
}

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
	// 429: a 503 that comes through an Envoy which asks over HTTP (docs/protocol.md).
	isStatus := map[int]bool{401: true, 403: true, 429: true, 503: true}[response.StatusCode]
	if !isStatus || !reasonPattern.MatchString(reason) {
		return nil
	}
	start, _ := io.ReadAll(io.LimitReader(response.Body, maxProblemBytes))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), response.Body), response.Body}
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
	return denial
}

func visible(value any) string {
	if found := text(value); isIdentifier(found) {
		return found
	}
	return ""
}

// checkClock warns, at most once a minute, when Date and the local clock differ too much.
func (t *Transport) checkClock(signer *Signer, response *http.Response, sentAt time.Time) {
	server, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return
	}
	// The server read its clock between sending and now, and dropped the fraction.
	ahead, behind := sentAt.Sub(server)-time.Second, server.Sub(time.Now())
	if ahead <= skew && behind <= skew {
		return
	}
	last, now := t.warnedAt.Load(), time.Now()
	if now.UnixNano()-last < int64(clockWarnInterval) || !t.warnedAt.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	off, side := ahead, "ahead of"
	if behind > skew {
		off, side = behind, "behind"
	}
	signer.warn(fmt.Sprintf("the local clock is %s %s the server's: proofs may be denied", off.Round(time.Second), side))
}
