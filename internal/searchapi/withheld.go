package searchapi

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// withheld is an error whose text is for the log, since it can hold addresses, paths and
// names of other callers' repos. Callers get its status.
type withheld struct {
	public *status.Status
	cause  error
}

// Withhold makes an error that shows callers only the words, and the log also the cause.
func Withhold(code codes.Code, words string, cause error) error {
	return &withheld{status.New(code, words), cause}
}

// Error implements error.
func (w *withheld) Error() string { return w.public.Message() + ": " + w.cause.Error() }

// Unwrap returns the cause.
func (w *withheld) Unwrap() error { return w.cause }

// GRPCStatus is what callers get.
func (w *withheld) GRPCStatus() *status.Status { return w.public }
