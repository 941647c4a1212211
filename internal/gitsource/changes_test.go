package gitsource

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/testrun"
)

// oddPaths are paths that nest, differ in case only, need escapes, or look like
// options or patterns.
var oddPaths = []string{
	"a", "A", "a/b", "a.b", "new\nline", "tab\tand\"", "bad\xff\xfe", "größe", "*", "[a]", ":(top)x", "-dash", "d/e/f", "d/e", "x y",
	strings.Repeat("d/", 5) + "deep", strings.Repeat("l", MaxPath+1),
}

// randomTree puts an entry at some paths; no path is a folder of another.
func randomTree(r *gitsourcetest.Repo, rnd *rand.Rand) map[string][3]string {
	tree := make(map[string][3]string)
	for _, i := range rnd.Perm(len(oddPaths)) {
		if rnd.IntN(3) > 0 {
			addEntry(r, rnd, tree, oddPaths[i])
		}
	}
	return tree
}

func addEntry(r *gitsourcetest.Repo, rnd *rand.Rand, tree map[string][3]string, path string) {
	for other := range tree {
		if strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/") {
			return
		}
	}
	mode := []string{"100644", "100755", "100644", "120000", "160000"}[rnd.IntN(5)]
	oid := r.Blob([]string{"x", "y\n", "", "binary\x00", "z" + strconv.Itoa(rnd.IntN(3))}[rnd.IntN(5)])
	tree[path] = [3]string{mode, oid, path}
}

// edited is the tree with some paths changed.
func edited(r *gitsourcetest.Repo, rnd *rand.Rand, tree map[string][3]string) map[string][3]string {
	next := maps.Clone(tree)
	for range rnd.IntN(6) {
		path := oddPaths[rnd.IntN(len(oddPaths))]
		delete(next, path)
		if rnd.IntN(3) > 0 {
			addEntry(r, rnd, next, path)
		}
	}
	return next
}

func commitTree(r *gitsourcetest.Repo, branch string, tree map[string][3]string) docstore.Branch {
	entries := slices.SortedFunc(maps.Values(tree), func(a, b [3]string) int { return strings.Compare(a[2], b[2]) })
	return docstore.Branch{Name: branch, Commit: r.Commit(branch, entries...)}
}

// byPath are the documents of a source, at each path.
func byPath(t *testing.T, src Source) map[string]string {
	t.Helper()
	return byPathOn(t, src, func(branches []uint32) []uint32 { return branches })
}

// byPathOn is byPath with documents on other branches; those on none are left out.
func byPathOn(t *testing.T, src Source, on func([]uint32) []uint32) map[string]string {
	t.Helper()
	docs := make(map[string]string)
	for doc, err := range src.Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if branches := on(doc.Branches); len(branches) > 0 {
			docs[string(doc.Path)] += fmt.Sprintf("%q %x %d %v %s %s;", doc.Content, doc.OID, doc.Size, branches, doc.Language, doc.Skip)
		}
	}
	return docs
}

// at is what each of the trees has at a path, as far as it becomes documents.
func at(trees []map[string][3]string, path string) (entries []string) {
	for _, tree := range trees {
		e := tree[path]
		entries = append(entries, fmt.Sprint(skipByMode(e[0]), e[1]))
	}
	return entries
}

// TestChangesAreTheDifference: the old documents, replaced by those of OpenChanges at
// its paths, are the new documents, and each of these paths changed on some branch. The
// documents of a path may still be the same: an object that is a file on one branch and
// a symbolic link on another is one document, a file.
func TestChangesAreTheDifference(t *testing.T) {
	for seed := range uint64(testrun.Rounds(4, 12)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := gitsourcetest.New(t)
		if seed%4 == 3 {
			r = gitsourcetest.NewSHA256(t)
		}
		limits := Limits{MaxDepth: 5}
		names := []string{"main", "old", "work"}[:1+seed%3]
		trees := make([]map[string][3]string, len(names))
		old := make([]docstore.Branch, len(names))
		for i, name := range names {
			if trees[i] = randomTree(r, rnd); i > 0 && rnd.IntN(2) > 0 {
				trees[i] = edited(r, rnd, trees[0])
			}
			old[i] = commitTree(r, name, trees[i])
		}
		for range 3 {
			before := byPath(t, openRepository(t, r.Dir, limits, names...))
			now, was := slices.Clone(old), slices.Clone(trees)
			for i, name := range names {
				if rnd.IntN(3) > 0 {
					trees[i] = edited(r, rnd, trees[i])
					now[i] = commitTree(r, name, trees[i])
				}
			}
			after := byPath(t, openRepository(t, r.Dir, limits, names...))
			c, err := OpenChanges(t.Context(), filepath.Join(r.Dir, ".git"), old, now, 100, limits)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			changed := byPath(t, c)
			for _, path := range c.Paths() {
				if slices.Equal(at(was, path), at(trees, path)) {
					t.Errorf("seed %d: nothing changed at %q: %s", seed, path, before[path])
				}
				delete(before, path)
			}
			if maps.Copy(before, changed); !maps.Equal(before, after) {
				t.Fatalf("seed %d: %v become\n%q\nwant\n%q", seed, c.Paths(), before, after)
			}
			old = now
		}
	}
}

// TestChangesOfBranches: branches come, go, are renamed and change places. Except at
// the paths of OpenChanges, the new documents are the old ones, on the branches that
// theirs became.
func TestChangesOfBranches(t *testing.T) {
	for seed := range uint64(testrun.Rounds(4, 12)) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		r := gitsourcetest.New(t)
		names := []string{"main", "release/1", "release/2", "work"}
		trees := map[string]map[string][3]string{}
		base := randomTree(r, rnd)
		for _, name := range names {
			trees[name] = edited(r, rnd, base)
		}
		for range 3 {
			had := slices.Clone(names)
			var old, now []docstore.Branch
			for _, name := range names {
				old = append(old, commitTree(r, name, trees[name]))
			}
			before := openRepository(t, r.Dir, Limits{}, names...)
			rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			names = names[:1+rnd.IntN(len(names))]
			for range 5 - len(names) {
				from := had[rnd.IntN(len(had))]
				name := fmt.Sprintf("%s.%d", from, rnd.IntN(1000))
				trees[name] = maps.Clone(trees[from])
				names = append(names, name)
			}
			for _, name := range names {
				if rnd.IntN(2) == 0 {
					trees[name] = edited(r, rnd, trees[name])
				}
				now = append(now, commitTree(r, name, trees[name]))
			}
			after := byPath(t, openRepository(t, r.Dir, Limits{}, names...))
			c, err := OpenChanges(t.Context(), filepath.Join(r.Dir, ".git"), old, now, 100, Limits{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got := byPathOn(t, before, func(branches []uint32) (on []uint32) {
				for i, from := range c.From() {
					if slices.Contains(branches, uint32(from)) {
						on = append(on, uint32(i))
					}
				}
				return on
			})
			for _, path := range c.Paths() {
				delete(got, path)
			}
			if maps.Copy(got, byPath(t, c)); !maps.Equal(got, after) {
				t.Fatalf("seed %d: %v become %v from %v, %q:\n%q\nwant\n%q", seed, had, names, c.From(), c.Paths(), got, after)
			}
		}
	}
}

// TestBranchesComeFromTheNearest: a branch that was cut from another costs only their
// differences.
func TestBranchesComeFromTheNearest(t *testing.T) {
	r := gitsourcetest.New(t)
	main := docstore.Branch{Name: "main", Commit: r.Files("main", "a", "1", "b", "1", "c", "1", "d", "1")}
	one := docstore.Branch{Name: "release/1", Commit: r.Files("release/1", "a", "2", "b", "2", "c", "2", "d", "2")}
	var others []docstore.Branch
	for i := range 9 {
		others = append(others, docstore.Branch{Name: fmt.Sprintf("x%d", i), Commit: r.Files("x", "e", fmt.Sprint(i))})
	}
	two := docstore.Branch{Name: "release/2", Commit: r.Files("release/2", "a", "2", "b", "2", "c", "2", "d", "3")}
	fix := docstore.Branch{Name: "fix", Commit: r.Files("fix", "a", "1", "b", "1", "c", "1", "d", "3")}
	trunk := docstore.Branch{Name: "trunk", Commit: others[8].Commit}
	old := slices.Concat([]docstore.Branch{main}, others, []docstore.Branch{one})
	c, err := OpenChanges(t.Context(), filepath.Join(r.Dir, ".git"), old, []docstore.Branch{main, one, two, fix, trunk}, 10, Limits{})
	if err != nil || !slices.Equal(c.From(), []int{0, 10, 10, 0, 9}) || !slices.Equal(c.Paths(), []string{"d"}) {
		t.Errorf("from %v, %v: %v", c.From(), c.Paths(), err)
	}
}

func TestChangesThatAreRefused(t *testing.T) {
	r := gitsourcetest.New(t)
	old := docstore.Branch{Name: "main", Commit: r.Files("main", "a", "1", "b", "1")}
	now := docstore.Branch{Name: "main", Commit: r.Files("main", "a", "2", "b", "2")}
	gone := docstore.Branch{Name: "main", Commit: strings.Repeat("1", 40)}
	for what, c := range map[string]struct {
		old, now docstore.Branch
		want     error
	}{
		"too many":        {old, now, ErrManyChanges},
		"no such commit":  {gone, now, ErrNoCommit},
		"not arrived":     {old, gone, ErrNoCommit},
		"never had one":   {docstore.Branch{Name: "main"}, now, ErrNoCommit},
		"nothing changed": {now, now, nil},
	} {
		if _, err := OpenChanges(t.Context(), filepath.Join(r.Dir, ".git"), []docstore.Branch{c.old}, []docstore.Branch{c.now}, 1, Limits{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}

// TestManyChangesOnBranches: if the paths do not fit on a command line, whole trees
// are read.
func TestManyChangesOnBranches(t *testing.T) {
	r := gitsourcetest.New(t)
	var files, more []string
	for i := range 800 {
		files = append(files, fmt.Sprintf("%s/%04d", strings.Repeat("long", 25), i), "1")
		more = append(more, files[2*i], "2")
	}
	other := docstore.Branch{Name: "other", Commit: r.Files("other", append(files, "z", "1")...)}
	old := docstore.Branch{Name: "main", Commit: r.Files("main", files...)}
	now := docstore.Branch{Name: "main", Commit: r.Files("main", more...)}
	c, err := OpenChanges(t.Context(), filepath.Join(r.Dir, ".git"), []docstore.Branch{old, other}, []docstore.Branch{now, other}, 1000, Limits{})
	if err != nil || len(c.Paths()) != 800 || c.Total() != 1600 {
		t.Fatalf("%d documents: %v", c.Total(), err)
	}
}

// TestManyDeletedBranches: deleted branches are compared with all others, a bounded number of times.
func TestManyDeletedBranches(t *testing.T) {
	r := gitsourcetest.New(t)
	commit := r.Files("main", "a", "1")
	for n, want := range map[int]error{20: nil, 1024: ErrManyChanges} {
		var old, branches []docstore.Branch
		for i := range n {
			old = append(old, docstore.Branch{Name: fmt.Sprintf("a%d", i), Commit: commit})
			branches = append(branches, docstore.Branch{Name: fmt.Sprintf("b%d", i), Commit: commit})
		}
		if _, err := OpenChanges(t.Context(), filepath.Join(r.Dir, ".git"), old, branches, 10, Limits{}); !errors.Is(err, want) {
			t.Errorf("%d branches: %v, want %v", n, err, want)
		}
	}
}
