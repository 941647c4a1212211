package mcptools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// plainError is an error text for the caller.
type plainError string

// Error implements error.
func (e plainError) Error() string { return string(e) }

// queryError is the error of a query that cannot be parsed, with the place in the
// caller's own text.
type queryError struct {
	text            string
	position        int
	found, expected string
	hint            string
	otherwise       string // the text if there is no position
}

// Error implements error.
func (e *queryError) Error() string {
	if e.expected == "" {
		return e.otherwise
	}
	at := min(e.position, len(e.text))
	around := part{text: e.text[:at] + "⟨here⟩" + e.text[at:]}.around(at, 200)
	return fmt.Sprintf("cannot read %s: position %d: found %s, expected %s%s", around, e.position, e.found, e.expected, e.hint)
}

// inPattern adds the caller's own text to an error about the query that was made from it.
func (f *find) inPattern(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, detail := range s.Details() {
		d, ok := detail.(*searchv1.QueryError)
		if !ok {
			continue
		}
		e := &queryError{text: f.query, position: int(d.GetPosition()), found: d.GetFound(), expected: d.GetExpected(), otherwise: s.Message()}
		if f.locate != nil {
			e.text, e.position = f.text, min(max(f.locate(e.position), 0), len(f.text))
		}
		if f.literalHint {
			// The rest is advice on quotes of the query language, which patterns do not have.
			e.expected, _, _ = strings.Cut(e.expected, ";")
			e.hint = "; to search for the text as it is, set literal"
		}
		return e
	}
	return err
}

// problem is an error for the model: what happened, and what to do.
func problem(err error) error {
	if own, ok := errors.AsType[*queryError](err); ok {
		return own
	}
	if own, ok := errors.AsType[plainError](err); ok {
		return own
	}
	if errors.Is(err, errCursor) {
		return errCursor
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the time for this call is over: ask for fewer repos or paths, or a longer text")
	}
	coded, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	if !ok {
		return err
	}
	s := coded.GRPCStatus()
	text := strings.ToValidUTF8(s.Message(), "�")
	if searchapi.IsOverloaded(err) {
		return fmt.Errorf("%s: wait a second, and make fewer calls at once", text)
	}
	switch s.Code() {
	case codes.Unavailable:
		return fmt.Errorf("Trawl cannot be reached or is not ready (%s): try again in a few seconds", text) //nolint:staticcheck // a name
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s: ask for fewer repos or paths, or a longer text", text)
	case codes.Unauthenticated, codes.PermissionDenied:
		return fmt.Errorf("%s: this cannot be solved by another call", text)
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return fmt.Errorf("internal error (%s): try again, and report it if it stays", text)
	}
	return errors.New(text)
}

// missing is problem with advice where to find the names of what does not exist.
func missing(err error) error {
	own, field := problem(err), searchapi.NotFoundOf(err).GetField()
	advice := map[string]string{"repo": "; list_repos shows all that there are", "path": "; glob and list_tree find paths"}
	if field == "" {
		return own
	}
	return errors.New(strings.TrimPrefix(own.Error(), field+": ") + advice[field])
}
