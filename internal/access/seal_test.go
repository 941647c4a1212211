package access

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

var testKey = bytes.Repeat([]byte{7}, keyBytes)

const method = searchv1.SearchService_Search_FullMethodName

func sealed(t *testing.T, key []byte, method string, until time.Time, req proto.Message) string {
	t.Helper()
	s, err := seal(key, method, until, req)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func question() *searchv1.SearchRequest {
	d := bytes.Repeat([]byte{1}, 32)
	return &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{MaxFiles: 5}, Plan: &searchv1.Plan{
		Shards: []*searchv1.PlannedShard{{Digest: d, Repos: &searchv1.PlannedShard_Runs{Runs: []byte{0, 2}}}}, Revision: 3,
		Resolved: []*searchv1.RepoNames{{Names: []string{"a"}}}, After: &searchv1.OrderKey{Repo: "a"},
	}}
}

func TestSealsAreForOneRequest(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	until := now.Add(sealLife)
	req := question()
	good := sealed(t, testKey, method, until, req)
	if err := check(testKey, method, now, req, []string{good}); err != nil {
		t.Fatal(err)
	}
	flip := func(i int) string { b := []byte(good); b[i] ^= 1; return string(b) }
	for what, bad := range map[string]struct {
		key    []byte
		method string
		now    time.Time
		seals  []string
	}{
		"another key":           {bytes.Repeat([]byte{8}, keyBytes), method, now, []string{good}},
		"another method":        {testKey, searchv1.SearchService_List_FullMethodName, now, []string{good}},
		"after its time":        {testKey, method, until, []string{good}},
		"no seal":               {testKey, method, now, nil},
		"two seals":             {testKey, method, now, []string{good, good}},
		"a short seal":          {testKey, method, now, []string{good[:sealBytes-1]}},
		"a longer life":         {testKey, method, now, []string{flip(0)}},
		"another signature":     {testKey, method, now, []string{flip(sealBytes - 1)}},
		"a seal made of zeroes": {testKey, method, now, []string{string(make([]byte, sealBytes))}},
	} {
		if err := check(bad.key, bad.method, bad.now, req, bad.seals); !errors.Is(err, errSeal) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestEveryFieldIsSealed changes each field of each request at every depth: the seal
// must not fit any changed request.
func TestEveryFieldIsSealed(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	d := bytes.Repeat([]byte{1}, 32)
	plan := question().Plan
	for _, req := range []proto.Message{
		question(),
		&searchv1.ListRequest{Query: "q", Plan: plan},
		&searchv1.GetFileRequest{Repo: "r", Path: []byte("p"), Plan: &searchv1.Plan{Shards: []*searchv1.PlannedShard{{Digest: d}}}},
		&searchv1.StreamSearchRequest{Search: question()},
	} {
		good := sealed(t, testKey, method, now.Add(time.Minute), req)
		changes := 0
		altered(proto.Clone(req).ProtoReflect(), func(what protoreflect.FullName, whole proto.Message) {
			changes++
			if err := check(testKey, method, now, whole, []string{good}); !errors.Is(err, errSeal) {
				t.Errorf("%T with another %s: %v", req, what, err)
			}
		})
		if changes < 8 {
			t.Errorf("only %d changes of %T", changes, req)
		}
	}
}

// altered calls f with the message, each time with one field changed.
func altered(root protoreflect.Message, f func(protoreflect.FullName, proto.Message)) {
	var walk func(m protoreflect.Message)
	walk = func(m protoreflect.Message) {
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			fd := fields.Get(i)
			had, before := m.Has(fd), m.Get(fd)
			try := func(v protoreflect.Value) {
				m.Set(fd, v)
				f(fd.FullName(), root.Interface())
				m.Clear(fd)
				if had {
					m.Set(fd, before)
				}
			}
			switch {
			case fd.IsList():
				longer := m.NewField(fd)
				for j := range before.List().Len() {
					longer.List().Append(before.List().Get(j))
				}
				longer.List().Append(longer.List().NewElement())
				try(longer)
				if fd.Message() != nil {
					for j := range before.List().Len() {
						walk(before.List().Get(j).Message())
					}
				}
			case fd.Message() != nil && had:
				walk(before.Message())
			case fd.Message() != nil:
				try(m.NewField(fd))
			default:
				try(another(fd, before))
			}
		}
	}
	walk(root)
}

// another is a value of the field other than v.
func another(fd protoreflect.FieldDescriptor, v protoreflect.Value) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!v.Bool())
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(v.Enum() + 1)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(v.String() + "x")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(append(bytes.Clone(v.Bytes()), 'x'))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(v.Uint()) + 1)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(v.Uint() + 1)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(v.Int() + 1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(v.Int()) + 1)
	}
	return protoreflect.ValueOfFloat64(v.Float() + 1)
}

// TestSealNeverChanges pins the bytes: routers and searchers of two versions must
// compute the same seal for a request.
func TestSealNeverChanges(t *testing.T) {
	got := hex.EncodeToString([]byte(sealed(t, testKey, method, time.UnixMilli(1_700_000_000_000), question())))
	const want = "0000018bcfe56800f1b9356f6560f459e95dcb4c6784a6dd453597ea767432b192c51d5bba6d2dcb"
	if got != want {
		t.Errorf("the seal is %s, was %s", got, want)
	}
}
