package fanout

import (
	"errors"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const corrupt = searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT

// plainWords are what callers read of a shard that a searcher did not search. The texts
// of searchers, of gRPC and of operating systems can hold addresses and paths.
var plainWords = map[searchv1.UncoveredReason]string{
	notCovered:  "does not hold it",
	deadline:    "did not reach it before the deadline",
	corrupt:     "found it damaged",
	unreachable: "could not be reached",
	failedOther: "failed to search it",
}

// plainMessage is what callers read in place of a text. The log gets the text if it says more than
// the reason.
func (s *scatter[R]) plainMessage(target Target, reason searchv1.UncoveredReason, text string) string {
	words := plainWords[reason]
	if reason != corrupt && reason != failedOther {
		return searcherMessage(target, words)
	}
	s.Peers.log.LogAttrs(s.ctx, slog.LevelWarn, "searcher failed", slog.String("searcher", target.ID), slog.String("what", words), slog.String("error", text))
	return searcherMessage(target, words+s.logReference())
}

// logReference says where the cause of a failure is.
func (s *scatter[R]) logReference() string {
	if ids := trace.SpanContextFromContext(s.ctx); ids.HasTraceID() {
		return fmt.Sprintf("; the router's log has the cause, with trace id %s", ids.TraceID())
	}
	return "; the router's log has the cause"
}

// failure is why the shards of a call were not searched, or not wholly, for callers.
type failure struct {
	reason  searchv1.UncoveredReason
	message string
	inPart  bool
}

// failureOf is the failure of a call with an error. Over is true if the deadline ended it.
func (s *scatter[R]) failureOf(target Target, err error, over bool) failure {
	code, text := status.Code(err), status.Convert(err).Message()
	switch {
	case over:
		return failure{reason: deadline, message: lateMessage(target)}
	case errors.Is(err, ErrNotAsked):
		return failure{reason: failedOther, message: text}
	case endsCall(code):
		s.Peers.log.LogAttrs(s.ctx, slog.LevelDebug, "searcher ended a call", slog.String("searcher", target.ID), slog.String("error", text))
		return failure{reason: failedOther, message: searcherMessage(target, "ended the call before its deadline")}
	case writtenForCallers[code]:
		return failure{reason: failedOther, message: searcherMessage(target, text)}
	case code == codes.Unavailable:
		return failure{reason: unreachable, message: s.plainMessage(target, unreachable, text)}
	}
	return failure{reason: failedOther, message: s.plainMessage(target, failedOther, text)}
}

// writtenForCallers are the codes by which searchers say what is wrong with a request, or
// that they have no room for it.
var writtenForCallers = map[codes.Code]bool{
	codes.InvalidArgument: true, codes.FailedPrecondition: true, codes.OutOfRange: true, codes.ResourceExhausted: true, codes.Unimplemented: true,
}
