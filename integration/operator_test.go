package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/integration/workload"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestReindex: the command has every repo rebuilt in full, once only, while it is searched.
func TestReindex(t *testing.T) {
	c := newCluster(t, 1)
	for i := range 3 {
		c.index(t, onlyFile(t, c.dir, fmt.Sprint("r", i)), fmt.Sprint("example.org/r", i))
	}
	files := []string{"example.org/r0:a.txt", "example.org/r1:a.txt", "example.org/r2:a.txt"}
	c.expect(t, "c:heron", files...)
	asking := c.askWhile(t, "c:heron", files...)
	since := time.Now().UTC().Format(time.RFC3339Nano)
	reindex := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"repos", "reindex", "--addr", c.router.addresses(t).GRPC, "--rate", "0", "--before", since}, args...)
		if out, errs, exit := command(t, args...); exit != 0 || !strings.Contains(out, want) {
			t.Fatalf("%v: exit %d: %s%s", args, exit, out, errs)
		}
	}
	reindex("3 repositories would be", "--all", "--dry-run")
	reindex("1 repository is asked for", "example.org/r1")
	reindex("2 repositories are asked for", "--all")
	testrun.Eventually(t, "all are built again", func(ctx context.Context) error {
		list, err := c.ingest.ListRepos(ctx, &ingestv1.ListReposRequest{})
		for _, repo := range list.GetRepos() {
			if repo.GetGeneration() != 2 || !strings.HasPrefix(repo.GetBuilt(), "full") || repo.GetFullBuildPending() {
				return fmt.Errorf("%v", repo)
			}
		}
		return err
	})
	reindex("0 repositories are asked for", "--all")
	asking()
	c.expect(t, "c:heron", files...)
}

// askWhile runs one query after the other until stop is called. Every answer must be complete
// and have exactly these files.
func (c *cluster) askWhile(t *testing.T, query string, want ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		answers := 0
		for ctx.Err() == nil {
			answer, err := c.query(t.Context(), query)
			if err == nil {
				err = workload.Compare(answer, want)
			}
			if err != nil {
				t.Errorf("after %d answers: %v", answers, err)
				break
			}
			answers++
		}
		ended <- answers
	}()
	return func() {
		t.Helper()
		cancel()
		if n := <-ended; n == 0 {
			t.Error("no query was answered")
		} else {
			t.Logf("%d complete answers", n)
		}
	}
}
