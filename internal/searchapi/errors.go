package searchapi

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/trawl-search/trawl/index/query"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// FieldError is an error about one field of a request. Its details name the field and
// say what is wrong with it or which limit it exceeds.
func FieldError(code codes.Code, field, description string) error {
	return withDetails(status.New(code, field+": "+description), badField(field, description))
}

// FieldOf is the field of the request that an error is about, as FieldError names it; empty if it names none.
func FieldOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok && len(bad.GetFieldViolations()) > 0 {
			return bad.GetFieldViolations()[0].GetField()
		}
	}
	return ""
}

// NotFound is the error about a field that names what does not exist: NOT_FOUND. The names that come nearest are in its text and in its
// details, as far as they are short.
func NotFound(field, description string, nearest []string) error {
	nearest = slices.DeleteFunc(slices.Clone(nearest), func(name string) bool { return len(name) > nearestBytes })
	quoted := make([]string, len(nearest))
	for i, name := range nearest {
		quoted[i], nearest[i] = strconv.Quote(name), strings.ToValidUTF8(name, "\ufffd")
	}
	if len(quoted) > 0 {
		description += "; the nearest: " + strings.Join(quoted, ", ")
	}
	return withDetails(status.New(codes.NotFound, field+": "+description), badField(field, description), &searchv1.NotFound{Field: field, Nearest: nearest})
}

// nearestBytes bounds a name in an error, in bytes: several of them, twice, travel in a header.
const nearestBytes = 300

// NotFoundOf is the detail of an error that NotFound made, or nil.
func NotFoundOf(err error) *searchv1.NotFound {
	for _, detail := range status.Convert(err).Details() {
		if d, ok := detail.(*searchv1.NotFound); ok {
			return d
		}
	}
	return nil
}

// FileNotFound is the error of a GetFile whose file does not exist. Elsewhere is another branch that has the file; empty if none is known.
func FileNotFound(req *searchv1.GetFileRequest, elsewhere string, nearest []string) error {
	text := fmt.Sprintf("no file %s in %s on any branch", shownPath(req.GetPath()), req.GetRepo())
	if req.GetBranch() != "" {
		text = fmt.Sprintf("no file %s in %s on branch %q", shownPath(req.GetPath()), req.GetRepo(), req.GetBranch())
	}
	if elsewhere != "" {
		text += fmt.Sprintf(", but on branch %q", elsewhere)
	}
	if slices.Contains(nearest, string(TreePath(req.GetPath()))+"/") {
		text += ", but a folder"
	}
	return NotFound("path", text, besides(req.GetPath(), nearest))
}

// FolderNotFound is the error of a ListTree whose folder does not exist.
func FolderNotFound(req *searchv1.ListTreeRequest, branch string, nearest []string) error {
	text := fmt.Sprintf("no folder %s in %s on branch %q", shownPath(req.GetPath()), req.GetRepo(), branch)
	if slices.Contains(nearest, string(TreePath(req.GetPath()))) {
		text += ", but a file"
	}
	return NotFound("path", text, besides(req.GetPath(), nearest))
}

// besides leaves out of the nearest names the one that was asked for, which exists as the other kind.
func besides(asked []byte, nearest []string) []string {
	return slices.DeleteFunc(slices.Clone(nearest), func(name string) bool { return name == string(asked) })
}

// shownPath is a path in an error, or its end.
func shownPath(path []byte) string {
	if len(path) > nearestBytes {
		return "…" + strconv.Quote(string(path[len(path)-nearestBytes:]))
	}
	return strconv.Quote(string(path))
}

func badField(field, description string) *errdetails.BadRequest {
	return &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
		{Field: field, Description: description},
	}}
}

// QueryError is the status of a query that could not be parsed or run: its
// details are a QueryError and the field.
func QueryError(field string, err error) error {
	detail := &searchv1.QueryError{}
	var syntax *query.SyntaxError
	var limit *query.LimitError
	switch {
	case errors.As(err, &syntax):
		detail.Position = uint32(max(syntax.Position, 0))
		detail.Found, detail.Expected = syntax.Found, syntax.Expected
	case errors.As(err, &limit):
		detail.Limit = limit.Limit
	}
	return withDetails(status.New(codes.InvalidArgument, "query: "+err.Error()), detail, badField(field, err.Error()))
}

// maxErrorDetail bounds the coverage in an error's details: they travel in a header,
// and proxies commonly refuse headers of more than 8 KiB.
const maxErrorDetail = 3 << 10

// Incomplete is the error of an incomplete answer to a request that requires
// completeness. Its details hold the coverage, with as many of the uncovered shards
// as fit.
func Incomplete(c *searchv1.Coverage) error {
	code := codes.FailedPrecondition
	if c.Failed == 0 && c.NotReached > 0 {
		code = codes.DeadlineExceeded
	}
	text := "the answer is incomplete and require_complete is set: " + MissingShards(c)
	if len(c.Uncovered) > 0 {
		text += fmt.Sprintf("; the first: %s (%s)", c.Uncovered[0].Message, ReasonText(c.Uncovered[0].Reason))
	}
	return withDetails(status.New(code, text), TrimCoverage(c, maxErrorDetail))
}

// withDetails drops details that cannot be added, and keeps the error.
func withDetails(s *status.Status, details ...protoadapt.MessageV1) error {
	if full, err := s.WithDetails(details...); err == nil {
		return full.Err()
	}
	return s.Err()
}
