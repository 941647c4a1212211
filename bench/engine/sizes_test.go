package engine

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/trawl-search/trawl/bench/corpus"
)

var update = flag.Bool("update", false, "record the sizes as they are now")

const (
	recordedFile = "testdata/recorded.json"
	// tolerance is the growth that is ignored, since patches of the toolchain also change its tree
	// a little.
	tolerance = 1.03
	// heapTolerance is the growth of heaps that is ignored: they differ between runs and versions of
	// the toolchain. Their exact figures are those of the reports.
	heapTolerance = 2
	// least is the smallest share of a section whose growth is checked: below it, 3 % are lost in
	// rounding.
	least = .002
	// held is how many shards are opened at once to measure the heap of one.
	held = 1024
)

// parts are folders of the Go tree that serve as repos.
var parts = []string{"bytes", "encoding", "fmt", "go", "net", "regexp", "sort", "strconv", "text", "time"}

// figures are the recorded figures.
type figures struct {
	// IndexPerSource is the size of the shards per byte of the whole tree, and Sections the share
	// of each section in it.
	IndexPerSource float64            `json:"index_per_source"`
	Sections       map[string]float64 `json:"sections"`
	// HeapPerRepo is the heap in bytes after opening, SearchedHeapPerRepo that after one search of
	// each shard, with one shard per repo.
	HeapPerRepo         float64 `json:"heap_per_repo"`
	SearchedHeapPerRepo float64 `json:"searched_heap_per_repo"`
	// PackedHeapPerRepo is SearchedHeapPerRepo with all repos in one shard.
	PackedHeapPerRepo float64 `json:"packed_heap_per_repo"`
}

func measure(t *testing.T) figures {
	t.Helper()
	tree, err := corpus.Find(t.Context(), "go", t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var repos []corpus.Repo
	for _, p := range parts {
		repos = append(repos, corpus.Repo{Name: p, Dir: filepath.Join(tree.Repos[0].Dir, p)})
	}
	whole, err := Index(t.Context(), tree.Repos, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := Index(t.Context(), repos, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	single, err := Index(t.Context(), repos, t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	together, apart := open(t, packed), open(t, single)
	sections := map[string]float64{}
	sizes, err := Sections(whole.Shards)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sizes {
		sections[s.Tag] = round(float64(s.Bytes)/float64(whole.ReadBytes), 4)
	}
	return figures{
		IndexPerSource:      round(float64(whole.IndexBytes)/float64(whole.ReadBytes), 4),
		Sections:            sections,
		HeapPerRepo:         round(float64(apart.Heap)/float64(apart.Repos), 0),
		SearchedHeapPerRepo: round(float64(apart.HeapUsed)/float64(apart.Repos), 0),
		PackedHeapPerRepo:   round(float64(together.HeapUsed)/float64(together.Repos), 0),
	}
}

func open(t *testing.T, indexed Indexed) Opened {
	t.Helper()
	o, err := Open(t.Context(), indexed.Shards, held)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func round(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(x*scale) / scale
}

// TestSizes fails if a size is more than 3 % above the recorded one, or a heap more than twice it.
// After a change that justifies that, go test ./engine -update records the new figures.
func TestSizes(t *testing.T) {
	now := measure(t)
	if *update {
		text, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(recordedFile, append(text, '\n'), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(recordedFile)
	if err != nil {
		t.Fatal(err)
	}
	var recorded figures
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	compare(t, "index / source", now.IndexPerSource, recorded.IndexPerSource, tolerance)
	for tag, size := range now.Sections {
		was, ok := recorded.Sections[tag]
		if !ok {
			t.Errorf("section %s is not recorded", tag)
		}
		if max(size, was) >= least {
			compare(t, "section "+tag, size, was, tolerance)
		}
	}
	compare(t, "heap per repo", now.HeapPerRepo, recorded.HeapPerRepo, heapTolerance)
	compare(t, "heap per repo after a search", now.SearchedHeapPerRepo, recorded.SearchedHeapPerRepo, heapTolerance)
	compare(t, "heap per packed repo after a search", now.PackedHeapPerRepo, recorded.PackedHeapPerRepo, heapTolerance)
}

func compare(t *testing.T, what string, now, recorded, tolerance float64) {
	t.Helper()
	switch {
	case now > recorded*tolerance:
		t.Errorf("%s is %g, more than %g times the recorded %g", what, now, tolerance, recorded)
	case now*tolerance < recorded:
		t.Logf("%s is %g, below the recorded %g: record it with -update, so that it cannot grow back", what, now, recorded)
	}
}
