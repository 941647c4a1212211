package server

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// To is a call option by which a caller that takes all messages of a stream of answers offers to have them passed to
// take. A local server needs it for every stream. It runs the handler on the caller's goroutine, within CloseSend: the
// generated client returns when the handler has, and Recv returns only how the call ended. Other connections ignore the
// option, and the caller receives the messages as usual. An error of take ends the call, and is what Recv returns.
func To[M any](take func(M) error) grpc.CallOption {
	return taker{take: func(m any) error {
		message, ok := m.(M)
		if !ok {
			return status.Errorf(codes.Internal, "a %T came, which is not a %T", m, message)
		}
		return take(message)
	}}
}

type taker struct {
	grpc.EmptyCallOption

	take func(m any) error
}

// takerOf is how the caller takes messages; nil without the option To.
func takerOf(opts []grpc.CallOption) func(any) error {
	for _, opt := range opts {
		if t, ok := opt.(taker); ok {
			return t.take
		}
	}
	return nil
}

// NewStream implements grpc.ClientConnInterface for streams of answers, with the option To.
func (l *Local) NewStream(ctx context.Context, asked *grpc.StreamDesc, name string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	take := takerOf(opts)
	if take == nil || asked.ClientStreams {
		return nil, status.Errorf(codes.Unimplemented, "%s: a local stream is one of answers, and needs the option To", name)
	}
	return directClient{&direct{local: l, name: name, opts: opts, take: take, ctx: ctx}}, nil
}

// handle runs the handler of a stream. Its error is as the caller sees it.
func (l *Local) handle(call *localCall, stream grpc.ServerStream) error {
	desc := call.method.stream
	if desc == nil {
		return status.Errorf(codes.Internal, "%s is no stream", call.name)
	}
	info := &grpc.StreamServerInfo{FullMethod: call.name, IsClientStream: desc.ClientStreams, IsServerStream: desc.ServerStreams}
	return asSeen(l.stream(call.method.impl, stream, info, desc.Handler))
}

// direct is a stream whose handler runs on the caller's goroutine. It is both ends of it.
type direct struct {
	local *Local
	name  string
	opts  []grpc.CallOption
	take  func(any) error
	// ctx is the caller's, and serverCtx the handler's.
	ctx, serverCtx context.Context //nolint:containedctx // they are the stream's
	// req is the request until the handler has it.
	req any
	// call is nil until the handler runs.
	call *localCall
	// refused is the error of take, and err how the call ended.
	refused, err error
}

// directClient and directServer are the caller's and the handler's end.
type (
	directClient struct{ *direct }
	directServer struct{ *direct }
)

var (
	_ grpc.ClientStream = directClient{}
	_ grpc.ServerStream = directServer{}
)

// Context implements grpc.ClientStream.
func (c directClient) Context() context.Context { return c.ctx }

// Header implements grpc.ClientStream. It is nil before CloseSend.
func (c directClient) Header() (metadata.MD, error) {
	if c.call == nil {
		return nil, c.err
	}
	return c.call.header, nil
}

// Trailer implements grpc.ClientStream. It is nil before CloseSend.
func (c directClient) Trailer() metadata.MD {
	if c.call == nil {
		return nil
	}
	return c.call.trailer
}

// SendMsg implements grpc.ClientStream.
func (c directClient) SendMsg(m any) error {
	c.req = m
	return nil
}

// CloseSend implements grpc.ClientStream. It runs the handler.
func (c directClient) CloseSend() error {
	if c.err == nil {
		c.err = c.run()
	}
	return nil
}

// run returns how the call ended, which is never nil.
func (c directClient) run() (err error) {
	if c.serverCtx, c.call, err = c.local.begin(c.ctx, c.name, c.opts); err != nil {
		return err
	}
	defer c.local.end(c.call)
	defer c.call.report()
	switch err := c.local.handle(c.call, directServer(c)); {
	case c.refused != nil:
		return c.refused
	case err != nil:
		return err
	}
	return io.EOF
}

// RecvMsg implements grpc.ClientStream.
func (c directClient) RecvMsg(any) error {
	if c.err == nil {
		return status.Error(codes.Internal, "a call whose messages are taken has not begun")
	}
	return c.err
}

// Context implements grpc.ServerStream.
func (s directServer) Context() context.Context { return s.serverCtx }

// SetHeader implements grpc.ServerStream.
func (s directServer) SetHeader(md metadata.MD) error { return s.call.SetHeader(md) }

// SendHeader implements grpc.ServerStream.
func (s directServer) SendHeader(md metadata.MD) error { return s.call.SetHeader(md) }

// SetTrailer implements grpc.ServerStream.
func (s directServer) SetTrailer(md metadata.MD) { _ = s.call.SetTrailer(md) } // never fails

// SendMsg implements grpc.ServerStream. A caller who has not left takes what is sent after the deadline too, as it takes a
// late answer that is no stream.
func (s directServer) SendMsg(m any) error {
	if err := s.serverCtx.Err(); errors.Is(err, context.Canceled) {
		return status.FromContextError(err).Err()
	}
	if s.refused == nil {
		s.refused = s.take(m)
	}
	return s.refused
}

// RecvMsg implements grpc.ServerStream.
func (s directServer) RecvMsg(m any) error {
	if s.req == nil {
		return io.EOF
	}
	req := s.req
	s.req = nil
	return handOver(m, req)
}
