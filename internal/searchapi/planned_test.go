package searchapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestPlannedShardIsReadAgain: overlays are decoded for the repos that they were
// encoded for, and an empty one takes no bytes.
func TestPlannedShardIsReadAgain(t *testing.T) {
	overlays := map[string]searchapi.Overlay{
		"b": {Hidden: docstore.SetOf([]uint32{3, 9}).Code(), Branches: []string{"main", "next"}, Places: []uint32{2, 0}},
		"c": {Branches: []string{"x"}, Places: []uint32{1}}, "d": {Hidden: docstore.SetOf([]uint32{0}).Code()}, "not asked": {Hidden: []byte{1}},
	}
	s := searchapi.Shard{Digest: searchapi.Digest{7}, Repos: []string{"a", "b", "c", "d"}, Overlays: overlays}
	got, err := searchapi.ParsePlanned(s.Planned())
	if err != nil || got.Digest != s.Digest || !slices.Equal(got.Repos, s.Repos) {
		t.Fatalf("%+v, %v", got, err)
	}
	sets, err := got.ShardOverlays()
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(sets)), []string{"b", "c", "d"}) || !slices.Equal(sets["b"].Hidden.Numbers(), []uint32{3, 9}) ||
		!slices.Equal(sets["b"].Branches, []search.Branch{{Name: "main", Place: 1}, {Name: "next", Place: -1}}) || len(sets["c"].Branches) != 1 {
		t.Errorf("overlays: %v, %v", sets, err)
	}
	s.Overlays = nil
	if p := s.Planned(); len(p.Hidden)+len(p.Branches) != 0 {
		t.Errorf("nothing has become of them: %v", p)
	}
}

// TestPlannedSize: a plan is no larger than PlannedSize, and not much smaller.
func TestPlannedSize(t *testing.T) {
	names := slices.Repeat([]string{"host/a", strings.Repeat("n", 1024), "host/" + strings.Repeat("m", 200)}, 300)
	overlays := map[string]searchapi.Overlay{
		"host/a": {Hidden: make([]byte, 16<<10), Branches: slices.Repeat([]string{"main", "a/rather/long/branch"}, 500), Places: slices.Repeat([]uint32{1, 1 << 31}, 500)},
	}
	for what, s := range map[string]searchapi.Shard{
		"one repo": {Repos: names[:1]}, "many repos": {Repos: names}, "changed": {Repos: names[:3], Overlays: overlays},
	} {
		for typeRepos := range 3 {
			p := &searchv1.Plan{Shards: []*searchv1.PlannedShard{s.Planned()}}
			for range typeRepos {
				p.Resolved = append(p.Resolved, &searchv1.RepoNames{Names: s.Repos})
			}
			size, said := proto.Size(p)-8*typeRepos, s.PlannedSize(typeRepos) // a list of names has a frame of its own
			if size > said || float64(said) > 1.5*float64(size)+20 {
				t.Errorf("%s, %d type:repo: %d bytes, said to be %d", what, typeRepos, size, said)
			}
		}
	}
}

func TestWrongPlannedShards(t *testing.T) {
	digest := make([]byte, 32)
	for what, p := range map[string]*searchv1.PlannedShard{
		"digest":                      {Digest: digest[:31]},
		"repo too high":               {Digest: digest, Repos: []string{"a"}, Hidden: []*searchv1.HiddenDocuments{{Repo: 1, Documents: []byte{1}}}},
		"branches of a repo too high": {Digest: digest, Repos: []string{"a"}, Branches: []*searchv1.ServedBranches{{Repo: 1}}},
	} {
		if s, err := searchapi.ParsePlanned(p); err == nil {
			t.Errorf("%s: %+v", what, s)
		}
	}
	for what, o := range map[string]searchapi.Overlay{
		"bytes that are no set": {Hidden: []byte{0x80}},
		"a branch too many":     {Branches: []string{"a", "b"}, Places: []uint32{1}},
		"a place too many":      {Branches: []string{"a"}, Places: []uint32{1, 2}},
	} {
		s := searchapi.Shard{Overlays: map[string]searchapi.Overlay{"a": o}}
		if overlays, err := s.ShardOverlays(); err == nil {
			t.Errorf("%s: %v", what, overlays)
		}
	}
}

// TestOnly: the names of a plan, in any order, and no others.
func TestOnly(t *testing.T) {
	for _, names := range [][]string{nil, {"a"}, {"a", "b", "d"}, {"d", "a", "b"}, {"b", "b"}} {
		only := searchapi.Only(names)
		for _, name := range []string{"", "a", "b", "c", "d", "ab"} {
			if got := only(name); got != slices.Contains(names, name) {
				t.Errorf("%q: only(%q) is %v", names, name, got)
			}
		}
	}
}
