package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Error is one setting that is wrong.
type Error struct {
	// Key names the setting, such as grpc.addr.
	Key string
	// Value is its text; empty for unknown keys.
	Value string
	// Source says where the value came from: a file, a variable, a flag or the default.
	// Load fills it in.
	Source string
	// Want is what is allowed, or what is wrong.
	Want string
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Key
	if e.Value != "" || strings.HasPrefix(e.Want, "want") {
		text += " = " + strconv.Quote(e.Value)
	}
	if e.Source != "" {
		text += " (" + e.Source + ")"
	}
	return text + ": " + e.Want
}

// Check collects what is wrong with the settings of a component, for its
// Validate. The zero value is ready. It is for one goroutine.
type Check struct{ problems []error }

// That records a complaint about key unless ok. The wanted text completes
// "want …", such as "at least 1".
func (c *Check) That(ok bool, key string, value any, want string) {
	if !ok {
		c.problems = append(c.problems, &Error{Key: key, Value: fmt.Sprint(value), Want: "want " + want})
	}
}

// Nested validates the configuration of a part, whose keys are below key. The key of
// an embedded configuration, whose keys are the parent's, is empty.
func (c *Check) Nested(key string, part interface{ Validate() error }) {
	for _, p := range unjoin(part.Validate()) {
		e, ok := errors.AsType[*Error](p)
		if !ok {
			e = &Error{Want: p.Error()}
		}
		inner := *e
		inner.Key = strings.Trim(key+"."+e.Key, ".")
		c.problems = append(c.problems, &inner)
	}
}

// Err joins all complaints; it is nil if there are none.
func (c *Check) Err() error { return errors.Join(c.problems...) }

// Between complains unless lo ≤ value ≤ hi.
func Between[T cmp.Ordered](c *Check, key string, value, lo, hi T) {
	c.That(lo <= value && value <= hi, key, value, fmt.Sprintf("from %v to %v", lo, hi))
}

// OneOf complains unless value is one of the allowed ones.
func (c *Check) OneOf(key, value string, allowed ...string) {
	c.That(slices.Contains(allowed, value), key, value, "one of "+strings.Join(allowed, ", "))
}

// NotEmpty complains about an empty value.
func (c *Check) NotEmpty(key, value string) {
	c.That(value != "", key, value, "a value that is not empty")
}

// Address complains unless value is HOST:PORT, where the host may be empty (all
// interfaces) and the port is a number; 0 takes a free one.
func (c *Check) Address(key, value string) {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	c.That(err == nil, key, value, "HOST:PORT with a port from 0 to 65535")
}

// unjoin lists the parts of a joined error, recursively; nil has none.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		return []error{err}
	}
	var parts []error
	for _, part := range many.Unwrap() {
		parts = append(parts, unjoin(part)...)
	}
	return parts
}
