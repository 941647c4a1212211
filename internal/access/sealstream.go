package access

import (
	"context"

	"google.golang.org/grpc"
)

// Stream is the interceptor of a router's connections for calls with a stream of
// answers. Metadata precedes the request, and the seal depends on the request, so the
// call begins with the first message.
func (s Sealer) Stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if !sealable(method) || desc.ClientStreams {
		return open(ctx, desc, conn, method, opts...)
	}
	return &sealing{ClientStream: notBegun{ctx: ctx}, begin: func(req any) (grpc.ClientStream, error) {
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
	grpc.ClientStream // a notBegun until the request is sent

	begin func(req any) (grpc.ClientStream, error)
}

// SendMsg implements grpc.ClientStream.
func (s *sealing) SendMsg(m any) error {
	if _, early := s.ClientStream.(notBegun); early {
		begun, err := s.begin(m)
		if err != nil {
			return err
		}
		s.ClientStream = begun
	}
	return s.ClientStream.SendMsg(m)
}

// notBegun stands for a stream without a request. Generated clients send that first, so nothing else is called.
type notBegun struct {
	grpc.ClientStream

	ctx context.Context //nolint:containedctx // a stream has one, by its interface
}

// Context implements grpc.ClientStream.
func (s notBegun) Context() context.Context { return s.ctx }
