package merge_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/merge"
)

// format1 returns the committed shards of format version 1, which nothing writes any more.
func format1(t *testing.T) (files []*format.File) {
	t.Helper()
	for _, name := range []string{"fresh", "compact"} {
		data, err := os.ReadFile(filepath.Join("../testdata/v1", name+".trawl"))
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, name, data)
		if f.Versions().Writer != format.Version1 {
			t.Fatalf("%s is of version %d", name, f.Versions().Writer)
		}
		files = append(files, f)
	}
	return files
}

// modelOfShard reads all repos and documents of a shard.
func modelOfShard(t *testing.T, f *format.File) (repos []repository) {
	t.Helper()
	docs, err := docstore.OpenDocs(f)
	if err != nil {
		t.Fatal(err)
	}
	content, err := docstore.OpenContent(f)
	if err != nil {
		t.Fatal(err)
	}
	reader := content.NewReader()
	for i := range docs.Repos() {
		record, err := docs.Repo(i)
		if err != nil {
			t.Fatal(err)
		}
		r := repository{record: record}
		r.record.FirstDoc, r.record.Docs = 0, 0
		for doc := record.FirstDoc; doc < record.FirstDoc+record.Docs; doc++ {
			r.documents = append(r.documents, documentOf(t, docs, reader, &record, doc))
		}
		repos = append(repos, r)
	}
	return repos
}

func documentOf(t *testing.T, docs *docstore.Docs, reader *docstore.Reader, r *docstore.Repo, doc uint32) (d document) {
	t.Helper()
	path, err := docs.AppendPath(nil, doc)
	d.path = string(path)
	keep := func(next error) { err = errors.Join(err, next) }
	var next error
	d.language, next = docs.Language(doc)
	keep(next)
	d.skip, next = docs.Skip(doc)
	keep(next)
	d.size, next = docs.Size(doc)
	keep(next)
	d.oid, next = docs.OID(doc)
	keep(next)
	set, next := docs.BranchSet(doc)
	keep(next)
	ordinals, next := docs.AppendBranchSet(nil, set)
	keep(next)
	for _, ordinal := range ordinals {
		d.branches = append(d.branches, r.Branches[ordinal].Name)
	}
	blob, next := docs.Blob(doc)
	keep(next)
	d.content, next = reader.Append([]byte{}, blob, 0, math.MaxUint32)
	keep(next)
	if err != nil {
		t.Fatalf("document %d: %v", doc, err)
	}
	return d
}

// takeAll takes all repos of a model.
func takeAll(repos []repository) (takes []merge.Repo) {
	for _, r := range repos {
		takes = append(takes, merge.Repo{Record: r.record})
	}
	return takes
}

// TestFormat1 merges shards of format version 1 on their own and with each other's deltas: the
// result is what the builder writes now.
func TestFormat1(t *testing.T) {
	for _, f := range format1(t) {
		repos := modelOfShard(t, f)
		if len(repos) < 3 || len(repos[1].documents) < 7 {
			t.Fatalf("the shard has %d repos", len(repos))
		}
		for _, memory := range []int64{0, 1} {
			want, wantResult := shardOf(t, repos, build.Options{})
			got, result := merged(t, []merge.Input{{File: f, Repos: takeAll(repos)}}, merge.Options{Memory: memory})
			checkSame(t, got, want, result, wantResult)
		}
	}
}

// TestFormat1WithNewer merges a base of format version 1 with a delta that replaces some of its
// documents, and with other repos, in varying orders and with varying shared contents.
func TestFormat1WithNewer(t *testing.T) {
	for seed := range uint64(6) {
		f := format1(t)[seed%2]
		base := modelOfShard(t, f)
		takes := takeAll(base)
		delta := repository{record: base[1].record}
		all := slices.Clone(base)
		all[1].documents = slices.Clone(base[1].documents)
		for i := range all[1].documents {
			d := &all[1].documents[i]
			if d.skip != docstore.NotSkipped || uint64(i)%3 != seed%3 {
				continue
			}
			takes[1].Hidden = append(takes[1].Hidden, uint32(i))
			if i%2 == 0 {
				d.content = append(bytes.Clone(d.content), "\nlast_line of ſome text\n"...)
				d.oid, d.size = gitID(d.content), 0
			}
			delta.documents = append(delta.documents, *d)
		}
		all[1].sort()
		delta.sort()
		deltaData, _ := shardOf(t, []repository{delta}, build.Options{})
		inputs := []merge.Input{{File: f, Repos: takes}, {File: open(t, "delta", deltaData), Repos: takeAll([]repository{delta})}}
		others := modelOf(indextest.Random(seed))
		// A fork shares contents with the old shard and comes before it.
		fork := repository{record: others[0].record, documents: nil}
		fork.record.Name, fork.record.Branches = "a/fork", base[2].record.Branches
		fork.documents = slices.Clone(base[2].documents)
		others = append([]repository{fork}, others...)
		slices.SortFunc(others, func(a, b repository) int { return compare(a.record.Name, b.record.Name) })
		otherData, _ := shardOf(t, others, build.Options{})
		inputs = append(inputs, merge.Input{File: open(t, "others", otherData), Repos: takeAll(others)})
		if seed%2 == 1 {
			slices.Reverse(inputs)
		}
		all = append(all, others...)
		slices.SortFunc(all, func(a, b repository) int { return compare(a.record.Name, b.record.Name) })
		want, wantResult := shardOf(t, all, build.Options{})
		for _, memory := range []int64{0, 1} {
			got, result := merged(t, inputs, merge.Options{Memory: memory, Processors: 2})
			checkSame(t, got, want, result, wantResult)
		}
	}
}

// TestFormat1LeavesNoFiles: a merge leaves no temporary file, however it ends, and without a folder
// for them it fails.
func TestFormat1LeavesNoFiles(t *testing.T) {
	f := format1(t)[0]
	inputs := []merge.Input{{File: f, Repos: takeAll(modelOfShard(t, f))}}
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
	if _, err := merge.Shards(context(), &bytes.Buffer{}, inputs, merge.Options{Memory: 1, TempDir: absent}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
}
