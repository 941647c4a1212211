package searchapi_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// fill sets every field of a message, and an unknown one.
func fill(t *testing.T, m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch {
		case f.IsMap():
			m.Mutable(f).Map().Set(protoreflect.ValueOfString("key").MapKey(), valueOf(t, f.MapValue(), m.NewField(f).Map().NewValue))
		case f.IsList():
			m.Mutable(f).List().Append(valueOf(t, f, m.NewField(f).List().NewElement))
		default:
			m.Set(f, valueOf(t, f, func() protoreflect.Value { return m.NewField(f) }))
		}
	}
	m.SetUnknown([]byte{0xfa, 0x7f, 1, 'x'})
}

// valueOf returns a value other than the default for a field; empty makes a message.
func valueOf(t *testing.T, f protoreflect.FieldDescriptor, empty func() protoreflect.Value) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(7)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(8)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(9)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(2)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("text")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("bytes"))
	case protoreflect.MessageKind:
		return empty()
	}
	t.Fatalf("fill %s: unexpected kind %s", f.FullName(), f.Kind())
	return protoreflect.Value{}
}

// TestCopyOptions: every field is copied, including those that are added later and those
// that are unknown.
func TestCopyOptions(t *testing.T) {
	o := &searchv1.SearchOptions{}
	fill(t, o.ProtoReflect())
	if c := searchapi.CopyOptions(o); !proto.Equal(c, o) || c == o {
		t.Fatalf("copied %v as %v", o, c)
	}
	if c := searchapi.CopyOptions(nil); c == nil || !proto.Equal(c, &searchv1.SearchOptions{}) {
		t.Fatalf("copied none as %v", c)
	}
}
