package searchapi_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestCopyOptions: every field is copied, those that are added later and those that are
// not known included.
func TestCopyOptions(t *testing.T) {
	o := &searchv1.SearchOptions{}
	m := o.ProtoReflect()
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		if f.IsList() {
			m.Mutable(f).List().Append(protoreflect.ValueOfEnum(2))
			continue
		}
		switch f.Kind() {
		case protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		case protoreflect.Uint32Kind:
			m.Set(f, protoreflect.ValueOfUint32(7))
		case protoreflect.Uint64Kind:
			m.Set(f, protoreflect.ValueOfUint64(8))
		case protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(2))
		case protoreflect.MessageKind:
			m.Set(f, m.NewField(f))
		default:
			t.Fatalf("this test does not know how to fill %s", f.FullName())
		}
	}
	m.SetUnknown([]byte{0xfa, 0x7f, 1, 'x'})
	if c := searchapi.CopyOptions(o); !proto.Equal(c, o) || c == o {
		t.Fatalf("copied %v as %v", o, c)
	}
	if c := searchapi.CopyOptions(nil); c == nil || !proto.Equal(c, &searchv1.SearchOptions{}) {
		t.Fatalf("copied none as %v", c)
	}
}
