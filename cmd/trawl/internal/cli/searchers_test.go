package cli

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
)

// ListSearchers gives one script after the other, the last one again and again.
func (s *scripted) ListSearchers(context.Context, *adminv1.ListSearchersRequest) (*adminv1.ListSearchersResponse, error) {
	now := s.searchers[0]
	if len(s.searchers) > 1 {
		s.searchers = s.searchers[1:]
	}
	return &adminv1.ListSearchersResponse{Searchers: now}, nil
}

func (s *scripted) DrainSearcher(_ context.Context, req *adminv1.DrainSearcherRequest) (*adminv1.DrainSearcherResponse, error) {
	s.drained = append(s.drained, req)
	return &adminv1.DrainSearcherResponse{Remaining: 1, Replication: 2}, nil
}

// TestSearchers: the list shows every searcher, and drain waits until the searcher is drained.
func TestSearchers(t *testing.T) {
	a := &adminv1.Searcher{
		Id: "a", Zone: "z1", Address: "10.0.0.1:7001", Version: "v1", ShardFormats: []uint32{1, 2}, Shards: 3, ShardBytes: 1 << 20, Loading: 1,
		State: adminv1.SearcherState_SEARCHER_STATE_ACTIVE, StartedAt: timestamppb.Now(),
	}
	b := func(state adminv1.SearcherState, awaited ...string) []*adminv1.Searcher {
		return []*adminv1.Searcher{a, {Id: "b", State: state, Awaited: awaited}}
	}
	draining := b(adminv1.SearcherState_SEARCHER_STATE_DRAINING, "a")
	drained, gone, active := b(adminv1.SearcherState_SEARCHER_STATE_DRAINED), b(adminv1.SearcherState_SEARCHER_STATE_GONE), b(adminv1.SearcherState_SEARCHER_STATE_ACTIVE)
	for _, c := range []struct {
		script [][]*adminv1.Searcher
		args   []string
		exit   int
		want   []string
	}{
		{[][]*adminv1.Searcher{gone}, []string{"list"}, 0, []string{"ID  STATE   ZONE", "a   active  z1    10.0.0.1:7001  v1       1,2      3", "b   gone "}},
		{[][]*adminv1.Searcher{draining}, []string{"list", "--json"}, 0, []string{`"awaited":`, `"a"`, "SEARCHER_STATE_DRAINING"}},
		{[][]*adminv1.Searcher{draining, drained}, []string{"drain", "b"}, 0, []string{"only 1 of the 2 searchers", "0 of 1 searchers ready", "b is drained: it can be stopped"}},
		{[][]*adminv1.Searcher{draining, gone}, []string{"drain", "b"}, 0, []string{"b is drained"}},
		{[][]*adminv1.Searcher{draining, active}, []string{"drain", "b"}, 1, []string{"undid the drain"}},
		{[][]*adminv1.Searcher{active}, []string{"drain", "b", "--undo"}, 0, []string{"b takes shards again"}},
		{nil, []string{"drain"}, 2, []string{"want ID, got nothing"}},
	} {
		s := &scripted{searchers: c.script}
		exit, out, errs := trawl(t, s, append([]string{"searchers"}, c.args...)...)
		for _, want := range c.want {
			if exit != c.exit || !strings.Contains(out+errs, want) {
				t.Errorf("searchers %v: exit %d, want %d and %q in\n%s%s", c.args, exit, c.exit, want, out, errs)
			}
		}
		if c.args[0] == "drain" && c.exit < 2 && (len(s.drained) != 1 || s.drained[0].GetId() != "b" || s.drained[0].GetUndo() != (len(c.args) == 3)) {
			t.Errorf("searchers %v: asked for %v", c.args, s.drained)
		}
	}
}
