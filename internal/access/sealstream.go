package access

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Stream is the interceptor of a router's connections for calls with a stream of
// answers. Metadata precedes the request, and the seal depends on the request, so the
// call begins with the first message.
func (s Sealer) Stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if !sealable(method) || desc.ClientStreams {
		return open(ctx, desc, conn, method, opts...)
	}
	return &sealing{ctx: ctx, begin: func(req any) (grpc.ClientStream, error) {
		ctx, err := s.seal(ctx, method, req)
		if err != nil {
			return nil, err
		}
		return open(ctx, desc, conn, method, opts...)
	}}, nil
}

// sealing is a stream that begins with its only request. Like any client's stream it
// is not for concurrent use.
type sealing struct {
	ctx   context.Context //nolint:containedctx // a stream has one, by its interface
	begin func(req any) (grpc.ClientStream, error)
	// begun is nil until the request is sent.
	begun grpc.ClientStream
}

var errNotBegun = errors.New("the stream has no request yet")

// SendMsg implements grpc.ClientStream.
func (s *sealing) SendMsg(m any) error {
	if s.begun == nil {
		begun, err := s.begin(m)
		if err != nil {
			return err
		}
		s.begun = begun
	}
	return s.begun.SendMsg(m)
}

// RecvMsg implements grpc.ClientStream.
func (s *sealing) RecvMsg(m any) error {
	if s.begun == nil {
		return errNotBegun
	}
	return s.begun.RecvMsg(m)
}

// CloseSend implements grpc.ClientStream.
func (s *sealing) CloseSend() error {
	if s.begun == nil {
		return errNotBegun
	}
	return s.begun.CloseSend()
}

// Header implements grpc.ClientStream.
func (s *sealing) Header() (metadata.MD, error) {
	if s.begun == nil {
		return nil, errNotBegun
	}
	return s.begun.Header()
}

// Trailer implements grpc.ClientStream.
func (s *sealing) Trailer() metadata.MD {
	if s.begun == nil {
		return nil
	}
	return s.begun.Trailer()
}

// Context implements grpc.ClientStream.
func (s *sealing) Context() context.Context {
	if s.begun == nil {
		return s.ctx
	}
	return s.begun.Context()
}
