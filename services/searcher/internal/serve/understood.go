package serve

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// understood refuses a request with a field that this program does not know. It comes from a
// newer router, and the field may be what hides a document: an answer without it could
// show replaced content. The router asks another replica.
func understood(req proto.Message) error {
	if knowsAll(req) {
		return nil
	}
	return searchapi.FieldError(codes.FailedPrecondition, "plan",
		"the request has fields that this searcher does not know: it is older than the router; upgrade the searchers")
}

// knowsAll reports whether no message of a request holds an unknown field. It names every
// message, so that a plan of thousands of shards is not walked by reflection.
func knowsAll(req proto.Message) bool {
	switch m := req.(type) {
	case *searchv1.StreamSearchRequest:
		asked := m.GetSearch()
		options := asked.GetOptions()
		return known(m) && known(asked) && known(options) && knowsConsistency(options.GetConsistency()) && knowsPlan(asked.GetPlan()) && knowsTree(asked.GetTree())
	case *searchv1.StreamListRequest:
		asked := m.GetList()
		return known(m) && known(asked) && knowsConsistency(asked.GetConsistency()) && knowsPlan(asked.GetPlan()) && knowsTree(asked.GetTree())
	case *searchv1.GetFileRequest:
		return known(m) && knowsConsistency(m.Consistency) && knowsPlan(m.Plan)
	case *searchv1.ListTreeRequest:
		return known(m) && knowsConsistency(m.Consistency) && knowsPlan(m.Plan)
	}
	return false
}

func knowsConsistency(c *searchv1.Consistency) bool { return known(c) && known(c.GetBounded()) }

func knowsPlan(p *searchv1.Plan) bool {
	ok := known(p) && known(p.GetAfter()) && known(p.GetSpan())
	for _, r := range p.GetResolved() {
		ok = ok && known(r)
	}
	for _, s := range p.GetShards() {
		ok = ok && known(s)
		for _, h := range s.GetHidden() {
			ok = ok && known(h)
		}
		for _, b := range s.GetBranches() {
			ok = ok && known(b)
		}
	}
	return ok
}

// knowsTree looks at every message of a tree, which has far fewer than a plan.
func knowsTree(tree *searchv1.Query) bool { return tree == nil || knowsMessage(tree.ProtoReflect()) }

func knowsMessage(m protoreflect.Message) bool {
	if len(m.GetUnknown()) > 0 {
		return false
	}
	ok := true
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range v.List().Len() {
				ok = ok && knowsMessage(v.List().Get(i).Message())
			}
		default:
			ok = knowsMessage(v.Message())
		}
		return ok
	})
	return ok
}

// known reports whether a message itself has no unknown field.
func known(m proto.Message) bool { return len(m.ProtoReflect().GetUnknown()) == 0 }
