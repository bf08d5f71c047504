package proofgate

import "fmt"

// SigningError says why a request was not signed and not sent. Code is stable and the same as in the command line.
type SigningError struct {
	Code    string
	Message string
}

func (e *SigningError) Error() string { return e.Code + ": " + e.Message }

func failf(code, format string, args ...any) *SigningError {
	return &SigningError{Code: code, Message: fmt.Sprintf(format, args...)}
}
