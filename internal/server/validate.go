package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/lazyregexp"
)

// maxViolations bounds how many broken rules one answer lists.
const maxViolations = 20

func validateUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := validate(req); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func validateStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, validatedStream{stream})
}

// validatedStream validates each incoming message.
type validatedStream struct{ grpc.ServerStream }

// RecvMsg implements grpc.ServerStream.
func (s validatedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return validate(m)
}

func validate(m any) error {
	msg, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	return Validate(msg)
}

// Validate checks a message against the rules in its .proto. The error is the status
// InvalidArgument with a BadRequest that names each field and its limit. Calls over the
// network are validated already; those of Local are not.
func Validate(msg proto.Message) error {
	err := protovalidate.Validate(msg)
	var broken *protovalidate.ValidationError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &broken):
		return fmt.Errorf("validate %s: %w", msg.ProtoReflect().Descriptor().FullName(), err)
	}
	return invalid(broken.Violations)
}

// oneOf finds the plural after a 1, which the rules have.
var oneOf = lazyregexp.New(`\b1 (character|byte|item|value|pair)s\b`)

func invalid(violations []*protovalidate.Violation) error {
	details := &errdetails.BadRequest{}
	var first string
	for _, v := range violations[:min(len(violations), maxViolations)] {
		field := &errdetails.BadRequest_FieldViolation{
			Field:       protovalidate.FieldPathString(v.Proto.GetField()),
			Description: oneOf().ReplaceAllString(v.Proto.GetMessage(), "1 $1"),
			Reason:      reason(v.Proto.GetRuleId()),
		}
		if first == "" {
			first = field.GetField() + ": " + field.GetDescription()
		}
		details.FieldViolations = append(details.FieldViolations, field)
	}
	plain := status.New(codes.InvalidArgument, first)
	if detailed, err := plain.WithDetails(details); err == nil {
		return detailed.Err()
	}
	return plain.Err()
}

// reason writes a rule's id ("string.max_bytes") in the form that a field
// violation's reason has (STRING_MAX_BYTES).
func reason(ruleID string) string {
	return strings.ToUpper(strings.ReplaceAll(ruleID, ".", "_"))
}
