package server

import (
	"context"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/stack"
)

// NewStream implements grpc.ClientConnInterface. The handler runs on a goroutine of
// its own, or with the option To on the caller's. As over the network, a caller that
// does not receive until the end must end ctx.
func (l *Local) NewStream(ctx context.Context, asked *grpc.StreamDesc, name string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if take := takerOf(opts); take != nil && !asked.ClientStreams {
		return directClient{&direct{local: l, name: name, opts: opts, take: take, ctx: ctx}}, nil
	}
	serverCtx, call, err := l.begin(ctx, name, opts)
	if err != nil {
		return nil, err
	}
	p := &pipe{
		call: call, up: make(chan any, 1), down: make(chan any), done: make(chan struct{}), headed: make(chan struct{}),
	}
	go func() {
		defer l.end(call)
		stack.Grow()
		p.err = l.handle(call, &pipeServer{p, serverCtx})
		close(p.done)
	}()
	return &pipeClient{pipe: p, ctx: ctx, sendsMore: asked.ClientStreams}, nil
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

// pipe is a stream between a caller and a handler.
type pipe struct {
	call *localCall
	// up brings messages to the handler. It is closed when the caller sends no more.
	up chan any
	// down brings messages to the caller. It has no buffer, so that all have been
	// received when the handler returns.
	down chan any
	// done is closed when the handler has returned. err is written before.
	done chan struct{}
	err  error
	// headed is closed when the handler has sent its header or a message.
	headed chan struct{}
	head   sync.Once
}

func (p *pipe) sendHeader() { p.head.Do(func() { close(p.headed) }) }

// pipeServer is the handler's end.
type pipeServer struct {
	*pipe
	ctx context.Context //nolint:containedctx // it is the stream's
}

var _ grpc.ServerStream = (*pipeServer)(nil)

// Context implements grpc.ServerStream.
func (s *pipeServer) Context() context.Context { return s.ctx }

// SetHeader implements grpc.ServerStream.
func (s *pipeServer) SetHeader(md metadata.MD) error { return s.call.SetHeader(md) }

// SendHeader implements grpc.ServerStream.
func (s *pipeServer) SendHeader(md metadata.MD) error {
	defer s.sendHeader()
	return s.call.SetHeader(md)
}

// SetTrailer implements grpc.ServerStream.
func (s *pipeServer) SetTrailer(md metadata.MD) { _ = s.call.SetTrailer(md) } // never fails

// SendMsg implements grpc.ServerStream.
func (s *pipeServer) SendMsg(m any) error {
	s.sendHeader()
	select {
	case s.down <- m:
		return nil
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

// RecvMsg implements grpc.ServerStream.
func (s *pipeServer) RecvMsg(m any) error {
	select {
	case sent, ok := <-s.up:
		if !ok {
			return io.EOF
		}
		return handOver(m, sent)
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

// pipeClient is the caller's end.
type pipeClient struct {
	*pipe
	ctx context.Context //nolint:containedctx // it is the stream's
	// sendsMore means that the method takes a stream of messages.
	sendsMore bool
	half      sync.Once
}

var _ grpc.ClientStream = (*pipeClient)(nil)

// Context implements grpc.ClientStream.
func (c *pipeClient) Context() context.Context { return c.ctx }

// Header implements grpc.ClientStream.
func (c *pipeClient) Header() (metadata.MD, error) {
	select {
	case <-c.headed:
	case <-c.done:
	case <-c.ctx.Done():
		return nil, status.FromContextError(c.ctx.Err()).Err()
	}
	c.call.mu.Lock()
	defer c.call.mu.Unlock()
	return c.call.header.Copy(), nil
}

// Trailer implements grpc.ClientStream.
func (c *pipeClient) Trailer() metadata.MD {
	c.call.mu.Lock()
	defer c.call.mu.Unlock()
	return c.call.trailer.Copy()
}

// CloseSend implements grpc.ClientStream.
func (c *pipeClient) CloseSend() error {
	c.half.Do(func() { close(c.up) })
	return nil
}

// SendMsg implements grpc.ClientStream. RecvMsg returns the reason that a stream has
// ended. As over the network, SendMsg then returns io.EOF, and only to callers that
// send more than one message.
func (c *pipeClient) SendMsg(m any) error {
	select {
	case c.up <- m:
		return nil
	case <-c.done:
	case <-c.ctx.Done():
	}
	if c.sendsMore {
		return io.EOF
	}
	return nil
}

// RecvMsg implements grpc.ClientStream.
func (c *pipeClient) RecvMsg(m any) error {
	select {
	case sent := <-c.down:
		return handOver(m, sent)
	case <-c.done:
		c.call.report()
		if c.err == nil {
			return io.EOF
		}
		return c.err
	case <-c.ctx.Done():
		return status.FromContextError(c.ctx.Err()).Err()
	}
}
