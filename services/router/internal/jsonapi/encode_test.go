package jsonapi

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestFilesAreWrittenAsProtojsonWrites: the JSON of random answers has the same names, values and zero values as that of
// protojson, so that a field that is added to a message cannot be forgotten.
func TestFilesAreWrittenAsProtojsonWrites(t *testing.T) {
	random := testrun.Rand(t)
	for range 300 {
		for _, m := range []proto.Message{&searchv1.SearchResponse{}, &searchv1.StreamSearchResponse{}} {
			randomize(random, m.ProtoReflect(), 5)
			whole := proto.Clone(m)
			got, err := encode(m)
			if err != nil {
				t.Fatal(err)
			}
			want, err := encoding.Marshal(m)
			if err != nil || !proto.Equal(m, whole) {
				t.Fatalf("the message changed, or %v", err)
			}
			if shape(t, got) != shape(t, want) {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
			back := m.ProtoReflect().New().Interface()
			if err := protojson.Unmarshal(got, back); err != nil || !proto.Equal(back, m) {
				t.Fatalf("%v: read back %v, want %v", err, back, m)
			}
		}
	}
}

// TestFilesAreWrittenWithoutReflection: protojson writes a message without files as withFiles expects.
func TestFilesAreWrittenWithoutReflection(t *testing.T) {
	for _, m := range []proto.Message{&searchv1.SearchResponse{}, &searchv1.StreamSearchResponse{Statistics: &searchv1.Statistics{}}} {
		account, err := encoding.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := withFiles(account, []*searchv1.FileMatch{{Repo: "x"}}); !ok {
			t.Errorf("an answer begins with %.20s", account)
		}
	}
}

// TestWhatJSONHasNot: a text that is not UTF-8 is an error, as protojson says, and a score that is no number a text.
func TestWhatJSONHasNot(t *testing.T) {
	if text, err := encode(&searchv1.SearchResponse{Files: []*searchv1.FileMatch{{Repo: "\xff"}}}); err == nil {
		t.Errorf("got %s", text)
	}
	for _, score := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		m, back := &searchv1.SearchResponse{Files: []*searchv1.FileMatch{{Score: score}}}, &searchv1.SearchResponse{}
		text, err := encode(m)
		if err == nil {
			err = protojson.Unmarshal(text, back)
		}
		if err != nil || !proto.Equal(m, back) {
			t.Errorf("%v: %s, %v", score, text, err)
		}
	}
}

// shape is a document of JSON without what has no meaning in it.
func shape(t *testing.T, text []byte) string {
	t.Helper()
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	canonical, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(canonical)
}

// randomize sets about half of the fields of a message, down to a depth.
func randomize(random *rand.Rand, m protoreflect.Message, depth int) {
	if seconds := m.Descriptor().Fields().ByName("seconds"); seconds != nil {
		m.Set(seconds, protoreflect.ValueOfInt64(random.Int64N(1e6)))
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case random.IntN(2) == 0 || f.Message() != nil && depth == 0:
		case f.IsList():
			for items := m.Mutable(f).List(); items.Len() < random.IntN(4); {
				if f.Message() != nil {
					randomize(random, items.AppendMutable().Message(), depth-1)
				} else {
					items.Append(anything(random, f))
				}
			}
		case f.Message() != nil:
			randomize(random, m.Mutable(f).Message(), depth-1)
		default:
			m.Set(f, anything(random, f))
		}
	}
}

// anything is a random value of a field.
func anything(random *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	number := random.Uint64() >> random.IntN(64)
	text := make([]rune, random.IntN(6))
	for i := range text {
		text[i] = []rune("\x00\n\x1f \"\\/<&>a\x7f\u0080é\u2028\ufffd\U0001f600")[random.IntN(17)]
	}
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(number%2 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(number % 12))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(string(text) + "\xff"))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(text))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(number))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(number)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64((random.Float64() - 0.5) * math.Pow(10, float64(random.IntN(60)-30)))
	}
	return something(f)
}

func BenchmarkEncode(b *testing.B) {
	m := &searchv1.SearchResponse{}
	for range 100 {
		f := &searchv1.FileMatch{Repo: "github.com/org/name", Path: []byte("some/folder/file.go"), Branches: []string{"main"}, Blob: make([]byte, 20), MatchCount: 100}
		for range 100 {
			l := &searchv1.Location{ByteOffset: 12345, LineNumber: 123, Column: 12}
			f.Chunks = append(f.Chunks, &searchv1.ChunkMatch{Content: make([]byte, 50), ContentStart: l, Ranges: []*searchv1.Range{{Start: l, End: l}}})
		}
		m.Files = append(m.Files, f)
	}
	for name, by := range map[string]func(proto.Message) ([]byte, error){"own": encode, "protojson": encoding.Marshal} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				text, err := by(m)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(text)))
			}
		})
	}
}
