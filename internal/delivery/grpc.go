package delivery

import (
	"context"
	"runtime"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Unary is the interceptor of calls over connections of Listener. Codec sends what it returns.
func (a *Answers) Unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, c, conn, err := a.accept(ctx)
	if err != nil {
		return nil, err
	}
	defer c.end()
	resp, err := next(ctx, req)
	if err != nil {
		return nil, err
	}
	return conn.encode(c, resp)
}

// Stream is the interceptor of streams over connections of Listener.
func (a *Answers) Stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, c, conn, err := a.accept(stream.Context())
	if err != nil {
		return err
	}
	defer c.end()
	c.read = make(chan struct{}, 1)
	return next(srv, &delivered{ServerStream: stream, ctx: ctx, call: c, conn: conn})
}

// accept begins a call. Its answers are not compressed: a compressed message is a copy that
// Codec does not see. Errors are statuses.
func (a *Answers) accept(ctx context.Context) (context.Context, *call, *conn, error) {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil, nil, nil, status.Error(codes.Internal, "a call came from nowhere")
	}
	at, ok := from.Addr.(connAddr)
	if !ok {
		return nil, nil, nil, status.Errorf(codes.Internal, "a call came over a connection of type %T", from.Addr)
	}
	if err := grpc.SetSendCompressor(ctx, encoding.Identity); err != nil {
		return nil, nil, nil, status.Errorf(codes.Internal, "send answers as they are: %v", err)
	}
	ctx, c := a.begin(ctx, at.conn.caller)
	return ctx, c, at.conn, nil
}

// delivered is a stream whose messages are charged to its caller until they are read.
type delivered struct {
	grpc.ServerStream

	ctx  context.Context //nolint:containedctx // it is the stream's
	call *call
	conn *conn
}

// Context implements grpc.ServerStream.
func (d *delivered) Context() context.Context { return d.ctx }

// SendMsg implements grpc.ServerStream. It waits until the caller has taken earlier messages.
func (d *delivered) SendMsg(m any) error {
	if err := d.call.wait(d.ctx); err != nil {
		return err
	}
	encoded, err := d.conn.encode(d.call, m)
	if err != nil {
		return err
	}
	return d.ServerStream.SendMsg(encoded)
}

// encoded is a message that Codec sends as it is.
type encoded mem.BufferSlice

const (
	// overhead is what a message takes beside its bytes: its frame, and the state of its stream.
	overhead = 4 << 10
	// chunk is the size of the parts in which a message is read, as far as progress is concerned.
	chunk = 256 << 10
	// leastBuffer is a size from which gRPC frees buffers.
	leastBuffer = 2 << 10
)

// encode encodes a message, which is charged to its call until gRPC has written or dropped it. The error
// is a status.
func (c *conn) encode(of *call, v any) (encoded, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, status.Errorf(codes.Internal, "%T is not a message", v)
	}
	size := proto.Size(m)
	charge, err := c.enqueue(of, int64(size+overhead))
	if err != nil {
		return nil, err
	}
	pool := mem.DefaultBufferPool()
	data := pool.Get(max(size, leastBuffer))
	raw, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*data)[:0], m)
	if err != nil {
		pool.Put(data)
		charge.done()
		return nil, status.Errorf(codes.Internal, "encode the answer: %v", err)
	}
	p := &parts{data: data, charge: charge}
	// For messages that gRPC does not free; see quiet.
	p.dropped = runtime.AddCleanup(p, (*charged).done, charge)
	out := encoded(p.one[:0]) // most messages have one part
	for first := true; first || len(raw) > 0; first = false {
		n := len(raw)
		if n >= 2*chunk { // so that no part is too small to be freed
			n = chunk
		}
		part := &p.raw
		if !first {
			part = new([]byte)
		}
		*part = raw[:n]
		out = append(out, mem.NewBuffer(part, p))
		raw = raw[n:]
	}
	p.left.Store(int32(len(out)))
	return out, nil
}

// parts are the buffers of a message, which gRPC frees one after the other.
type parts struct {
	data    *[]byte
	left    atomic.Int32
	charge  *charged
	dropped runtime.Cleanup
	// raw is the first part, and one has its buffer.
	raw []byte
	one [1]mem.Buffer
}

var _ mem.BufferPool = (*parts)(nil)

// Get implements mem.BufferPool. gRPC only gives back.
func (p *parts) Get(n int) *[]byte { return mem.DefaultBufferPool().Get(n) }

// Put implements mem.BufferPool.
func (p *parts) Put(*[]byte) {
	if p.left.Add(-1) > 0 {
		p.charge.progress()
		return
	}
	p.dropped.Stop()
	mem.DefaultBufferPool().Put(p.data)
	p.charge.done()
}

// Codec is gRPC's own codec for a server with Unary and Stream.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2(encodingproto.Name)} }

type codec struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(encoded); ok {
		return mem.BufferSlice(m), nil
	}
	return c.CodecV2.Marshal(v)
}
