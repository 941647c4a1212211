package integration

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/integration/cluster/faults"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// hard has no literal, and more states than the automaton caches, so every byte of
// every file is expensive.
const hard = `[a-q][^u-z]{13}[xj][^a-m]{7}[0-9]`

// TestDeadlines measures what share of its deadline a query takes on three searchers, one of
// them slow to answer anything, and checks that the counts of every answer add up. For real
// measurements set TRAWL_TEST_TREE: the test copies that tree into repos until the query takes
// two seconds. Without it the test uses a small part of this source tree.
//
//	TRAWL_TEST_TREE=$(go env GOROOT)/src go test -count=1 -v -run TestDeadlines ./integration
func TestDeadlines(t *testing.T) {
	tree, queries, least := os.Getenv("TRAWL_TEST_TREE"), 300, 2*time.Second
	if tree == "" {
		tree, queries, least = filepath.Join("..", "index", "shard"), 10, time.Nanosecond
	}
	c := newCluster(t, 2)
	slow, err := faults.NewTCP("127.0.0.1:0", func(context.Context) (string, error) { return c.searchers[2].addresses(t).GRPC, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slow.Close() })
	c.searchers = append(c.searchers, c.startSearcher(t, 2, "--advertise", slow.Addr()))
	c.ready(t, c.searchers[2])
	for copies, took := 0, time.Duration(0); took < least; {
		for range 3 {
			name := fmt.Sprint("tree", copies)
			r := newRepository(t, c.dir, name)
			copyText(t, r, tree, copies)
			r.commit("all")
			c.index(t, r, name)
			copies++
		}
		start := time.Now()
		answer, err := c.query(t.Context(), hard)
		if err != nil || !answer.GetCoverage().GetComplete() {
			t.Fatalf("%v, %v", answer.GetCoverage(), err)
		}
		took = time.Since(start)
		t.Logf("%d copies of the tree: %v without a deadline", copies, took.Round(time.Millisecond))
	}
	slow.Set(faults.TCPFault{Delay: 100 * time.Millisecond})
	for _, deadline := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, time.Second} {
		shares(t, c, deadline, queries)
	}
}

// shares measures elapsed / deadline of n queries, and logs how many failed.
func shares(t *testing.T, c *cluster, deadline time.Duration, n int) {
	t.Helper()
	var shares []float64
	errs := map[string]int{}
	for range n {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		answer, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: hard})
		shares = append(shares, float64(time.Since(start))/float64(deadline))
		cancel()
		if code := status.Code(err); code == codes.DeadlineExceeded || code == codes.ResourceExhausted { // searchers refuse what would be late
			errs[err.Error()]++
		} else if err != nil {
			t.Errorf("with a deadline of %v: %v", deadline, err)
		} else if cov := answer.Coverage; cov.Requested != cov.Searched+cov.Pruned+cov.Failed+cov.NotReached || uint64(len(cov.Uncovered)) != cov.Failed+cov.NotReached {
			t.Errorf("the account does not add up: %v", cov)
		}
	}
	slices.Sort(shares)
	at := func(q float64) float64 { return shares[min(int(q*float64(n)), n-1)] }
	t.Logf("deadline %v: P50 %.3f, P90 %.3f, P99 %.3f of it", deadline, at(0.5), at(0.9), at(0.99))
	for err, count := range errs {
		t.Logf("%d of %d: %s", count, n, err)
	}
}

// copyText writes the tree's text files to a repository. Each file ends with a line that
// names the copy, so that no two copies yield the same shard.
func copyText(t *testing.T, r *repository, tree string, copies int) {
	t.Helper()
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && len(content) < 1<<20 && utf8.Valid(content) {
			name, _ := filepath.Rel(tree, path)
			r.write(name, fmt.Sprintf("%s\ncopy %d\n", content, copies))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
