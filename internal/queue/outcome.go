package queue

import (
	"errors"
	"time"
)

// permanentError and laterError carry a handler's decision to Consume.
type (
	permanentError struct{ error }
	laterError     struct {
		error
		delay time.Duration
	}
)

// Unwrap returns the cause.
func (e permanentError) Unwrap() error { return e.error }

// Unwrap returns the cause.
func (e laterError) Unwrap() error { return e.error }

// Permanent marks an error that another try cannot change: the job becomes a dead
// letter with the error's text as its reason. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// Later marks an error that is not the job's fault: the job is delivered again after
// about delay, however often that happens. Later(nil, …) is nil.
func Later(err error, delay time.Duration) error {
	if err == nil {
		return nil
	}
	return laterError{err, max(delay, 0)}
}

// IsPermanent reports whether err was marked by Permanent.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[permanentError](err)
	return ok
}
