package searchapi

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Overloaded is the error of a request that is refused because of overload:
// RESOURCE_EXHAUSTED, with a google.rpc.RetryInfo that says when to try again.
func Overloaded(what string, retryAfter time.Duration) error {
	return withDetails(status.New(codes.ResourceExhausted, what), &errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
}

// IsOverloaded reports whether an error was made by Overloaded. The code alone does not
// say so: gRPC also uses it for messages that are too large.
func IsOverloaded(err error) bool {
	if status.Code(err) != codes.ResourceExhausted {
		return false
	}
	for _, detail := range status.Convert(err).Details() {
		if _, ok := detail.(*errdetails.RetryInfo); ok {
			return true
		}
	}
	return false
}
