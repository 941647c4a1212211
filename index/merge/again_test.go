package merge_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/merge"
	"github.com/trawl-search/trawl/index/symbols"
)

// byOtherRules builds a shard that another version of the rules marked, which found no definitions.
func byOtherRules(t *testing.T, repos []repository) *format.File {
	t.Helper()
	return withPostings(t, repos, repos)
}

// withPostings is byOtherRules with the posting lists of words of another shard.
func withPostings(t *testing.T, repos, others []repository) *format.File {
	t.Helper()
	data, _ := shardOf(t, repos, build.Options{})
	plain := slices.Clone(others)
	for i := range plain {
		plain[i].documents = slices.Clone(plain[i].documents)
		for j := range plain[i].documents {
			plain[i].documents[j].language = ""
		}
	}
	unmarked, _ := shardOf(t, plain, build.Options{})
	f, other := open(t, "marked", data), open(t, "unmarked", unmarked)
	var buf bytes.Buffer
	w := format.NewWriter(&buf)
	for _, info := range f.Sections() {
		body := data[info.Offset : info.Offset+info.Length]
		switch info.Tag {
		case format.TagWordPostings, format.TagWordTable:
			section, err := other.Need(info.Tag)
			if err == nil {
				body, err = section.Bytes(0, section.Len())
			}
			if err != nil {
				t.Fatal(err)
			}
		case format.TagDefinitions:
			body = []byte{symbols.Version + 1, 0, 0, 0}
		}
		if err := w.WriteSection(info.Tag, info.Flags, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, "by other rules", buf.Bytes())
}

// TestIndexedAgain: a shard that another version of the rules marked becomes what is built now, alone
// and with one of this version, however little is kept in memory.
func TestIndexedAgain(t *testing.T) {
	for seed := range uint64(6) {
		all := modelOf(indextest.Random(seed))
		old, recent := slices.Clone(all), slices.Clone(all)
		for i := range all {
			old[i].documents, recent[i].documents = nil, nil
			for j, d := range all[i].documents {
				half := &old[i]
				if uint64(j)%3 == seed%3 {
					half = &recent[i]
				}
				half.documents = append(half.documents, d)
			}
		}
		data, _ := shardOf(t, recent, build.Options{})
		want, wantResult := shardOf(t, all, build.Options{})
		for _, inputs := range [][]merge.Input{
			{{File: byOtherRules(t, all), Repos: takeAll(all)}},
			{{File: open(t, "recent", data), Repos: takeAll(all)}, {File: byOtherRules(t, old), Repos: takeAll(all)}},
		} {
			for _, memory := range []int64{0, 1} {
				got, result := merged(t, inputs, merge.Options{Memory: memory, Processors: 2})
				checkSame(t, got, want, result, wantResult)
			}
		}
	}
}

// TestIndexedAgainLeavesNoFiles: a merge that indexes again leaves no temporary file, however it
// ends, and without a folder for them it fails.
func TestIndexedAgainLeavesNoFiles(t *testing.T) {
	repos := modelOf(indextest.Random(1))
	inputs := []merge.Input{{File: byOtherRules(t, repos), Repos: takeAll(repos)}}
	dir := t.TempDir()
	data, _ := merged(t, inputs, merge.Options{Memory: 1, TempDir: dir})
	for n := 0; n < len(data); n += len(data) / 20 {
		if _, err := merge.Shards(context(), &fullDisk{n}, inputs, merge.Options{Memory: 1, TempDir: dir}); !errors.Is(err, errDisk) {
			t.Errorf("with room for %d bytes: %v", n, err)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v (%v)", names, err)
	}
	absent := filepath.Join(dir, "absent")
	if _, err := merge.Shards(context(), io.Discard, inputs, merge.Options{Memory: 1, TempDir: absent}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
}

// takeAll takes all repos of a model.
func takeAll(repos []repository) (takes []merge.Repo) {
	for _, r := range repos {
		takes = append(takes, merge.Repo{Record: r.record})
	}
	return takes
}
