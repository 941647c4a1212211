package cluster

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// queryTime is a query's deadline, long enough for a slow machine.
const queryTime = 20 * time.Second

// routerClient calls one router. It is safe for concurrent use.
type routerClient struct {
	*grpc.ClientConn
	search searchv1.SearchServiceClient
	ingest ingestv1.IngestServiceClient
}

func newRouterClient(t *testing.T, router *node, token access.Text, opts ...grpc.DialOption) *routerClient {
	t.Helper()
	conn, err := grpc.NewClient(router.address(t, "7430/tcp"), append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(access.Exposed{Text: token}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(80<<20)),
		// Call a router again as soon as it is back.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1, MaxDelay: 50 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	return &routerClient{conn, searchv1.NewSearchServiceClient(conn), ingestv1.NewIngestServiceClient(conn)}
}

// put requests that a repo's newest commit be indexed, and repeats the request until it
// is acknowledged.
func (c *cluster) put(r *repository) *ingestv1.PutRepoResponse {
	c.t.Helper()
	var put *ingestv1.PutRepoResponse
	testrun.Eventually(c.t, "the request for "+r.name+" is acknowledged", func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, queryTime)
		defer cancel()
		put, err = c.clients[0].ingest.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: r.url, Name: r.name})
		return err
	})
	return put
}

// settled waits until a request is published or failed.
func (c *cluster) settled(put *ingestv1.PutRepoResponse) *ingestv1.RepoStatus {
	c.t.Helper()
	var last *ingestv1.RepoStatus
	testrun.Eventually(c.t, put.GetName()+" is settled", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, queryTime)
		defer cancel()
		s, err := c.clients[0].ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: put.GetName()})
		if err != nil {
			return err
		}
		last = s.GetStatus()
		if last.GetPublishedEpoch() >= put.GetEpoch() || last.GetState() == ingestv1.State_STATE_FAILED && last.GetEpoch() >= put.GetEpoch() {
			return nil
		}
		return fmt.Errorf("its status is %v", last)
	})
	return last
}

// published waits until a request is published.
func (c *cluster) published(put *ingestv1.PutRepoResponse) *ingestv1.RepoStatus {
	c.t.Helper()
	s := c.settled(put)
	if s.GetPublishedEpoch() < put.GetEpoch() {
		c.t.Fatalf("%s was not indexed: %s", put.GetName(), s.GetReason())
	}
	return s
}

// index indexes the newest commits and waits until they are published.
func (c *cluster) index(repos ...*repository) {
	c.t.Helper()
	var puts []*ingestv1.PutRepoResponse
	for _, r := range repos {
		puts = append(puts, c.put(r))
	}
	for _, put := range puts {
		c.published(put)
	}
}

// query asks a router.
func (rc *routerClient) query(ctx context.Context, text string, within time.Duration, opts *searchv1.SearchOptions) (*searchv1.SearchResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if opts == nil {
		opts = &searchv1.SearchOptions{}
	}
	opts.MaxFiles = 10_000
	return rc.search.Search(ctx, &searchv1.SearchRequest{Query: text, Options: opts})
}

// heron finds every file of every repository.
const heron = "heron"

// honest returns what is wrong with an answer to the query heron. The answer must hold the
// repositories' files with their content, and name every repo with missing files.
func honest(answer *searchv1.SearchResponse, repos []*repository) error {
	cov := answer.GetCoverage()
	if cov.GetRequested() != cov.GetSearched()+cov.GetPruned()+cov.GetFailed()+cov.GetNotReached() ||
		cov.GetComplete() != (cov.GetFailed()+cov.GetNotReached() == 0) ||
		uint64(len(cov.GetUncovered())) != cov.GetFailed()+cov.GetNotReached() {
		return fmt.Errorf("the account does not add up: %v", cov)
	}
	for _, u := range cov.GetUncovered() {
		if u.GetReason() == searchv1.UncoveredReason_UNCOVERED_REASON_UNSPECIFIED || len(u.GetRepos()) == 0 || u.GetMessage() == "" {
			return fmt.Errorf("an uncovered shard is not explained: %v", u)
		}
	}
	uncovered := uncovered(cov)
	found := map[string]map[string]bool{}
	for _, f := range answer.GetFiles() {
		r := named(repos, f.GetRepo())
		if r == nil {
			return fmt.Errorf("%s is not among the repos", f.GetRepo())
		}
		if err := r.has(f); err != nil {
			return err
		}
		if found[r.name] == nil {
			found[r.name] = map[string]bool{}
		}
		found[r.name][string(f.GetPath())] = true
	}
	for _, r := range repos {
		if len(found[r.name]) != len(r.files) && !uncovered[r.name] {
			return fmt.Errorf("of %s %d of %d files were found, and it is not among the uncovered: %v", r.name, len(found[r.name]), len(r.files), cov)
		}
	}
	return nil
}

// uncovered returns the repos of the shards that were not searched.
func uncovered(cov *searchv1.Coverage) map[string]bool {
	repos := map[string]bool{}
	for _, u := range cov.GetUncovered() {
		for _, name := range u.GetRepos() {
			repos[name] = true
		}
	}
	return repos
}

func named(repos []*repository, name string) *repository {
	i := slices.IndexFunc(repos, func(r *repository) bool { return r.name == name })
	if i < 0 {
		return nil
	}
	return repos[i]
}

// has returns how a file found differs from the file in the newest commit.
func (r *repository) has(f *searchv1.FileMatch) error {
	content, ok := r.files[string(f.GetPath())]
	if !ok {
		return fmt.Errorf("%s has no file %s", r.name, f.GetPath())
	}
	for _, chunk := range f.GetChunks() {
		at := int(chunk.GetContentStart().GetByteOffset())
		got := chunk.GetContent()
		if at+len(got) > len(content) || !bytes.Equal(got, []byte(content[at:at+len(got)])) {
			return fmt.Errorf("%s: %s has not the content %q at %d", r.name, f.GetPath(), got, at)
		}
	}
	return nil
}

// complete returns what is wrong with an answer that must be honest and complete.
func complete(answer *searchv1.SearchResponse, repos []*repository) error {
	if !answer.GetCoverage().GetComplete() {
		return fmt.Errorf("it is not complete: %v", answer.GetCoverage())
	}
	return honest(answer, repos)
}

// expect waits for a complete answer through every router. Earlier answers must be honest.
func (c *cluster) expect(repos ...*repository) {
	c.t.Helper()
	for i, rc := range c.clients {
		testrun.Eventually(c.t, fmt.Sprintf("router%d answers completely", i), func(ctx context.Context) error {
			answer, err := rc.query(ctx, heron, queryTime, nil)
			if err != nil {
				return err
			}
			if err := honest(answer, repos); err != nil {
				c.t.Fatal(err)
			}
			return complete(answer, repos)
		})
	}
}

// tally counts the outcomes of the queries of a loop.
type tally struct {
	mu                   sync.Mutex
	complete, incomplete int
	failed               map[codes.Code]int
	wrong                []error
	slowest              time.Duration
	notes                []string
}

func (l *tally) String() string {
	return fmt.Sprintf("%d complete answers, %d incomplete, failures %v; the slowest took %v; %s",
		l.complete, l.incomplete, l.failed, l.slowest.Round(time.Millisecond), strings.Join(l.notes, "; "))
}

// unanswered counts the failures but those for lateness: on a slow machine an answer may be late too.
func (l *tally) unanswered() (n int) {
	for code, times := range l.failed {
		if code != codes.DeadlineExceeded {
			n += times
		}
	}
	return n
}

// asking queries through all routers in turn until stop is called, which returns the
// outcomes. An answer that is not honest is wrong and fails the test.
func (c *cluster) asking(within time.Duration, repos ...*repository) (stop func() *tally) {
	c.t.Helper()
	const askers = 2
	ctx, cancel := context.WithCancel(c.t.Context())
	l := &tally{failed: map[codes.Code]int{}}
	var running sync.WaitGroup
	for i := range askers {
		running.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				start := time.Now()
				answer, err := c.askAny(ctx, n, within)
				if ctx.Err() == nil {
					l.add(answer, err, time.Since(start), repos)
				}
			}
		})
	}
	return func() *tally {
		cancel()
		running.Wait()
		c.t.Logf("%v", l)
		for _, err := range l.wrong {
			c.t.Errorf("a wrong answer: %v", err)
		}
		return l
	}
}

// askAny queries one router, and the others if it does not take the call, as a client
// behind a load balancer does.
func (c *cluster) askAny(ctx context.Context, first int, within time.Duration) (answer *searchv1.SearchResponse, err error) {
	for i := range c.clients {
		answer, err = c.clients[(first+i)%len(c.clients)].query(ctx, heron, within, nil)
		if status.Code(err) != codes.Unavailable {
			break
		}
	}
	return answer, err
}

func (l *tally) add(answer *searchv1.SearchResponse, err error, took time.Duration, repos []*repository) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	switch {
	case err != nil:
		l.failed[status.Code(err)]++
		l.note(err)
	case answer.GetCoverage().GetComplete():
		l.complete++
	default:
		l.incomplete++
		l.note(fmt.Errorf("incomplete: %v", answer.GetCoverage()))
	}
	if err == nil {
		if err := honest(answer, repos); err != nil && len(l.wrong) < 5 {
			l.wrong = append(l.wrong, err)
		}
	}
}

// note keeps the first failures and incomplete answers for the log.
func (l *tally) note(err error) {
	if len(l.notes) < 5 {
		l.notes = append(l.notes, fmt.Sprintf("%s %v", time.Now().Format("15:04:05.000"), err))
	}
}
