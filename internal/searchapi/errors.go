package searchapi

import (
	"errors"
	"fmt"

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

// FileNotFound is the error of a GetFile whose file does not exist: NOT_FOUND.
func FileNotFound(req *searchv1.GetFileRequest) error {
	branch := "any branch"
	if req.GetBranch() != "" {
		branch = fmt.Sprintf("branch %q", req.GetBranch())
	}
	return FieldError(codes.NotFound, "path", fmt.Sprintf("no file %q in %s on %s", req.GetPath(), req.GetRepo(), branch))
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
	text := fmt.Sprintf("the answer is incomplete and require_complete is set: of %d shards %d failed and %d were not reached",
		c.Requested, c.Failed, c.NotReached)
	if len(c.Uncovered) > 0 {
		text += fmt.Sprintf("; the first: %s (%s)", c.Uncovered[0].Message, c.Uncovered[0].Reason)
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
