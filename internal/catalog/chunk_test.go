package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestChunksAreTheRoots: after any changes, the chunks hold exactly the roots that were put and not removed,
// in order, and a change leaves all earlier lists as they were.
func TestChunksAreTheRoots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := make(map[string]*catalogv1.Root)
		for i := range rapid.IntRange(0, 600).Draw(t, "at first") {
			root := anyRoot(t, fmt.Sprintf("repo%04d", 2*i), i%50 == 0)
			want[root.Repo] = root
		}
		chunks := ChunksOf(inOrder(want))
		check(t, chunks, want)
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			before, held := slices.Clone(chunks), maps.Clone(want)
			first := rapid.IntRange(0, 1300).Draw(t, "first")
			number := rapid.IntRange(1, 400).Draw(t, "number")
			every := rapid.SampledFrom([]int{1, 1, 7, 300}).Draw(t, "every")
			deletes := rapid.Bool().Draw(t, "deletes")
			var changes []change
			for i := first; i < first+number; i += every {
				name := fmt.Sprintf("repo%04d", i)
				if deletes {
					changes = append(changes, change{repo: name})
					delete(want, name)
					continue
				}
				want[name] = anyRoot(t, name, i%100 == 0)
				changes = append(changes, change{name, want[name]})
			}
			chunks = changed(chunks, changes)
			check(t, before, held)
			check(t, chunks, want)
		}
	})
}

func inOrder(roots map[string]*catalogv1.Root) func(func(*catalogv1.Root) bool) {
	return func(yield func(*catalogv1.Root) bool) {
		for _, name := range slices.Sorted(maps.Keys(roots)) {
			if !yield(roots[name]) {
				return
			}
		}
	}
}

// anyRoot is a root with every field that searches need, and others; a plain one has few.
func anyRoot(t *rapid.T, name string, draws bool) *catalogv1.Root {
	root := &catalogv1.Root{
		Repo: name, Generation: 1, Url: "https://" + name + ".git", Epoch: 3, ManifestKey: "m", Branches: []*catalogv1.Branch{{Name: "main", Commit: strings.Repeat("0a", 20)}},
		Shards: []*catalogv1.ShardRef{{Digest: []byte("shared"), Key: "shards/shared", SizeBytes: 10, Repos: 1000, RepoNumber: 999, Languages: []string{"Go"}, Documents: 7}},
	}
	if !draws {
		return root
	}
	text := rapid.SampledFrom([]string{"", "main", "a\nb", "\xff\x00", name, strings.Repeat("long", 1<<rapid.IntRange(0, 15).Draw(t, "long"))})
	part := rapid.SampledFrom([]string{"", "https://", ".git", name})
	root.Generation, root.Id, root.Url = rapid.Uint64().Draw(t, "generation"), rapid.Uint32().Draw(t, "id"), part.Draw(t, "before")+part.Draw(t, "named")+part.Draw(t, "after")
	if rapid.Bool().Draw(t, "time") {
		root.PublishedAt = timestamppb.New(time.UnixMicro(rapid.Int64Range(1000, 1<<60).Draw(t, "published")))
	}
	root.Branches, root.Shards = nil, nil
	for range rapid.IntRange(0, 3).Draw(t, "branches") {
		root.Branches = append(root.Branches, &catalogv1.Branch{Name: text.Draw(t, "branch"), Commit: rapid.SampledFrom([]string{"", "c", "0A", "0a", "0a0", "zz"}).Draw(t, "commit")})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "shards") {
		ref := &catalogv1.ShardRef{
			Digest: []byte(text.Draw(t, "digest") + fmt.Sprint(i)), Key: text.Draw(t, "key"), SizeBytes: rapid.Uint64().Draw(t, "size"), Repos: rapid.Uint32().Draw(t, "repos"),
			RepoNumber: rapid.Uint32().Draw(t, "number"), Branches: rapid.SliceOfN(rapid.Uint32(), 0, 3).Draw(t, "places"), Hidden: rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "hidden"),
		}
		for range rapid.IntRange(0, 200).Draw(t, "languages") {
			ref.Languages = append(ref.Languages, fmt.Sprint("language", len(ref.Languages)))
		}
		root.Shards = append(root.Shards, ref)
	}
	return root
}

// kept is a root without what chunks do not keep.
func kept(root *catalogv1.Root) *catalogv1.Root {
	kept := &catalogv1.Root{Repo: root.Repo, Generation: root.Generation, Id: root.Id, Url: root.Url, Branches: root.Branches}
	if root.PublishedAt != nil {
		kept.PublishedAt = timestamppb.New(root.PublishedAt.AsTime().Truncate(time.Millisecond))
	}
	for _, ref := range root.Shards {
		kept.Shards = append(kept.Shards, &catalogv1.ShardRef{
			Digest: ref.Digest, Key: ref.Key, SizeBytes: ref.SizeBytes, Repos: ref.Repos, RepoNumber: ref.RepoNumber, Languages: ref.Languages, Branches: ref.Branches, Hidden: ref.Hidden,
		})
	}
	return kept
}

func check(t *rapid.T, chunks []*Chunk, want map[string]*catalogv1.Root) {
	n, last := 0, ""
	for _, c := range chunks {
		if c.Len() == 0 || c.Len() > mostInChunk || c.First() <= last && n > 0 {
			t.Fatalf("a chunk of %d roots from %q after %q", c.Len(), c.First(), last)
		}
		shards, largest := make(map[int]bool), uint32(0)
		for i, r := range c.All() {
			if root := r.Root(); want[r.Repo] == nil || !proto.Equal(root, kept(want[r.Repo])) || r.Repo <= last && n > 0 || r.ID() != root.Id {
				t.Fatalf("%v, want %v", root, want[r.Repo])
			}
			var names []string
			for _, b := range want[r.Repo].Branches {
				if commit, named := r.Commit(b.Name); !slices.Contains(names, b.Name) && (commit != b.Commit || !named) {
					t.Fatalf("branch %q is at %q, %v, want %q", b.Name, commit, named, b.Commit)
				}
				names = append(names, b.Name)
			}
			if _, named := r.Commit("no such branch"); named {
				t.Fatal("a branch that the root does not name")
			}
			if got := r.Branches(nil); !slices.Equal(got, names) {
				t.Fatalf("branches %q, want %q", got, names)
			}
			for j, h := range r.Shards(nil) {
				ref := want[r.Repo].Shards[j]
				largest = max(largest, h.Number)
				speaks, known := h.Speaks("language1")
				if shards[h.Shard] = true; h.Number != ref.RepoNumber || known != (len(ref.Languages) > 0) || speaks != (len(ref.Languages) > 1) || h.Overlaid != (len(ref.Hidden)+len(ref.Branches) > 0) {
					t.Fatalf("shard %v, want %v", h, ref)
				}
			}
			if at, found, ok := c.Find(r.Repo); at != i || found.Repo != r.Repo || !ok {
				t.Fatalf("%s is at %d, %v, want %d", r.Repo, at, ok, i)
			}
			n, last = n+1, r.Repo
		}
		checkSummary(t, c)
		if c.Last() != last || c.LargestNumber() != largest {
			t.Fatalf("the last is %q, want %q; the largest number %d, want %d", c.Last(), last, c.LargestNumber(), largest)
		}
		if len(shards) != len(c.Shards()) {
			t.Fatalf("%d shards, want %d", len(c.Shards()), len(shards))
		}
	}
	if n != len(want) {
		t.Fatalf("%d roots, want %d", n, len(want))
	}
	s := newSnapshot(1, chunks)
	for i := range 10 {
		name := fmt.Sprintf("repo%04d", rapid.IntRange(0, 2400).Draw(t, fmt.Sprint("name", i)))
		if root, ok := s.Root(name); ok != (want[name] != nil) || root.GetRepo() != want[name].GetRepo() {
			t.Fatalf("%s: %v, %v", name, root, ok)
		}
	}
}

// checkSummary compares the summary of a chunk with its records.
func checkSummary(t *rapid.T, c *Chunk) {
	branches, unnamed := make(map[string]bool), false
	languages, unknown := make([]map[string]int, len(c.Shards())), make([]bool, len(c.Shards()))
	for i := range languages {
		languages[i] = make(map[string]int)
	}
	for _, r := range c.All() {
		names := r.Branches(nil)
		unnamed = unnamed || len(names) == 0
		for _, name := range names {
			branches[name] = true
		}
		for _, h := range r.Shards(nil) {
			_, known := h.Speaks("")
			unknown[h.Shard] = unknown[h.Shard] || !known
			for l := range h.Languages() {
				languages[h.Shard][l]++
			}
		}
	}
	s := c.Summary()
	if s.Unnamed != unnamed || !slices.Equal(slices.Sorted(slices.Values(s.Branches)), slices.Sorted(maps.Keys(branches))) {
		t.Fatalf("branches %q, some without: %v; want %v, %v", s.Branches, s.Unnamed, branches, unnamed)
	}
	for i := range s.Shards {
		shard := &s.Shards[i]
		if got := maps.Collect(shard.Languages()); !maps.Equal(got, languages[i]) || shard.Known() == unknown[i] {
			t.Fatalf("languages %v, known %v; want %v, %v", got, shard.Known(), languages[i], !unknown[i])
		}
		for l := range languages[i] {
			if speaks, known := shard.Speaks(l); !speaks || known == unknown[i] {
				t.Fatalf("%s is spoken: %v, known %v", l, speaks, known)
			}
		}
		if speaks, _ := shard.Speaks("no such language"); speaks {
			t.Fatal("a language that no root names is spoken")
		}
	}
}

// TestShardsTwice: the second mention of a shard in a root does not count.
func TestShardsTwice(t *testing.T) {
	ref := &catalogv1.ShardRef{Digest: []byte("d")}
	chunks := ChunksOf(slices.Values([]*catalogv1.Root{{Repo: "r", Shards: []*catalogv1.ShardRef{ref, ref}}}))
	if _, r, _ := chunks[0].Find("r"); len(r.Shards(nil)) != 1 {
		t.Errorf("shards %v", r.Shards(nil))
	}
}

// BenchmarkChange measures one change of a root in a snapshot of very many.
func BenchmarkChange(b *testing.B) {
	const n = 1_000_000
	root := func(i int) *catalogv1.Root {
		return &catalogv1.Root{
			Repo: fmt.Sprintf("github.com/organisation%04d/repository%04d", i/10_000, i%10_000), Branches: []*catalogv1.Branch{{Name: "main", Commit: fmt.Sprintf("%040x", i)}},
			Shards: []*catalogv1.ShardRef{{Digest: fmt.Append(nil, i/1000), Key: fmt.Sprint(i / 1000), RepoNumber: uint32(i % 1000), Languages: []string{"Go", "Markdown", "YAML"}}},
		}
	}
	chunks := ChunksOf(func(yield func(*catalogv1.Root) bool) {
		for i := 0; i < n && yield(root(i)); i++ {
		}
	})
	start := processorTime(b)
	for i := 0; b.Loop(); i++ {
		next := root(i * 7919 % n)
		changed(chunks, []change{{next.Repo, next}})
	}
	b.ReportMetric(float64((processorTime(b)-start).Nanoseconds())/float64(b.N), "processor-ns/op")
}

func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
