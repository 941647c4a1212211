package server

import (
	"context"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Local calls the services of a server in the same process. A call takes the same
// path as one over the network, through the same metrics, gate and protection from
// panics, under its caller's deadline, and a drain waits for it. It saves connections
// and encoding, which cost more than a short call itself: messages are handed over,
// so neither side may change a message once it has sent it. Traces travel in the
// context.
//
// The server's protection from the network does not apply: validation, and limits on message
// sizes and on concurrent calls. It supports the call options Header, Trailer and Peer. It is
// safe for concurrent use.
type Local struct {
	unary  grpc.UnaryServerInterceptor
	stream grpc.StreamServerInterceptor

	mu      sync.Mutex
	methods map[string]method
	// calls are the running calls, each with its cancel function.
	calls map[*localCall]context.CancelFunc
	// closed means that no more calls begin. idle is closed when moreover none runs.
	closed bool
	idle   chan struct{}
}

var _ grpc.ClientConnInterface = (*Local)(nil)

// method is a method of a service. Either unary or stream is set.
type method struct {
	impl   any
	unary  *grpc.MethodDesc
	stream *grpc.StreamDesc
}

func newLocal(unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor) *Local {
	return &Local{
		unary: chainUnary(unary), stream: chainStream(stream),
		methods: make(map[string]method), calls: make(map[*localCall]context.CancelFunc), idle: make(chan struct{}),
	}
}

// register adds a service.
func (l *Local) register(desc *grpc.ServiceDesc, impl any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range desc.Methods {
		m := &desc.Methods[i]
		l.methods["/"+desc.ServiceName+"/"+m.MethodName] = method{impl: impl, unary: m}
	}
	for i := range desc.Streams {
		m := &desc.Streams[i]
		l.methods["/"+desc.ServiceName+"/"+m.StreamName] = method{impl: impl, stream: m}
	}
}

// Invoke implements grpc.ClientConnInterface. It runs the handler on the
// goroutine of the caller, and returns when the handler has.
func (l *Local) Invoke(ctx context.Context, name string, req, resp any, opts ...grpc.CallOption) error {
	ctx, call, err := l.begin(ctx, name, opts)
	if err != nil {
		return err
	}
	defer l.end(call)
	defer call.report()
	if call.method.unary == nil {
		return status.Errorf(codes.Internal, "%s is a stream", name)
	}
	out, err := call.method.unary.Handler(call.method.impl, ctx, func(in any) error { return handOver(in, req) }, l.unary)
	if err == nil {
		err = handOver(resp, out)
	}
	return asSeen(err)
}

// begin returns the context of a call as its handler sees it. The caller must call
// end later. The error is a status, like that of an unreachable server.
func (l *Local) begin(ctx context.Context, name string, opts []grpc.CallOption) (context.Context, *localCall, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m, ok := l.methods[name]; {
	case l.closed:
		return nil, nil, status.Error(codes.Unavailable, "the server is shut down")
	case !ok:
		return nil, nil, status.Errorf(codes.Unimplemented, "there is no method %s", name)
	default:
		call := &localCall{name: name, method: m}
		call.listen(opts)
		ctx, cancel := context.WithCancel(ctx)
		l.calls[call] = cancel
		return call.context(ctx), call, nil
	}
}

func (l *Local) end(call *localCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[call]()
	delete(l.calls, call)
	if l.closed && len(l.calls) == 0 {
		close(l.idle)
	}
}

// close refuses further calls. The channel is closed when the running calls have
// ended.
func (l *Local) close() (idle <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && len(l.calls) == 0 {
		close(l.idle)
	}
	l.closed = true
	return l.idle
}

// cancel ends the contexts of the running calls.
func (l *Local) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cancel := range l.calls {
		cancel()
	}
}

// localCall is a running call. For handlers that set headers it is the
// grpc.ServerTransportStream.
type localCall struct {
	name   string
	method method

	mu              sync.Mutex
	header, trailer metadata.MD
	// Where the caller wants header, trailer and peer; nil: nowhere.
	headerTo, trailerTo *metadata.MD
}

var _ grpc.ServerTransportStream = (*localCall)(nil)

// localAddr is the address of both ends of a local call.
type localAddr struct{}

var _ net.Addr = localAddr{}

// Network implements net.Addr.
func (localAddr) Network() string { return "local" }

// String implements net.Addr.
func (localAddr) String() string { return "local" }

// listen notes where the caller wants header, trailer and peer.
func (c *localCall) listen(opts []grpc.CallOption) {
	for _, opt := range opts {
		switch opt := opt.(type) {
		case grpc.HeaderCallOption:
			c.headerTo = opt.HeaderAddr
		case grpc.TrailerCallOption:
			c.trailerTo = opt.TrailerAddr
		case grpc.PeerCallOption:
			opt.PeerAddr.Addr = localAddr{}
		}
	}
}

// context is the handler's context: the caller's outgoing metadata becomes incoming,
// and the caller's own incoming metadata and transport are hidden.
func (c *localCall) context(ctx context.Context) context.Context {
	sent, some := metadata.FromOutgoingContext(ctx)
	if some {
		ctx = metadata.NewOutgoingContext(ctx, nil)
	}
	ctx = metadata.NewIncomingContext(ctx, sent)
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: localAddr{}})
	return grpc.NewContextWithServerTransportStream(ctx, c)
}

// report writes header, trailer and peer where the caller wants them. It runs on the
// caller's goroutine, when the call has ended.
func (c *localCall) report() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.headerTo != nil {
		// Over the network, the content type shows that the server answered.
		*c.headerTo = metadata.Join(metadata.Pairs("content-type", "application/grpc"), c.header)
	}
	if c.trailerTo != nil {
		*c.trailerTo = c.trailer
	}
}

// asSeen is a handler's error as its caller sees it: a status that wraps nothing of
// the server.
func asSeen(err error) error {
	if err == nil {
		return nil
	}
	seen, ok := status.FromError(err)
	if !ok {
		seen = status.FromContextError(err)
	}
	return seen.Err()
}

// Method implements grpc.ServerTransportStream.
func (c *localCall) Method() string { return c.name }

// SetHeader implements grpc.ServerTransportStream.
func (c *localCall) SetHeader(md metadata.MD) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = metadata.Join(c.header, md)
	return nil
}

// SendHeader implements grpc.ServerTransportStream. The caller sees it when the
// call ends.
func (c *localCall) SendHeader(md metadata.MD) error { return c.SetHeader(md) }

// SetTrailer implements grpc.ServerTransportStream.
func (c *localCall) SetTrailer(md metadata.MD) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trailer = metadata.Join(c.trailer, md)
	return nil
}

// handOver copies the fields of a message to another. The messages then share what
// the fields refer to.
func handOver(to, from any) error {
	dst, ok := to.(proto.Message)
	src, ok2 := from.(proto.Message)
	if !ok || !ok2 || dst.ProtoReflect().Descriptor() != src.ProtoReflect().Descriptor() {
		return status.Errorf(codes.Internal, "a %T cannot be handed over as a %T", from, to)
	}
	proto.Reset(dst)
	into, of := dst.ProtoReflect(), src.ProtoReflect()
	of.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		into.Set(field, value)
		return true
	})
	into.SetUnknown(of.GetUnknown())
	return nil
}

// chainUnary makes one interceptor of several, the first of them outermost.
func chainUnary(all []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		next := handler
		for _, by := range slices.Backward(all) {
			inner := next
			next = func(ctx context.Context, req any) (any, error) { return by(ctx, req, info, inner) }
		}
		return next(ctx, req)
	}
}

// chainStream is chainUnary for streams.
func chainStream(all []grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		next := handler
		for _, by := range slices.Backward(all) {
			inner := next
			next = func(srv any, stream grpc.ServerStream) error { return by(srv, stream, info, inner) }
		}
		return next(srv, stream)
	}
}

// Conn is a connection to a server: over the network, or a local one.
type Conn interface {
	grpc.ClientConnInterface
	Close() error
}

var _ Conn = (*grpc.ClientConn)(nil)

// Intercept puts a caller's interceptors before the calls to a local server, as a
// dial option does for a connection. They get a nil *grpc.ClientConn. A nil
// interceptor leaves the calls of its kind as they are.
func Intercept(conn grpc.ClientConnInterface, unary grpc.UnaryClientInterceptor, stream grpc.StreamClientInterceptor) Conn {
	return intercepted{conn, unary, stream}
}

type intercepted struct {
	grpc.ClientConnInterface
	unary  grpc.UnaryClientInterceptor
	stream grpc.StreamClientInterceptor
}

// Close implements Conn. There is nothing to close: the server is not the caller's.
func (intercepted) Close() error { return nil }

// Invoke implements grpc.ClientConnInterface.
func (c intercepted) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if c.unary == nil {
		return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
	}
	return c.unary(ctx, method, req, resp, nil, func(ctx context.Context, method string, req, resp any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
		return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
	}, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (c intercepted) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if c.stream == nil {
		return c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	}
	return c.stream(ctx, desc, nil, method, func(ctx context.Context, desc *grpc.StreamDesc, _ *grpc.ClientConn, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		return c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	}, opts...)
}
