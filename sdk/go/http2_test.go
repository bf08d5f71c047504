package proofgate

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
)

// Frames of HTTP/2 (RFC 9113 section 6).
const (
	frameHeaders   = 1
	frameReset     = 3
	frameSettings  = 4
	frameGoAway    = 7
	refusedStream  = 7
	endOfBoth      = 0x05
	hpackStatus200 = 0x88
)

func writeFrame(w io.Writer, kind, flags byte, stream uint32, payload ...byte) {
	head := make([]byte, 9, 9+len(payload))
	binary.BigEndian.PutUint32(head, uint32(len(payload))<<8)
	head[3], head[4] = kind, flags
	binary.BigEndian.PutUint32(head[5:], stream)
	w.Write(append(head, payload...))
}

// serveFrames answers each request with 200, unless refuse has done something else.
func serveFrames(connection net.Conn, refuse func(w io.Writer, stream uint32) (isDone, isEnd bool)) {
	defer connection.Close()
	if _, err := io.ReadFull(connection, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	writeFrame(connection, frameSettings, 0, 0)
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(connection, head); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(connection, payload); err != nil {
			return
		}
		stream := binary.BigEndian.Uint32(head[5:])
		switch {
		case head[3] == frameSettings && head[4] == 0:
			writeFrame(connection, frameSettings, 1, 0)
		case head[3] == frameHeaders:
			isDone, isEnd := refuse(connection, stream)
			if isEnd {
				io.Copy(io.Discard, connection)
				return
			}
			if !isDone {
				writeFrame(connection, frameHeaders, endOfBoth, stream, hpackStatus200)
			}
		}
	}
}

func TestSendsNoProofTwiceOverHTTP2(t *testing.T) {
	refusals := map[string]func(w io.Writer, stream uint32) bool{
		"REFUSED_STREAM": func(w io.Writer, stream uint32) bool {
			writeFrame(w, frameReset, 0, stream, 0, 0, 0, refusedStream)
			return false
		},
		"GOAWAY": func(w io.Writer, _ uint32) bool {
			writeFrame(w, frameGoAway, 0, 0, make([]byte, 8)...)
			return true
		},
	}
	identity := httptest.NewUnstartedServer(nil)
	identity.StartTLS()
	defer identity.Close()
	for name, refuse := range refusals {
		for _, method := range []string{"GET", "POST"} {
			config := &tls.Config{Certificates: identity.TLS.Certificates, NextProtos: []string{"h2"}}
			listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
			must(t, err)
			var mutex sync.Mutex
			requests := 0
			go func() {
				for {
					connection, err := listener.Accept()
					if err != nil {
						return
					}
					go serveFrames(connection, func(w io.Writer, stream uint32) (bool, bool) {
						mutex.Lock()
						requests++
						isRefused := requests == 2
						mutex.Unlock()
						return isRefused, isRefused && refuse(w, stream)
					})
				}
			}()
			base := identity.Client().Transport.(*http.Transport).Clone()
			base.ForceAttemptHTTP2 = true
			origin := "https://" + listener.Addr().String()
			client := &http.Client{Transport: &Transport{KeyFile: writeEnrolled(t, t.TempDir(), origin, "dk_1"), Base: base}}
			proofs := map[string]int{}
			trace := &httptrace.ClientTrace{WroteHeaderField: func(key string, values []string) {
				if strings.EqualFold(key, "X-Proofgate-Signature") {
					mutex.Lock()
					proofs[values[0]]++
					mutex.Unlock()
				}
			}}
			for i := 0; i < 2; i++ {
				request, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), method, origin+"/v1/a", strings.NewReader("x"))
				must(t, err)
				response, err := client.Do(request)
				if status := statusOf(t, response, err); status != 200 || response.ProtoMajor != 2 {
					t.Errorf("%s, %s: %d", name, method, status)
				}
			}
			mutex.Lock()
			if requests != 3 || len(proofs) != 3 {
				t.Errorf("%s, %s: %d requests, proofs %v", name, method, requests, proofs)
			}
			mutex.Unlock()
			base.CloseIdleConnections()
			listener.Close()
		}
	}
}
