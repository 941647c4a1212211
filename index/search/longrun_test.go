package search_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/indextest"
)

// Environment variables that turn TestRealTreeParts into a long run.
const (
	// queriesEnv is the number of queries of each kind for each tree.
	queriesEnv = "TRAWL_TEST_QUERIES"
	// treeEnv lists the folders, separated as in PATH. Default: the source of Go.
	treeEnv = "TRAWL_TEST_TREE"
	// seedEnv is the first seed of the parts. Default: 1.
	seedEnv = "TRAWL_TEST_SEED"
)

// Parts of a tree are small, since brute force takes time in proportion to the text. Most have 4 to
// 64 KiB and get up to perPart queries of each kind. One in largeEvery is large, so that its
// posting lists have many blocks, and gets one query of each kind.
const (
	perPart     = 10
	smallestLog = 12
	largestLog  = 16
	largeEvery  = 64
	largeSize   = 1 << 20
	hugeEvery   = 8 // of the large parts
	hugeSize    = 16 << 20
)

// sizeOf draws the size of a part and its number of queries of each kind.
func sizeOf(rng *rand.Rand) (size int64, perKind int) {
	if rng.IntN(largeEvery) > 0 {
		return 1 << (smallestLog + rng.IntN(largestLog-smallestLog+1)), perPart
	}
	if rng.IntN(hugeEvery) > 0 {
		return largeSize, 1
	}
	return hugeSize, 1
}

// TestRealTreeParts compares the engine with brute force on random parts of real trees in every
// form of index, including pages, scores and counts. To choose the number of queries:
//
//	TRAWL_TEST_QUERIES=10000 TRAWL_TEST_TREE=/usr/src:/usr/include go test ./index/search -run RealTreeParts -v -timeout 0
//
// A part depends only on its tree and its seed. To repeat a failed one, start with its seed and ask
// for 10 queries.
func TestRealTreeParts(t *testing.T) {
	trees, queries := []string{goSource(t)}, fromEnv(t, queriesEnv, 3)
	if s := os.Getenv(treeEnv); s != "" {
		trees = filepath.SplitList(s)
	}
	for _, dir := range trees {
		tree, err := indextest.OpenTree(dir)
		if err != nil {
			t.Fatal(err)
		}
		r := &longRun{T: t, tree: tree, wanted: queries, began: time.Now(), kinds: map[string]*tally{}}
		r.seed = uint64(fromEnv(t, seedEnv, 1))
		if deadline, ok := t.Deadline(); ok {
			r.deadline = deadline.Add(-time.Minute)
		}
		t.Logf("%s: %d bytes, %d queries of each of %d kinds, from seed %d", dir, tree.Bytes, queries, indextest.Kinds(), r.seed)
		r.run()
	}
}

func fromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q: want a number", name, text)
	}
	return n
}

// longRun is a run over one tree.
type longRun struct {
	*testing.T
	tree            *indextest.Tree
	wanted          int // queries of each kind
	began, deadline time.Time

	mu          sync.Mutex
	seed        uint64 // of the next part
	dealt, done int    // queries of each kind
	parts       int    // finished
	logged      time.Time
	failures    int
	kinds       map[string]*tally
}

// enough is the number of failures that ends a run.
const enough = 10

// tally counts the queries of a kind, those with results, and the time of all.
type tally struct {
	asked, found int
	took         time.Duration
}

// Fatalf ends a part: a goroutine must not end the test.
func (r *longRun) Fatalf(format string, args ...any) {
	r.Helper()
	r.failf(format, args...)
	runtime.Goexit()
}

func (r *longRun) failf(format string, args ...any) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures++
	r.Errorf(format, args...)
}

// run works on as many parts at once as there are processors.
func (r *longRun) run() {
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for p, ok := r.take(); ok; p, ok = r.take() {
				r.part(p)
			}
		})
	}
	all.Wait()
	r.progress()
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		k := r.kinds[kind]
		r.Logf("%-26s %7d queries, %7d found something, %8s each", kind, k.asked, k.found, (k.took / time.Duration(k.asked)).Round(time.Microsecond))
	}
}

// treePart is a part of a tree that has not been searched yet.
type treePart struct {
	seed    uint64
	rng     *rand.Rand
	size    int64
	perKind int
}

// take returns the next part, if more queries are wanted and time is left.
func (r *longRun) take() (p treePart, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures >= enough || r.dealt >= r.wanted {
		return p, false
	}
	if !r.deadline.IsZero() && time.Now().After(r.deadline) {
		r.Errorf("no time is left after %d of %d queries of each kind: give go test -timeout 0", r.done, r.wanted)
		return p, false
	}
	p = treePart{seed: r.seed, rng: rand.New(rand.NewPCG(r.seed, 6))}
	p.size, p.perKind = sizeOf(p.rng)
	p.perKind = min(p.perKind, (r.wanted+2)/3)
	r.seed++
	r.dealt += p.perKind
	return p, true
}

// part indexes a part of the tree in some form and runs its queries.
func (r *longRun) part(p treePart) {
	c, err := r.tree.Part(p.seed, p.size)
	if err != nil {
		r.Fatalf("%v", err)
	}
	form := formNames[p.rng.IntN(len(formNames))]
	c.Name = fmt.Sprintf("%s, %d bytes, %s", c.Name, p.size, form)
	r.count(p, r.ask(c, formOf(r, form, c, p.rng), indextest.Queries(c, p.seed, p.perKind*indextest.Kinds())))
}

// ask compares the answers to queries over a corpus with the oracle's.
func (r *longRun) ask(c *indextest.Corpus, f form, queries []indextest.Query) map[string]*tally {
	for _, p := range f.parts {
		if err := p.shard.Verify(context.Background()); err != nil {
			r.Fatalf("corpus %s: %v", c.Name, err)
		}
	}
	o, pager, counts := indextest.NewOracle(c), f.pager(), map[string]*tally{}
	for _, q := range queries {
		began := time.Now()
		documents, diff := o.ComparePages(q, 1, pager)
		if diff != "" {
			r.failf("corpus %s, query %d of seed %d (%s): %s\n%s", c.Name, q.Number, q.Seed, q.Kind, q.Text, diff)
		}
		k := counts[q.Kind]
		if k == nil {
			k = &tally{}
			counts[q.Kind] = k
		}
		k.add(tally{1, min(1, documents), time.Since(began)})
	}
	return counts
}

func (k *tally) add(more tally) {
	k.asked, k.found, k.took = k.asked+more.asked, k.found+more.found, k.took+more.took
}

// count adds the counts of a part, and reports progress once a minute.
func (r *longRun) count(p treePart, counts map[string]*tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done, r.parts = r.done+p.perKind, r.parts+1
	for kind, k := range counts {
		if r.kinds[kind] == nil {
			r.kinds[kind] = &tally{}
		}
		r.kinds[kind].add(*k)
	}
	if time.Since(r.logged) > time.Minute {
		r.progress()
	}
}

func (r *longRun) progress() {
	r.logged = time.Now()
	took := time.Since(r.began)
	asked := r.done * indextest.Kinds()
	left := took / time.Duration(max(1, r.done)) * time.Duration(max(0, r.wanted-r.done))
	r.Logf("%d of %d queries of each kind in %d parts up to seed %d, %.0f queries a second, %s passed, %s to go",
		r.done, r.wanted, r.parts, r.seed-1, float64(asked)/took.Seconds(), took.Round(time.Second), left.Round(time.Second))
}
