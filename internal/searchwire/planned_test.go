package searchwire_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/docset"
	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestPlannedShardIsReadAgain: what is hidden comes out at the repos it went in
// with, and costs nothing where there is none.
func TestPlannedShardIsReadAgain(t *testing.T) {
	hidden := map[string][]byte{"b": docset.Of([]uint32{3, 9}).Code(), "d": docset.Of([]uint32{0}).Code(), "not asked": {1}}
	s := searchwire.Shard{Digest: searchwire.Digest{7}, Repos: []string{"a", "b", "c", "d"}, Hidden: hidden}
	got, err := searchwire.ParsePlanned(s.Planned())
	if err != nil || got.Digest != s.Digest || !slices.Equal(got.Repos, s.Repos) {
		t.Fatalf("%+v, %v", got, err)
	}
	sets, err := got.HiddenSets()
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(sets)), []string{"b", "d"}) || !slices.Equal(sets["b"].Numbers(), []uint32{3, 9}) {
		t.Errorf("hidden: %v, %v", sets, err)
	}
	s.Hidden = nil
	if p := s.Planned(); len(p.Hidden) != 0 {
		t.Errorf("nothing is hidden: %v", p)
	}
}

func TestWrongPlannedShards(t *testing.T) {
	digest := make([]byte, 32)
	for what, p := range map[string]*searchv1.PlannedShard{
		"digest":        {Digest: digest[:31]},
		"repo too high": {Digest: digest, Repos: []string{"a"}, Hidden: []*searchv1.HiddenDocuments{{Repo: 1, Documents: []byte{1}}}},
	} {
		if s, err := searchwire.ParsePlanned(p); err == nil {
			t.Errorf("%s: %+v", what, s)
		}
	}
	s := searchwire.Shard{Hidden: map[string][]byte{"a": {0x80}}}
	if sets, err := s.HiddenSets(); err == nil {
		t.Errorf("bytes that are no set: %v", sets)
	}
}
