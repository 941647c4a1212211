package membership_test

import (
	"slices"
	"testing"

	"github.com/trawl-search/trawl/internal/membership"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestAwaited: every searcher that may still lack a shard of a draining one is
// awaited.
func TestAwaited(t *testing.T) {
	done, loading, unaware := &catalogv1.Disk{Without: []string{"a", "x"}}, &catalogv1.Disk{Without: []string{"x"}, Loading: 1}, &catalogv1.Disk{}
	census := &membership.Census{
		Searchers: []*catalogv1.Searcher{{Id: "done"}, {Id: "leaving", Draining: true}, {Id: "loading"}, {Id: "restarted"}, {Id: "silent"}, {Id: "unaware"}, {Id: "x", Draining: true}},
		Disks: map[membership.ID][]*catalogv1.Disk{
			"done": {done}, "leaving": {unaware}, "loading": {loading}, "restarted": {done, loading}, "unaware": {unaware}, "x": {loading},
		},
	}
	if got := census.Awaited("x"); !slices.Equal(got, []string{"loading", "restarted", "silent", "unaware"}) {
		t.Errorf("awaited: %q", got)
	}
}

// TestDrainedStays: a searcher learns that it is drained, and stays so until that is
// undone.
func TestDrainedStays(t *testing.T) {
	states := make(chan bool)
	ctx := t.Context()
	go membership.FollowDrained(ctx, shared.Client(), prefix(t), "s", quiet(), func(drained bool) {
		select {
		case states <- drained:
		case <-ctx.Done():
		}
	})
	set := func(id string, drained bool) {
		t.Helper()
		if err := membership.SetDrained(ctx, shared.Client(), prefix(t), id, drained); err != nil {
			t.Fatal(err)
		}
	}
	drained := func(want ...string) {
		t.Helper()
		census, err := membership.TakeCensus(ctx, shared.Client(), prefix(t))
		if err != nil || len(census.Drained) != len(want) {
			t.Errorf("drained: %v, %v", census, err)
		}
		for _, id := range want {
			if census.Drained[id].GetSince() == nil {
				t.Errorf("%s is not among %v", id, census.Drained)
			}
		}
	}
	if <-states {
		t.Error("drained at the start")
	}
	set("s2", true) // a longer name with the same beginning
	set("s", true)
	if !<-states {
		t.Error("not drained")
	}
	drained("s", "s2")
	set("s", false)
	if <-states {
		t.Error("drained after all")
	}
	drained("s2")
}
