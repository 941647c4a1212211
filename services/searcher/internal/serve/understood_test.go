package serve

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/trawl-search/trawl/index/query"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestUnknownFieldsAreRefused puts an unknown field into each message that a request of a
// router can hold, one at a time. A searcher that ignored it could show what the field hides.
func TestUnknownFieldsAreRefused(t *testing.T) {
	for _, req := range []proto.Message{
		&searchv1.StreamSearchRequest{}, &searchv1.StreamListRequest{}, &searchv1.GetFileRequest{}, &searchv1.ListTreeRequest{},
	} {
		name := string(req.ProtoReflect().Descriptor().Name())
		places := 0
		eachMessage(req.ProtoReflect(), name, func(path string, m protoreflect.Message) {
			places++
			if err := understood(req); err != nil {
				t.Fatalf("%s without unknown fields: %v", name, err)
			}
			m.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1999, protowire.VarintType), 1))
			defer m.SetUnknown(nil)
			if err := understood(req); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("an unknown field in %s: %v", path, err)
			}
		})
		if places < 7 {
			t.Errorf("%s has %d messages", name, places)
		}
	}
}

// maxNested is how deep eachMessage goes.
const maxNested = 5

// eachMessage visits a message and, in depth, one of each message that it can hold.
//
// A tree holds trees: it goes two levels down.
func eachMessage(m protoreflect.Message, path string, visit func(string, protoreflect.Message)) {
	visit(path, m)
	if strings.Count(path, ".") > maxNested {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Message() == nil {
			continue
		}
		into := path + "." + string(field.Name())
		if !field.IsList() {
			eachMessage(m.Mutable(field).Message(), into, visit)
			m.Clear(field)
			continue
		}
		list := m.Mutable(field).List()
		list.AppendMutable() // the last one is looked at too
		eachMessage(list.AppendMutable().Message(), into, visit)
		m.Clear(field)
	}
}

// BenchmarkUnderstood is what the check adds to a request for 10,000 shards.
func BenchmarkUnderstood(b *testing.B) {
	plan := &searchv1.Plan{}
	for range 10_000 {
		plan.Shards = append(plan.Shards, &searchv1.PlannedShard{Repos: &searchv1.PlannedShard_All{All: true}, Hidden: []*searchv1.HiddenDocuments{{}}})
	}
	req := &searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{Plan: plan}}
	for b.Loop() {
		if err := understood(req); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNewerSyntaxIsRefused asks in a newer version of the query language. This searcher would
// search for its new fields as texts.
func TestNewerSyntaxIsRefused(t *testing.T) {
	plan := &searchv1.Plan{SyntaxRevision: query.Revision}
	if _, _, err := parse("ref:a", nil, 2, plan); err != nil {
		t.Error(err)
	}
	plan.SyntaxRevision++
	if _, _, err := parse("ref:a", nil, 2, plan); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a field of a later revision: %v", err)
	}
}
