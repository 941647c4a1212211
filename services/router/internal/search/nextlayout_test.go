package search

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// evolving are roots that change at random, and the chunks of their snapshots.
type evolving struct {
	rng   *rand.Rand
	roots map[string]*catalogv1.Root
	// packs are the repos of each shard, in its order.
	packs  map[searchapi.Digest][]string
	chunks map[string]chunked
	made   int
}

// pack makes a shard of repos and publishes these, in place of what they had or beside it.
func (e *evolving) pack(names []string, beside bool) {
	slices.Sort(names)
	names = slices.Compact(names)
	e.made++
	d := searchapi.Digest(sha256.Sum256(fmt.Append(nil, e.made)))
	e.packs[d] = names
	for i, name := range names {
		root := &catalogv1.Root{Repo: name, Generation: uint64(e.made), Branches: []*catalogv1.Branch{{Name: "main", Commit: fmt.Sprint(e.made)}}}
		if old := e.roots[name]; old != nil {
			root.Branches = old.Branches
			if beside {
				root.Shards = slices.Clone(old.Shards)
			}
		}
		root.Shards = append(root.Shards, &catalogv1.ShardRef{
			Digest: d[:], SizeBytes: uint64(1000 * len(names)), Repos: uint32(len(names)), RepoNumber: uint32(i), Languages: []string{[]string{"Go", "C", "Zig"}[e.rng.IntN(3)]},
		})
		e.roots[name] = root
	}
}

// some are up to n names, few of which are new.
func (e *evolving) some(n int) (names []string) {
	known := slices.Sorted(maps.Keys(e.roots))
	for range 1 + e.rng.IntN(n) {
		if len(known) > 0 && e.rng.IntN(4) > 0 {
			names = append(names, known[e.rng.IntN(len(known))])
			continue
		}
		name := fmt.Sprintf("%c/repo%02d", 'a'+rune(e.rng.IntN(8)), e.rng.IntN(40))
		if e.rng.IntN(5) == 0 {
			name = strings.ToUpper(name)
		}
		names = append(names, name)
	}
	return names
}

// step changes some roots.
func (e *evolving) step() {
	switch e.rng.IntN(8) {
	case 0, 1:
		e.pack(e.some(1), e.rng.IntN(2) == 0)
	case 2:
		e.pack(e.some(12), false)
	case 3:
		e.pack(e.some(12), true)
	case 4: // renamed and indexed again, or deleted
		for _, name := range e.some(3) {
			if e.roots[name] != nil && e.rng.IntN(2) == 0 {
				e.pack([]string{name + "-renamed"[:1+e.rng.IntN(8)]}, false)
			}
			delete(e.roots, name)
		}
	case 5: // an organisation comes or goes
		if e.roots["org/repo100"] == nil {
			var names []string
			for i := range 300 {
				names = append(names, fmt.Sprintf("org/repo%03d", i))
			}
			e.pack(names, false)
		} else {
			maps.DeleteFunc(e.roots, func(name string, _ *catalogv1.Root) bool { return strings.HasPrefix(name, "org/") })
		}
	default: // documents are hidden, branches renamed
		for _, name := range e.some(3) {
			if old := e.roots[name]; old != nil {
				root := proto.CloneOf(old)
				root.Branches = []*catalogv1.Branch{{Name: fmt.Sprint("b", e.rng.IntN(3)), Commit: fmt.Sprint(e.made)}}
				root.Shards[0].Branches, root.Shards[0].Hidden = []uint32{1}, []byte{byte(e.rng.IntN(9))}
				e.roots[name] = root
			}
		}
	}
}

// chunked are chunks and what they were made of.
type chunked struct {
	roots  []*catalogv1.Root
	chunks []*catalog.Chunk
}

// snapshot are the chunks of the roots, by the beginnings of names. Chunks with the same roots stay.
func (e *evolving) snapshot() (chunks []*catalog.Chunk) {
	next := make(map[string]chunked)
	for _, name := range slices.Sorted(maps.Keys(e.roots)) {
		key := name[:min(len(name), 6)]
		next[key] = chunked{roots: append(next[key].roots, e.roots[name])}
	}
	for _, key := range slices.Sorted(maps.Keys(next)) {
		c := next[key]
		if old := e.chunks[key]; slices.Equal(old.roots, c.roots) {
			c = old
		} else {
			c.chunks = catalog.ChunksOf(slices.Values(c.roots))
		}
		next[key], chunks = c, append(chunks, c.chunks...)
	}
	e.chunks = next
	return chunks
}

// kept is a root as chunks keep it.
func kept(root *catalogv1.Root) *catalogv1.Root {
	_, r, _ := catalog.ChunksOf(slices.Values([]*catalogv1.Root{root}))[0].Find(root.Repo)
	return r.Root()
}

// principals are who may see which repos.
var principals = map[string]func(string) bool{
	"nobody":  func(string) bool { return false },
	"one":     func(name string) bool { return name == "a/repo01" || name == "org/repo200" },
	"all but": func(name string) bool { return name != "b/repo02" },
	"some": func(name string) bool {
		h := fnv.New32()
		h.Write([]byte(name))
		return h.Sum32()%3 > 0
	},
}

// TestLayoutFollows: a layout that took in all changes one after the other is the one that is made of the roots afresh, for
// all repos and for those that callers may see. Its plans allow exactly the live repos that the caller may see.
func TestLayoutFollows(t *testing.T) {
	for range testrun.Rounds(4, 30) {
		e := &evolving{
			rng: testrun.Rand(t), roots: make(map[string]*catalogv1.Root), packs: make(map[searchapi.Digest][]string),
		}
		layout := newLayout()
		visible := make(map[string]*Layout)
		for revision := range int64(60) {
			for range 1 + e.rng.IntN(3) {
				e.step()
			}
			var err error
			if layout, err = layout.Next(revision, e.snapshot()); err != nil {
				t.Fatal(err)
			}
			fresh, err := NewLayout(revision, slices.Collect(maps.Values(e.roots)))
			if err != nil {
				t.Fatal(err)
			}
			e.compare(t, "all", layout, fresh, func(string) bool { return true })
			for who, sees := range principals {
				switch {
				case visible[who] == nil:
					visible[who] = layout.Only(sees)
				case e.rng.IntN(3) > 0: // not everybody asks at once
					visible[who] = visible[who].nextOf(layout, named(sees))
				default:
					continue
				}
				e.compare(t, who, visible[who], fresh.Only(sees), sees)
			}
		}
	}
}

func (e *evolving) compare(t *testing.T, who string, got, want *Layout, sees func(string) bool) {
	t.Helper()
	if !slices.Equal(slices.Collect(got.names()), slices.Collect(want.names())) || got.repos != want.repos || got.shards != want.shards || got.Partial != want.Partial || got.Revision != want.Revision {
		t.Fatalf("%s: %d repos, %d shards, partial %v; want %d, %d, %v", who, got.repos, got.shards, got.Partial, want.repos, want.shards, want.Partial)
	}
	if have, wanted := plansOf(got.All()), plansOf(want.All()); !maps.EqualFunc(have, wanted, bytes.Equal) || len(have) != got.shards {
		t.Fatalf("%s: plans of %d shards, want %d", who, len(have), len(wanted))
	}
	have, unknown := got.languages()
	if wanted, wantUnknown := want.languages(); !maps.Equal(have, wanted) || unknown != wantUnknown {
		t.Fatalf("%s: languages %v, want %v", who, have, wanted)
	}
	for _, text := range []string{"r:a/", "-r:repo0[1-3]$", "lang:go", "lang:zig b:b1", "b:main -r:org", "r:^org/repo1 or lang:c", "r:nowhere"} {
		q, err := query.Parse(text, query.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		have, err := got.Select(t.Context(), q)
		wanted, err2 := want.Select(t.Context(), q)
		if err != nil || err2 != nil || !maps.EqualFunc(plansOf(have), plansOf(wanted), bytes.Equal) {
			t.Fatalf("%s, %s: %d shards, want %d", who, text, len(have), len(wanted))
		}
	}
	for _, name := range append(e.some(10), "org/repo200") {
		root, ok := got.Root(name)
		if wanted := e.roots[name]; ok != (wanted != nil && sees(name)) || ok && !proto.Equal(root, kept(wanted)) {
			t.Fatalf("%s: root of %s: %v, %v", who, name, root, ok)
		}
		if !maps.EqualFunc(plansOf(got.ShardsOf(name)), plansOf(want.ShardsOf(name)), bytes.Equal) || got.IndexBytes(name) != want.IndexBytes(name) {
			t.Fatalf("%s: shards of %s", who, name)
		}
	}
	for _, s := range got.All() {
		e.allows(t, who, s, sees)
	}
}

// allows compares the repos that a plan allows with the roots.
func (e *evolving) allows(t *testing.T, who string, s searchapi.Shard, sees func(string) bool) {
	t.Helper()
	for i, name := range e.packs[s.Digest] {
		served := slices.ContainsFunc(e.roots[name].GetShards(), func(ref *catalogv1.ShardRef) bool { return bytes.Equal(ref.Digest, s.Digest[:]) })
		if s.Repos.Has(i) != (served && sees(name)) {
			t.Fatalf("%s: the plan allows %s: %v; it is served from the shard: %v", who, name, s.Repos.Has(i), served)
		}
	}
}

// plansOf are the encoded plans of shards, by digest.
func plansOf(shards []searchapi.Shard) map[searchapi.Digest][]byte {
	plans := make(map[searchapi.Digest][]byte)
	for i := range shards {
		plans[shards[i].Digest], _ = proto.MarshalOptions{Deterministic: true}.Marshal(shards[i].Planned())
	}
	return plans
}

// TestRenamedOften: numbers of shards do not add up over many changes, and a bad root changes nothing until it is gone.
func TestRenamedOften(t *testing.T) {
	e := &evolving{rng: testrun.Rand(t), roots: make(map[string]*catalogv1.Root), packs: make(map[searchapi.Digest][]string)}
	layout := newLayout()
	for i := range int64(100) {
		clear(e.roots)
		e.pack([]string{fmt.Sprint("repo", i)}, false)
		next, err := layout.Next(i, e.snapshot())
		if err != nil || next.repos != 1 || len(next.All()) != 1 || !slices.Equal(slices.Collect(next.names()), []string{fmt.Sprint("repo", i)}) {
			t.Fatalf("%d: %d repos, %v", i, next.repos, err)
		}
		e.roots["bad"] = &catalogv1.Root{Repo: "bad", Shards: []*catalogv1.ShardRef{{Digest: []byte("short")}}}
		if _, err := next.Next(i, e.snapshot()); err == nil {
			t.Fatal("a root with a bad digest was taken")
		}
		layout = next
	}
	if n := len(layout.numbers.of); n > 2 || layout.numbers.next > 3 {
		t.Errorf("%d numbers of shards, the next is %d", n, layout.numbers.next)
	}
}
