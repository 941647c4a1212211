package searchapi_test

import (
	"bytes"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// event is a report about a shard.
type event int

const (
	pruned event = iota // never wanted
	silence
	spared // wanted, then pruned
	searched
	late // the first that a later round does not undo
	partly
	broken
)

func digest(n int) searchapi.Digest { return searchapi.Digest{byte(n), byte(n >> 8)} }

// TestAccountAddsUp takes accounts through random rounds, with random wanted shards
// and random events, and compares them with the plain rule: the worst of all rounds
// that wanted a shard counts, and silence in a round is as bad as being late.
func TestAccountAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "shards")
		a := searchapi.OpenAccount(n)
		worst := make([]event, n)
		for range rapid.IntRange(0, 3).Draw(t, "rounds") {
			var wanted []searchapi.Shard
			for i := range n {
				if rapid.Bool().Draw(t, "wanted") {
					wanted = append(wanted, searchapi.Shard{Digest: digest(i)})
					if worst[i] < late {
						worst[i] = silence
					}
				}
			}
			a.Want(wanted)
			for range rapid.IntRange(0, 3*n).Draw(t, "events") {
				i := rapid.IntRange(0, n-1).Draw(t, "shard")
				e := event(rapid.IntRange(int(spared), int(broken)).Draw(t, "event"))
				tell(a, digest(i), e)
				if worst[i] != pruned { // otherwise it is not wanted, and must not count
					worst[i] = max(worst[i], e)
				}
			}
		}
		tell(a, digest(999), broken)
		checkAccount(t, a.Coverage(), worst)
	})
}

// TestEveryRoundCounts takes a shard through every history of three rounds: in each it is
// wanted or not, and has one event or none.
func TestEveryRoundCounts(t *testing.T) {
	events := []event{pruned, silence, spared, searched, late, broken} // pruned: not wanted in this round
	shard := []searchapi.Shard{{Digest: digest(0)}}
	for i := range len(events) * len(events) * len(events) {
		history := []event{events[i%len(events)], events[i/len(events)%len(events)], events[i/len(events)/len(events)]}
		a, worst := searchapi.OpenAccount(1), pruned
		for _, e := range history {
			if e == pruned {
				continue
			}
			a.Want(shard)
			tell(a, digest(0), e)
			if worst < late {
				worst = e
			}
			worst = max(worst, e)
		}
		checkAccount(t, a.Coverage(), []event{worst})
	}
}

// TestAccountIsChecked: a router accepts any account that a searcher gives of the
// shards it was sent.
func TestAccountIsChecked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "shards")
		var shards []searchapi.Shard
		for i := range n {
			shards = append(shards, searchapi.Shard{Digest: digest(i)})
			if rapid.Bool().Draw(t, "twice") {
				shards = append(shards, shards[len(shards)-1])
			}
		}
		a := searchapi.NewAccount(shards)
		worst := make([]event, n)
		for i := range worst {
			worst[i] = event(rapid.IntRange(int(silence), int(broken)).Draw(t, "event"))
			tell(a, digest(i), worst[i])
		}
		checkAccount(t, a.Coverage(), worst)
		if err := searchapi.CheckCoverage(a.Coverage(), shards); err != nil {
			t.Fatalf("an account is refused by the check of accounts: %v", err)
		}
	})
}

func tell(a *searchapi.Account, d searchapi.Digest, e event) {
	switch e {
	case spared:
		a.Pruned(d)
	case searched:
		a.Searched(d)
	case late:
		a.Uncovered(d, searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE, "late")
	case partly:
		a.InPart(d, "half")
	case broken:
		a.Uncovered(d, searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT, "broken")
	case pruned, silence:
	}
}

func checkAccount(t rapid.TB, c *searchv1.Coverage, worst []event) {
	want := &searchv1.Coverage{Requested: uint64(len(worst)), Complete: true}
	var missing []searchapi.Digest
	for i, e := range worst {
		switch e {
		case pruned, spared:
			want.Pruned++
		case searched:
			want.Searched++
		case broken:
			want.Failed++
		case silence, late:
			want.NotReached++
		case partly:
			want.NotReached++
			want.InPart++
		}
		if e == silence || e >= late {
			want.Complete = false
			missing = append(missing, digest(i))
		}
	}
	if c.Requested != c.Searched+c.Pruned+c.Failed+c.NotReached {
		t.Fatalf("does not add up: %v", c)
	}
	var named []searchapi.Digest
	for _, u := range c.Uncovered {
		named = append(named, searchapi.Digest(u.Digest))
		if u.Message == "" || u.Reason == 0 {
			t.Fatalf("uncovered shard without reason or message: %v", u)
		}
	}
	slices.SortFunc(named, func(a, b searchapi.Digest) int { return bytes.Compare(a[:], b[:]) })
	if !slices.Equal(named, missing) {
		t.Fatalf("uncovered %v, want %v", named, missing)
	}
	got := proto.Clone(c).(*searchv1.Coverage)
	got.Uncovered = nil
	if !proto.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestCheckCoverageRefuses(t *testing.T) {
	sent := []searchapi.Shard{{Digest: digest(1)}, {Digest: digest(2)}}
	uncovered := func(n int) *searchv1.UncoveredShard {
		d := digest(n)
		return &searchv1.UncoveredShard{Digest: d[:]}
	}
	for name, c := range map[string]*searchv1.Coverage{
		"no coverage":            nil,
		"of fewer shards":        {Requested: 1, Searched: 1},
		"of more shards":         {Requested: 3, Searched: 3},
		"silent about one":       {Requested: 2, Searched: 1},
		"unnamed":                {Requested: 2, Searched: 1, Failed: 1},
		"named but not counted":  {Requested: 2, Searched: 2, Uncovered: []*searchv1.UncoveredShard{uncovered(1)}},
		"a shard that is not it": {Requested: 2, Searched: 1, Failed: 1, Uncovered: []*searchv1.UncoveredShard{uncovered(7)}},
		"one shard twice":        {Requested: 2, Failed: 2, Uncovered: []*searchv1.UncoveredShard{uncovered(1), uncovered(1)}},
		"half a digest":          {Requested: 2, Searched: 1, Failed: 1, Uncovered: []*searchv1.UncoveredShard{{Digest: bytes.Repeat([]byte{1}, 16)}}},
	} {
		if searchapi.CheckCoverage(c, sent) == nil {
			t.Errorf("coverage %s was taken", name)
		}
	}
}
