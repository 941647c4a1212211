package search_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/integration/hostile"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// TestHostileTypeRepos: 528 queries, each with another heavy repo: under a type:repo, take
// no more memory than expressions may have, and honest callers are answered throughout.
func TestHostileTypeRepos(t *testing.T) {
	const size = 32 << 20
	memory := regex.NewMemory(size)
	c := start(t, 2, func(c *cluster) {
		c.cfg.Expressions = memory
		for _, s := range c.searchers {
			for i := range 20 {
				s.files[d(i)] = []*searchv1.FileMatch{file(fmt.Sprintf("org/repo%d", i), "a", 1)}
				s.repos[d(i)] = []*searchv1.RepoEntry{{Name: fmt.Sprintf("org/repo%d", i)}}
			}
		}
	})
	ask := func(query string) (*searchv1.SearchResponse, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return c.Search(ctx, &searchv1.SearchRequest{Query: query})
	}
	before := testrun.LiveHeap()
	const enough = 5 // honest answers; then the hostile callers stop
	var next, refused, answered, honest atomic.Int64
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for i := next.Add(1); i <= hostile.TypeRepos || honest.Load() < enough; i = next.Add(1) {
				query := hostile.TypeRepo(int(i % (hostile.TypeRepos + 1)))
				for range 20 { // they come back at once
					_, err := ask(query)
					if code := status.Code(err); code == codes.ResourceExhausted {
						refused.Add(1)
						time.Sleep(time.Millisecond)
						continue
					} else if code != codes.OK && code != codes.DeadlineExceeded {
						t.Errorf("%s: %v", query, err)
					}
					answered.Add(1)
					break
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { callers.Wait(); close(ended) }()
	most := int64(0)
	for done := false; !done; honest.Add(1) {
		if resp, err := ask("foo r:org/repo1"); err != nil || len(resp.Files) != 11 {
			t.Errorf("an honest caller: %d files, %v", len(resp.GetFiles()), err)
		}
		most = max(most, testrun.LiveHeap()-before)
		select {
		case <-ended:
			done = true
		default:
		}
	}
	t.Logf("%d answered, %d refused, %d honest; %d KiB at the most", answered.Load(), refused.Load(), honest.Load(), most>>10)
	if most > 3*size { // calls in progress take some, too; 10 to 19 MiB were measured
		t.Errorf("%d KiB are live", most>>10)
	}
	if refused.Load() == 0 {
		t.Error("nothing is refused, though 32 such queries have no room together")
	}
	if answered.Load() == 0 {
		t.Error("the test says little")
	}
	if !memory.Reserve(size / 2) {
		t.Error("not all memory is given back")
	}
	if _, err := ask(strings.TrimSpace(strings.Repeat(`(type:repo r:(\w|/){900}) `, hostile.TypeRepos))); status.Code(err) != codes.InvalidArgument {
		t.Errorf("528 of them in one query: %v", err)
	}
	for _, query := range []string{`r:(a.b){998} r:(a.c){998} r:(a.d){998}`, strings.Repeat(`(\w\d){990} `, 20)} {
		_, listed := c.List(t.Context(), &searchv1.ListRequest{Query: query})
		_, searched := ask(query)
		for _, err := range []error{listed, searched} {
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "regular expressions") && !strings.Contains(err.Error(), "repo:") {
				t.Errorf("%.40s…: %v", query, err)
			}
		}
	}
}

// TestPlanningEndsWithItsContext: many repos and filters take no longer than the deadline.
func TestPlanningEndsWithItsContext(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		for i := range 40 {
			c.searchers[0].files[d(i)] = []*searchv1.FileMatch{file(fmt.Sprintf("org/repo%d", i), "a", 1)}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tree, err := query.Parse("r:nothing", query.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.layout.Select(ctx, tree); err == nil {
		t.Error("a query is planned that nobody waits for")
	}
}

// endsAt is a context that ends when it has been asked a number of times whether it has.
type endsAt struct {
	context.Context
	looks int
}

func (c *endsAt) Err() error {
	if c.looks--; c.looks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestPlanOfManyShardsEndsInTime: a plan ends with its time also between the many shards of one repo.
func TestPlanOfManyShardsEndsInTime(t *testing.T) {
	root := &catalogv1.Root{Repo: "r", Branches: []*catalogv1.Branch{{Name: "main"}}}
	for i := range 1000 {
		digest := sha256.Sum256(fmt.Append(nil, i))
		root.Shards = append(root.Shards, &catalogv1.ShardRef{Digest: digest[:], Languages: []string{"Go"}})
	}
	layout, err := search.NewLayout(1, []*catalogv1.Root{root})
	testrun.Must(t, err)
	if wanted, err := layout.Select(&endsAt{t.Context(), 50}, &query.Language{Name: "C"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d shards, %v", len(wanted), err)
	}
}
