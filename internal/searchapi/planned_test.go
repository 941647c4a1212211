package searchapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestPlannedShardIsReadAgain: overlays are decoded for the repos that they were
// encoded for, and an empty one takes no bytes.
func TestPlannedShardIsReadAgain(t *testing.T) {
	overlays := []searchapi.Overlay{
		{Repo: 1, Hidden: docstore.SetOf([]uint32{3, 9}).Code(), Branches: []string{"main", "next"}, Places: []uint32{2, 0}},
		{Repo: 2, Branches: []string{"x"}, Places: []uint32{1}}, {Repo: 3, Hidden: docstore.SetOf([]uint32{0}).Code()},
	}
	s := searchapi.Shard{Digest: searchapi.Digest{7}, Repos: searchapi.SomeRepos(0, 1, 2, 3), Overlays: overlays}
	got, err := searchapi.ParsePlanned(s.Planned())
	if err != nil || got.Digest != s.Digest || got.Repos.Len() != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	sets, err := got.ShardOverlays()
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(sets)), []int{1, 2, 3}) || !slices.Equal(sets[1].Hidden.Numbers(), []uint32{3, 9}) ||
		!slices.Equal(sets[1].Branches, []search.Branch{{Name: "main", Place: 1}, {Name: "next", Place: -1}}) || len(sets[2].Branches) != 1 {
		t.Errorf("overlays: %v, %v", sets, err)
	}
	s.Overlays = nil
	if p := s.Planned(); len(p.Hidden)+len(p.Branches) != 0 {
		t.Errorf("nothing has become of them: %v", p)
	}
}

// TestReposOfAPlan: a plan allows exactly the repos that it was made for. A thousand repos take at most a bitmap, and a
// single one a few bytes.
func TestReposOfAPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Uint32Range(0, 2000).Draw(t, "most")
		numbers := rapid.SliceOf(rapid.Uint32Range(0, most)).Draw(t, "numbers")
		if rapid.Bool().Draw(t, "inverted") {
			kept := slices.Clone(numbers)
			numbers = nil
			for n := range most {
				if !slices.Contains(kept, n) {
					numbers = append(numbers, n)
				}
			}
		}
		s := searchapi.Shard{Repos: searchapi.SomeRepos(numbers...)}
		p := s.Planned()
		got, err := searchapi.ParsePlanned(p)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
		if have := slices.Collect(got.Repos.Numbers()); !slices.Equal(have, numbers) || got.Repos.Len() != len(numbers) || got.Repos.All() {
			t.Fatalf("%v, want %v", have, numbers)
		}
		for n := range most + 70 {
			if _, want := slices.BinarySearch(numbers, n); got.Repos.Has(int(n)) != want || got.Repos.Filter()(int(n)) != want {
				t.Fatalf("has %d: %v", n, !want)
			}
		}
		if size := len(p.GetRuns()) + len(p.GetBitmap()); size > int(most)/8+1 || len(numbers) == 1 && size > 4 {
			t.Fatalf("%d of %d repos take %d bytes", len(numbers), most+1, size)
		}
	})
	all := searchapi.Shard{Repos: searchapi.AllRepos()}
	if got, err := searchapi.ParsePlanned(all.Planned()); err != nil || !got.Repos.All() || !got.Repos.Has(1<<30) || got.Repos.Filter() != nil {
		t.Errorf("all: %+v, %v", got, err)
	}
}

// TestPlannedSize: a plan is no larger than PlannedSize, and not much smaller.
func TestPlannedSize(t *testing.T) {
	names := slices.Repeat([]string{"host/a", strings.Repeat("n", 1024), "host/" + strings.Repeat("m", 200)}, 300)
	overlays := []searchapi.Overlay{
		{Hidden: make([]byte, 16<<10), Branches: slices.Repeat([]string{"main", "a/rather/long/branch"}, 500), Places: slices.Repeat([]uint32{1, 1 << 31}, 500)},
	}
	var even []uint32
	for i := range names {
		even = append(even, uint32(2*i))
	}
	for what, s := range map[string]searchapi.Shard{
		"one repo": {Repos: searchapi.AllRepos()}, "many repos": {Repos: searchapi.SomeRepos(even...)}, "changed": {Repos: searchapi.SomeRepos(0, 1, 2), Overlays: overlays},
	} {
		for _, name := range names {
			s.Names += searchapi.NameSize(name)
		}
		for typeRepos := range 3 {
			p := &searchv1.Plan{Shards: []*searchv1.PlannedShard{s.Planned()}}
			for range typeRepos {
				p.Resolved = append(p.Resolved, &searchv1.RepoNames{Names: names})
			}
			size, said := proto.Size(p)-8*typeRepos, s.PlannedSize(typeRepos) // a list of names has a frame of its own
			if size > said || float64(said) > 1.5*float64(size)+20 {
				t.Errorf("%s, %d type:repo: %d bytes, said to be %d", what, typeRepos, size, said)
			}
		}
	}
}

// TestWrongPlannedShards: a plan that does not say which repos may be read, or says it wrongly, allows none.
func TestWrongPlannedShards(t *testing.T) {
	digest := make([]byte, 32)
	runs := func(code ...byte) *searchv1.PlannedShard_Runs { return &searchv1.PlannedShard_Runs{Runs: code} }
	for what, p := range map[string]*searchv1.PlannedShard{
		"digest":             {Digest: digest[:31], Repos: &searchv1.PlannedShard_All{All: true}},
		"no repos":           {Digest: digest},
		"not all":            {Digest: digest, Repos: &searchv1.PlannedShard_All{}},
		"half a run":         {Digest: digest, Repos: runs(1)},
		"an empty run":       {Digest: digest, Repos: runs(1, 0)},
		"half a number":      {Digest: digest, Repos: runs(1, 0x80)},
		"a run without end":  {Digest: digest, Repos: runs(0, 0xff, 0xff, 0xff, 0xff, 0x7f)},
		"a bitmap too large": {Digest: digest, Repos: &searchv1.PlannedShard_Bitmap{Bitmap: make([]byte, 2<<20+1)}},
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
		s := searchapi.Shard{Overlays: []searchapi.Overlay{o}}
		if overlays, err := s.ShardOverlays(); err == nil {
			t.Errorf("%s: %v", what, overlays)
		}
	}
}
