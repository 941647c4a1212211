package jsonapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// calls answers calls as a test wants, and keeps the last request.
type calls struct {
	method string
	asked  proto.Message
	// answer fills an answer; nil fills all of its fields.
	answer func(ctx context.Context, resp proto.Message) error
	// each gets the messages of a stream one by one, and ends it with an error.
	each func(ctx context.Context, n int, m proto.Message) error
}

func (c *calls) Invoke(ctx context.Context, method string, req, resp any, _ ...grpc.CallOption) error {
	c.method, c.asked = method, req.(proto.Message)
	if c.answer != nil {
		return c.answer(ctx, resp.(proto.Message))
	}
	fill(resp.(proto.Message).ProtoReflect(), 6)
	return nil
}

func (c *calls) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	c.method = method
	return &messages{calls: c, ctx: ctx}, nil
}

type messages struct {
	grpc.ClientStream
	calls *calls
	ctx   context.Context
	n     int
}

func (m *messages) SendMsg(req any) error { m.calls.asked = req.(proto.Message); return nil }
func (m *messages) CloseSend() error      { return nil }
func (m *messages) RecvMsg(into any) error {
	m.n++
	if m.calls.each != nil {
		return m.calls.each(m.ctx, m.n, into.(proto.Message))
	}
	if m.n > 2 {
		return io.EOF
	}
	fill(into.(proto.Message).ProtoReflect(), 6)
	return nil
}

// fill sets every field to something, down to a depth.
func fill(m protoreflect.Message, depth int) {
	if seconds := m.Descriptor().Fields().ByName("seconds"); seconds != nil && m.Descriptor().FullName().Parent() == "google.protobuf" {
		m.Set(seconds, protoreflect.ValueOfInt64(90))
		return
	}
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch {
		case f.IsMap():
			m.Mutable(f).Map().Set(protoreflect.ValueOfString("key").MapKey(), protoreflect.ValueOfString("value"))
		case f.Message() != nil && depth == 0:
		case f.Message() != nil && f.IsList():
			fill(m.Mutable(f).List().AppendMutable().Message(), depth-1)
		case f.Message() != nil:
			fill(m.Mutable(f).Message(), depth-1)
		case f.IsList():
			m.Mutable(f).List().Append(something(f))
		default:
			m.Set(f, something(f))
		}
	}
}

func something(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(1).Number())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("\xff<&>\n"))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("\u2028<é>\n")
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1<<32 - 1)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(1<<64 - 1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(-1)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(-1)
	}
	return protoreflect.ValueOfFloat64(1.5)
}

func (c *calls) handler(t *testing.T) *Handler {
	t.Helper()
	h, err := New(c, Limits{WallTime: time.Minute, BodyBytes: 1 << 20}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// do sends a request without a connection.
func (c *calls) do(t *testing.T, verb, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	c.handler(t).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), verb, target, strings.NewReader(body)))
	return w
}

func object(t *testing.T, text []byte) (o map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

var _ http.Handler = (*Handler)(nil)
