package shard_test

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

// Variables of the environment that make TestRealTreeParts a long run.
const (
	// queriesEnv is how many queries of each kind are run over each tree.
	queriesEnv = "TRAWL_TEST_QUERIES"
	// treeEnv are the folders, with the separator of PATH. Default: the source of Go.
	treeEnv = "TRAWL_TEST_TREE"
	// seedEnv begins the seeds of the parts. Default: 1.
	seedEnv = "TRAWL_TEST_SEED"
)

// Parts of a tree are small, since brute force takes as long as the text is, and are
// asked perPart queries of each kind. One in largeEvery is large, so that its posting
// lists have many blocks, and is asked one.
const (
	perPart    = 20
	largeEvery = 16
	largeSize  = 16 << 20
)

var partSizes = []int64{32 << 10, 64 << 10, 128 << 10, 256 << 10, 256 << 10, 512 << 10, 512 << 10, 1 << 20}

// TestRealTreeParts compares the engine with brute force on random parts of real
// trees in every form of index: pages, scores and counts too. As many queries as
// wanted are run by
//
//	TRAWL_TEST_QUERIES=10000 TRAWL_TEST_TREE=/usr/src:/usr/include go test ./index/shard -run RealTreeParts -v -timeout 0
func TestRealTreeParts(t *testing.T) {
	trees, queries := []string{goSource(t)}, fromEnv(t, queriesEnv, 0)
	if s := os.Getenv(treeEnv); s != "" {
		trees = filepath.SplitList(s)
	}
	for _, dir := range trees {
		tree, err := indextest.OpenTree(dir)
		if err != nil {
			t.Fatal(err)
		}
		r := &longRun{T: t, tree: tree, rounds: 3, perPart: 2, kinds: map[string]*tally{}}
		r.seed, r.began = uint64(fromEnv(t, seedEnv, 1)), time.Now()
		if queries > 0 {
			r.perPart = min(perPart, queries)
			r.rounds = (queries + r.perPart - 1) / r.perPart
			r.rounds += r.rounds / largeEvery
		}
		if deadline, ok := t.Deadline(); ok {
			r.deadline = deadline.Add(-time.Minute)
		}
		t.Logf("%s: %d bytes, %d parts, up to %d queries of each of %d kinds, seed %d", dir, tree.Bytes, r.rounds, r.perPart, indextest.Kinds(), r.seed)
		r.run()
		if t.Failed() {
			return
		}
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
	seed            uint64
	rounds, perPart int
	began, deadline time.Time

	mu    sync.Mutex
	next  int // round
	done  int
	asked int
	kinds map[string]*tally
}

// tally counts the queries of a kind, those that found something, and the time that
// all took.
type tally struct {
	asked, found int
	took         time.Duration
}

// Fatalf ends a part. A goroutine must not end the test.
func (r *longRun) Fatalf(format string, args ...any) {
	r.Helper()
	r.Errorf(format, args...)
	runtime.Goexit()
}

// run works on as many parts at once as there are processors.
func (r *longRun) run() {
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for round, ok := r.take(); ok; round, ok = r.take() {
				r.part(round)
			}
		})
	}
	all.Wait()
	took := time.Since(r.began)
	r.Logf("%d queries in %s, %.0f a second", r.asked, took.Round(time.Second), float64(r.asked)/took.Seconds())
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		k := r.kinds[kind]
		r.Logf("%-26s %7d queries, %7d found something, %8s each", kind, k.asked, k.found, (k.took / time.Duration(k.asked)).Round(time.Microsecond))
	}
}

// take gives the next round, if there is one and time for it.
func (r *longRun) take() (round int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Failed() || r.next == r.rounds {
		return 0, false
	}
	if !r.deadline.IsZero() && time.Now().After(r.deadline) {
		r.Errorf("no time is left after %d of %d parts: give go test -timeout 0", r.done, r.rounds)
		return 0, false
	}
	r.next++
	return r.next - 1, true
}

// part indexes a part of the tree in some form, and asks it.
func (r *longRun) part(round int) {
	seed := r.seed + uint64(round)
	rng := rand.New(rand.NewPCG(seed, 6))
	size, perKind, form := partSizes[rng.IntN(len(partSizes))], r.perPart, formNames[rng.IntN(len(formNames))]
	if round%largeEvery == largeEvery-1 {
		size, perKind = largeSize, 1
	}
	c, err := r.tree.Part(seed, size)
	if err != nil {
		r.Fatalf("%v", err)
	}
	c.Name = fmt.Sprintf("%s, %d bytes, %s", c.Name, size, form)
	counts := r.ask(c, formOf(r, form, c, rng), indextest.Queries(c, seed, perKind*indextest.Kinds()))
	r.count(counts)
}

// ask compares the answers of queries over a corpus with the oracle's.
func (r *longRun) ask(c *indextest.Corpus, f form, queries []indextest.Query) map[string]*tally {
	for _, p := range f.parts {
		if err := p.shard.Verify(context.Background()); err != nil {
			r.Fatalf("corpus %s: %v", c.Name, err)
		}
	}
	o, counts := indextest.NewOracle(c), map[string]*tally{}
	for _, q := range queries {
		began := time.Now()
		documents, diff := o.ComparePages(q, 1, f.pager())
		if diff != "" {
			r.Fatalf("corpus %s, query %d of seed %d (%s): %s\n%s", c.Name, q.Number, q.Seed, q.Kind, q.Text, diff)
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

// count takes over what a part counted, and says how far the run is now and then.
func (r *longRun) count(counts map[string]*tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	for kind, k := range counts {
		if r.kinds[kind] == nil {
			r.kinds[kind] = &tally{}
		}
		r.kinds[kind].add(*k)
		r.asked += k.asked
	}
	if took := time.Since(r.began); r.done%10 == 0 {
		left := took / time.Duration(r.done) * time.Duration(r.rounds-r.done)
		r.Logf("%d of %d parts, %d queries, %.0f a second, %s to go", r.done, r.rounds, r.asked, float64(r.asked)/took.Seconds(), left.Round(time.Second))
	}
}
