package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/integration/history"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// callTime is the deadline of a recorded operation.
	callTime = 5 * time.Second
	// trackedRepos are enough to be packed together.
	trackedRepos = 12
	// trackedFiles is how many files every commit of a tracked repository has.
	trackedFiles = 3
	// ballastFiles is how many files never change. They are enough that a commit changes
	// little of its repo and is indexed as a delta.
	ballastFiles = 30
	writers      = 2
	readers      = 4
)

// workload puts, deletes and reads repos through all routers, and records the operations.
type workload struct {
	*cluster

	history *history.History
	repos   []*tracked
	// holders maps the key of every shard ever published to its repos.
	holders map[string][]string
}

// tracked is a repository whose commits can be identified by the content found.
type tracked struct {
	*repository

	mu      sync.Mutex
	numbers map[string]int // of commits, by their ids
}

func (c *cluster) newWorkload(round int) *workload {
	w := &workload{cluster: c, history: history.New(), holders: map[string][]string{}}
	for i := range trackedRepos {
		r := c.newRepository(fmt.Sprintf("round%d-%d", round, i))
		r.load(c.rng, ballastFiles)
		first := &tracked{repository: r, numbers: map[string]int{}}
		first.next(c.rng) // a request for a repository that is empty fails for good
		w.repos = append(w.repos, first)
	}
	return w
}

// start runs the callers until stop is called, which waits for all of them.
func (w *workload) start() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	caller := func(client int, act func(context.Context, int, *rand.Rand)) {
		rng := rand.New(rand.NewPCG(w.rng.Uint64(), 0))
		running.Go(func() {
			for ctx.Err() == nil {
				act(context.WithoutCancel(ctx), client, rng)
			}
		})
	}
	for i := range writers {
		caller(i, w.write)
	}
	for i := range readers {
		caller(writers+i, w.read)
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// write puts a repo at its newest commit, usually a new one, or deletes the repo.
func (w *workload) write(ctx context.Context, client int, rng *rand.Rand) {
	r := w.repos[rng.IntN(len(w.repos))]
	rc := w.clients[rng.IntN(len(w.clients))]
	switch n := rng.IntN(10); {
	case n == 0:
		w.delete(ctx, client, rc, r)
	case n < 8:
		r.next(rng)
		fallthrough
	default:
		w.request(ctx, client, rc, r)
	}
	time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
}

func (r *tracked) next(rng *rand.Rand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := r.commit(rng, trackedFiles, 5)
	r.numbers[name] = r.commits
}

func (w *workload) request(ctx context.Context, client int, rc *routerClient, r *tracked) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	op := w.history.Begin(client, history.Call{Repo: r.name, Kind: history.Put})
	put, err := rc.ingest.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: r.url, Name: r.name})
	if err != nil {
		w.history.Lost(op)
		return
	}
	w.history.End(op, history.Answer{Epoch: put.GetEpoch()})
}

func (w *workload) delete(ctx context.Context, client int, rc *routerClient, r *tracked) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	op := w.history.Begin(client, history.Call{Repo: r.name, Kind: history.Delete})
	gone, err := rc.ingest.DeleteRepo(ctx, &ingestv1.DeleteRepoRequest{Name: r.name})
	switch {
	case status.Code(err) == codes.NotFound:
		w.history.End(op, history.Answer{Missing: true})
	case err != nil:
		w.history.Lost(op)
	default:
		revision, err := catalog.DecodeToken(gone.GetRevisionToken())
		if err != nil {
			w.t.Errorf("%s: the token of a deletion: %v", r.name, err)
		}
		w.history.End(op, history.Answer{Revision: revision})
	}
}

// read asks a router about a repo in one of three ways.
func (w *workload) read(ctx context.Context, client int, rng *rand.Rand) {
	r := w.repos[rng.IntN(len(w.repos))]
	rc := w.clients[rng.IntN(len(w.clients))]
	ways := []func(context.Context, int, *routerClient, *tracked) error{w.status, w.search, w.search, w.list}
	_ = ways[rng.IntN(len(ways))](ctx, client, rc, r) // a failed read is not judged
	time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
}

// errUnsettled means that a request is not published yet.
var errUnsettled = errors.New("not settled")

func (w *workload) status(ctx context.Context, client int, rc *routerClient, r *tracked) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	op := w.history.Begin(client, history.Call{Repo: r.name, Kind: history.Status})
	got, err := rc.ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: r.name})
	if status.Code(err) == codes.NotFound {
		w.history.End(op, history.Answer{Missing: true})
		return nil
	}
	if err != nil {
		return err
	}
	s := got.GetStatus()
	w.history.End(op, history.Answer{Epoch: s.GetEpoch(), PublishedEpoch: s.GetPublishedEpoch(), Generation: s.GetGeneration()})
	if s.GetEpoch() != s.GetPublishedEpoch() {
		return fmt.Errorf("%w: %v", errUnsettled, s)
	}
	return nil
}

// numbered finds the number of a commit in the content of a file.
var numbered = regexp.MustCompile(`^the heron of token_\w*?_(\d+)_\n?$`)

// search records which commit is found. An incomplete answer says nothing,
// unless something is found.
func (w *workload) search(ctx context.Context, client int, rc *routerClient, r *tracked) error {
	op := w.history.Begin(client, history.Call{Repo: r.name, Kind: history.Search})
	answer, err := rc.query(ctx, `repo:^`+regexp.QuoteMeta(r.name)+`$ heron`, callTime, nil)
	if err != nil {
		return err
	}
	whole := answer.GetCoverage().GetComplete()
	if !whole && len(answer.GetFiles()) == 0 {
		return fmt.Errorf("incomplete: %v", answer.GetCoverage())
	}
	commit, err := commitOf(answer, whole)
	if err != nil {
		w.t.Errorf("%s: %v", r.name, err)
		return err
	}
	w.history.End(op, history.Answer{Commit: commit})
	return nil
}

// commitOf returns the commit that all files of an answer belong to, 0 without files.
func commitOf(answer *searchv1.SearchResponse, whole bool) (commit int, err error) {
	for _, f := range answer.GetFiles() {
		found := numbered.FindSubmatch(f.GetChunks()[0].GetContent())
		if found == nil {
			return 0, fmt.Errorf("%s has the content %q", f.GetPath(), f.GetChunks()[0].GetContent())
		}
		n, err := strconv.Atoi(string(found[1]))
		if err != nil || commit != 0 && n != commit {
			return 0, fmt.Errorf("one answer has files of commits %d and %d: %w", commit, n, err)
		}
		commit = n
	}
	if n := len(answer.GetFiles()); whole && n != 0 && n != trackedFiles {
		return 0, fmt.Errorf("a complete answer has %d of %d files", n, trackedFiles)
	}
	return commit, nil
}

func (w *workload) list(ctx context.Context, client int, rc *routerClient, r *tracked) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	op := w.history.Begin(client, history.Call{Repo: r.name, Kind: history.List})
	answer, err := rc.search.List(ctx, &searchv1.ListRequest{Query: `repo:^` + regexp.QuoteMeta(r.name) + `$`})
	if err != nil {
		return err
	}
	if repos := answer.GetRepos(); len(repos) > 0 {
		w.history.End(op, history.Answer{Generation: repos[0].GetGeneration()})
	} else if answer.GetCoverage().GetComplete() {
		w.history.End(op, history.Answer{})
	}
	return nil
}

// settle waits until every acknowledged request is published and found through every router,
// and records these reads too.
func (w *workload) settle() {
	w.t.Helper()
	for _, r := range w.repos {
		for i, rc := range w.clients {
			for _, read := range []func(context.Context, int, *routerClient, *tracked) error{w.status, w.search, w.list} {
				testrun.Eventually(w.t, fmt.Sprintf("router%d: %s is settled", i, r.name), func(ctx context.Context) error { return read(ctx, 0, rc, r) })
			}
		}
	}
}
