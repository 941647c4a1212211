package search

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

var (
	anyLanguages = []string{"Go", "C", "Rust", "C++"}
	anyBranches  = []string{"main", "dev", "master", "feature/main", "HEAD"}
	anyNames     = []string{"a", "B", "pond", "Heron", "réseau", "x-y", "lib"}
	anyRepos     = []string{"a", "B", "^host/a", "pond|heron", "(?i)HERON", "[ab]-", "1$", "é", "nowhere", ".", "host/.*-1", "(?i)ré", "b-\\d+1"}
)

// world is a set of roots and of the shards that hold their repos. A shard may say that it has more repos than roots name.
type world struct {
	roots  []*catalogv1.Root
	places []uint32 // of each shard that no root has yet
	repos  []uint32 // that each shard says to have; 0 in old roots
}

func some[T any](rng *rand.Rand, of []T, most int) (chosen []T) {
	for _, i := range rng.Perm(len(of))[:rng.IntN(min(most, len(of))+1)] {
		chosen = append(chosen, of[i])
	}
	return chosen
}

func newWorld(rng *rand.Rand) *world {
	w := &world{}
	for range 1 + rng.IntN(12) {
		n := uint32(1 + rng.IntN(6))
		w.places, w.repos = append(w.places, n), append(w.repos, n)
		if rng.IntN(10) == 0 {
			w.repos[len(w.repos)-1] = 0
		}
	}
	return w
}

// add adds roots of new repos in places that are free.
func (w *world) add(rng *rand.Rand, number int, suffix string) {
	long := ""
	if rng.IntN(2) == 0 {
		long = strings.Repeat("-long", 100)
	}
	for i := range number {
		root := &catalogv1.Root{Repo: fmt.Sprintf("host/%s-%d%s%s", anyNames[rng.IntN(len(anyNames))], i, long, suffix)}
		for _, b := range some(rng, anyBranches, 3) {
			root.Branches = append(root.Branches, &catalogv1.Branch{Name: b, Commit: "c0ffee"})
		}
		for _, s := range rng.Perm(len(w.places))[:min(len(w.places), rng.IntN(4))] {
			if w.places[s] == 0 {
				continue
			}
			w.places[s]--
			d := sha256.Sum256([]byte{byte(s)})
			ref := &catalogv1.ShardRef{Digest: d[:], Repos: w.repos[s], RepoNumber: w.places[s], Documents: 9}
			if rng.IntN(6) > 0 {
				ref.Languages = some(rng, append([]string{""}, anyLanguages...), 3)
			}
			root.Shards = append(root.Shards, ref)
		}
		w.roots = append(w.roots, root)
	}
}

func anyQuery(rng *rand.Rand, depth int) query.Q {
	several := func() (qs []query.Q) {
		for range 1 + rng.IntN(3) {
			qs = append(qs, anyQuery(rng, depth-1))
		}
		return qs
	}
	kind := rng.IntN(13)
	if depth == 0 {
		kind = 6 + rng.IntN(7)
	}
	switch kind {
	case 0, 1:
		return &query.And{Children: several()}
	case 2, 3:
		return &query.Or{Children: several()}
	case 4:
		return &query.Not{Child: anyQuery(rng, depth-1)}
	case 5:
		return &query.Type{Kind: []query.Kind{query.KindRepo, query.KindFileName}[rng.IntN(2)], Child: anyQuery(rng, depth-1)}
	case 6:
		return &query.Substring{Pattern: "text"}
	case 7, 8:
		return &query.Language{Name: anyLanguages[rng.IntN(len(anyLanguages))]}
	case 9, 10:
		return &query.Branch{Pattern: append([]string{"ma", "none"}, anyBranches...)[rng.IntN(7)], Exact: rng.IntN(2) == 0}
	case 11:
		set := map[string]bool{}
		for range rng.IntN(4) {
			set[fmt.Sprintf("host/%s-%d", anyNames[rng.IntN(len(anyNames))], rng.IntN(9))] = true
		}
		return &query.RepoSet{Names: set}
	case 12:
		if rng.IntN(8) == 0 {
			return &query.Const{Value: rng.IntN(2) == 0}
		}
	}
	tree, err := syntax.Parse(anyRepos[rng.IntN(len(anyRepos))], syntax.Perl)
	if err != nil {
		panic(err) // all are valid
	}
	return &query.Repo{Tree: tree}
}

// asked is a document that a query is evaluated for. Branches are all of its repo, nil if unknown.
type asked struct {
	repo, language string
	branches       []string
	on             uint
}

// matches says whether a document matches whatever its text is: 1, whether it does not: -1, or 0.
func (d *asked) matches(q query.Q) verdict {
	switch q := q.(type) {
	case *query.And:
		v := all
		for _, c := range q.Children {
			v = min(v, d.matches(c))
		}
		return v
	case *query.Or:
		v := none
		for _, c := range q.Children {
			v = max(v, d.matches(c))
		}
		return v
	case *query.Not:
		return -d.matches(q.Child)
	case *query.Type:
		if q.Kind != query.KindRepo {
			return d.matches(q.Child)
		}
	case *query.Const:
		return exactly(q.Value)
	case *query.Repo:
		return exactly(regexp.MustCompile(q.Tree.String()).MatchString(d.repo))
	case *query.RepoSet:
		return exactly(q.Names[d.repo])
	case *query.Language:
		return exactly(d.language == q.Name)
	case *query.Branch:
		if d.branches == nil {
			return maybe
		}
		for i, b := range d.branches {
			if d.on>>i&1 != 0 && q.Matches(b, i) {
				return all
			}
		}
		return none
	}
	return maybe
}

// mayMatch looks at all documents that a repo may have in a shard.
func mayMatch(q query.Q, root *catalogv1.Root, ref *catalogv1.ShardRef) bool {
	languages := ref.Languages
	if len(languages) == 0 {
		languages = append([]string{"", "other"}, anyLanguages...)
	}
	d := asked{repo: root.Repo}
	for _, b := range root.Branches {
		d.branches = append(d.branches, b.Name)
	}
	for _, d.language = range languages {
		for d.on = 1; d.on < 2 || d.on < 1<<len(d.branches); d.on++ {
			if d.matches(q) != none {
				return true
			}
		}
	}
	return false
}

// selected are the shards for a query, each with all that a plan says of it but its place.
func selected(t *testing.T, l *Layout, q query.Q) map[searchapi.Digest]string {
	t.Helper()
	wanted, err := l.selectWith(t.Context(), q, newExpressions(nil))
	if err != nil {
		t.Fatal(err)
	}
	in := make(map[searchapi.Digest]string)
	for _, s := range wanted {
		if _, twice := in[s.Digest]; twice {
			t.Fatalf("%v wants a shard twice", q)
		}
		in[s.Digest] = fmt.Sprint(s.Names, s.Overlays)
		if !s.Repos.All() {
			in[s.Digest] += fmt.Sprint(slices.Collect(s.Repos.Numbers()))
		}
	}
	return in
}

// differing are the shards that differ.
func differing(a, b map[searchapi.Digest]string) (text string) {
	for d, what := range a {
		if other, found := b[d]; !found || other != what {
			text += fmt.Sprintf("\n%s: %s, %s (%v)", d, what, other, found)
		}
	}
	for d, what := range b {
		if _, found := a[d]; !found {
			text += fmt.Sprintf("\n%s: only with others, %s", d, what)
		}
	}
	return text
}

// checkSelection compares the shards and the repos of a query with those that may have matches, and returns how many shards it must search.
func checkSelection(t *testing.T, l *Layout, roots []*catalogv1.Root, q query.Q, in map[searchapi.Digest]string) (must int) {
	t.Helper()
	evaluate, err := newExpressions(nil).compile(q)
	if err != nil {
		t.Fatal(err)
	}
	passed := make(map[string]bool)
	if err := l.eachRepo(t.Context(), "", evaluate, func(_ *chunk, r catalog.Record) bool { passed[r.Repo] = true; return true }); err != nil {
		t.Fatal(err)
	}
	wanted := make(map[searchapi.Digest]bool)
	for _, root := range roots {
		for _, ref := range root.Shards {
			if !mayMatch(q, root, ref) {
				continue
			}
			wanted[searchapi.Digest(ref.Digest)] = true
			if _, found := in[searchapi.Digest(ref.Digest)]; !found || !passed[root.Repo] {
				t.Errorf("%s may match %s in a shard: it is searched: %v, the repo is passed: %v", root, q, found, passed[root.Repo])
			}
		}
	}
	return len(wanted)
}

// TestSelectionIsThatOfAllRoots compares the planned shards with those that each root and each document that it may have ask for. Who
// does not see some of the repos has the same plans and languages whatever these are.
func TestSelectionIsThatOfAllRoots(t *testing.T) {
	searched, must, total := 0, 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 70))
		w := newWorld(rng)
		w.add(rng, rng.IntN(60), "")
		other := &world{roots: slices.Clone(w.roots), places: slices.Clone(w.places), repos: w.repos}
		seen := make(map[string]bool)
		for _, r := range w.roots {
			seen[r.Repo] = true
		}
		visible := w.roots
		w.add(rng, rng.IntN(60), ".hidden")
		other.add(rng, rng.IntN(60), ".hidden too")
		var layouts [3]*Layout
		for i, roots := range [][]*catalogv1.Root{w.roots, other.roots, visible} {
			whole, err := NewLayout(1, roots)
			if err != nil {
				t.Fatal(err)
			}
			layouts[i] = whole.Only(func(repo string) bool { return seen[repo] })
			if i == 0 {
				for range 20 {
					q := query.Simplify(anyQuery(rng, 3))
					checkSelection(t, whole, roots, q, selected(t, whole, q))
				}
			}
		}
		spoken, unknown := layouts[0].languages()
		for i, l := range layouts[1:] {
			if s, u := l.languages(); !maps.Equal(s, spoken) || u != unknown {
				t.Errorf("seed %d: languages %v, %v, with other repos hidden (%d) %v, %v", seed, spoken, unknown, i, s, u)
			}
		}
		for range 60 {
			q := anyQuery(rng, 3)
			in := selected(t, layouts[0], q)
			for i, l := range layouts[1:] {
				if other := selected(t, l, q); !maps.Equal(in, other) {
					t.Errorf("seed %d, %s: %d shards, with other repos hidden (%d) %d: %s", seed, q, len(in), i, len(other), differing(in, other))
				}
			}
			must += checkSelection(t, layouts[0], visible, q, in)
			searched, total = searched+len(in), total+len(layouts[0].All())
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d of %d shards searched, %d must be", searched, total, must)
}
