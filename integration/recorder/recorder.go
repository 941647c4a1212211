// Package recorder puts, deletes and reads repos through routers, several callers at a time, and records all of it in a history that package
// history judges.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/integration/history"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// CallTime is the deadline of a recorded operation.
	CallTime = 5 * time.Second
	// changed is how many files of a repo each commit changes.
	changed = 3
	writers = 2
	readers = 4
)

// Repo is a repository whose commits can be identified by the content found.
type Repo struct {
	// Name is the repo's name in Trawl; indexers clone it from URL.
	Name, URL string
	// Commit commits files, each a path and its text, and returns the commit's id. The commit may have other files, without the word heron.
	Commit func(files ...string) (id string)

	mu      sync.Mutex
	numbers map[string]int // of commits, by their ids
}

// Router has the clients of a router.
type Router struct {
	Search searchv1.SearchServiceClient
	Ingest ingestv1.IngestServiceClient
}

// Workload puts, deletes and reads repos through all routers, and records the operations.
type Workload struct {
	History *history.History

	t       *testing.T
	rng     *rand.Rand
	repos   []*Repo
	routers []Router
	// holders maps the key of every shard ever published to its repos.
	holders map[string][]string
	// following are the changes of keys, if Follow was called.
	following map[string]clientv3.WatchChan
}

// New makes the first commit of each repo: a request for an empty one fails for good.
func New(t *testing.T, rng *rand.Rand, repos []*Repo, routers []Router) *Workload {
	t.Helper()
	for _, r := range repos {
		r.numbers = map[string]int{}
		r.next(rng)
	}
	return &Workload{History: history.New(), t: t, rng: rng, repos: repos, routers: routers, holders: map[string][]string{}}
}

// Start runs the callers until stop is called, which waits for all of them.
func (w *Workload) Start() (stop func()) {
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

// Reached reports whether the history has at least that many operations in all, and of each kind. Callers may be at work.
func (w *Workload) Reached(operations, ofKind int) bool {
	counts, total := w.History.Counts(), 0
	for _, kind := range []history.Kind{history.Put, history.Delete, history.Status, history.Search, history.List} {
		if counts[kind] < ofKind {
			return false
		}
		total += counts[kind]
	}
	return total >= operations
}

// write puts a repo at its newest commit, usually a new one, or deletes the repo.
func (w *Workload) write(ctx context.Context, client int, rng *rand.Rand) {
	r := w.repos[rng.IntN(len(w.repos))]
	router := w.routers[rng.IntN(len(w.routers))]
	switch n := rng.IntN(10); {
	case n == 0:
		w.delete(ctx, client, router, r)
	case n < 8:
		r.next(rng)
		fallthrough
	default:
		w.request(ctx, client, router, r)
	}
	time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
}

// next makes the next commit. Each file begins with the number of the commit.
func (r *Repo) next(rng *rand.Rand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.numbers) + 1
	var files []string
	for i := range changed {
		text := fmt.Appendf(nil, "the heron of commit %d\n", n)
		for range 5 {
			text = fmt.Appendf(text, "%016x %016x\n", rng.Uint64(), rng.Uint64())
		}
		files = append(files, fmt.Sprintf("dir%d/file.txt", i), string(text))
	}
	r.numbers[r.Commit(files...)] = n
}

var numbered = regexp.MustCompile(`^the heron of commit (\d+)\n?$`)

func (w *Workload) request(ctx context.Context, client int, router Router, r *Repo) {
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	op := w.History.Begin(client, history.Call{Repo: r.Name, Kind: history.Put})
	put, err := router.Ingest.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: r.URL, Name: r.Name})
	if err != nil {
		w.History.Lost(op)
		return
	}
	w.History.End(op, history.Answer{Epoch: put.GetEpoch()})
}

func (w *Workload) delete(ctx context.Context, client int, router Router, r *Repo) {
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	op := w.History.Begin(client, history.Call{Repo: r.Name, Kind: history.Delete})
	gone, err := router.Ingest.DeleteRepo(ctx, &ingestv1.DeleteRepoRequest{Name: r.Name})
	switch {
	case status.Code(err) == codes.NotFound:
		w.History.End(op, history.Answer{Missing: true})
	case err != nil:
		w.History.Lost(op)
	default:
		revision, err := catalog.DecodeToken(gone.GetRevisionToken())
		if err != nil {
			w.t.Errorf("%s: the token of a deletion: %v", r.Name, err)
		}
		w.History.End(op, history.Answer{Revision: revision})
	}
}

// read asks a router about a repo in one of three ways.
func (w *Workload) read(ctx context.Context, client int, rng *rand.Rand) {
	r := w.repos[rng.IntN(len(w.repos))]
	router := w.routers[rng.IntN(len(w.routers))]
	ways := []func(context.Context, int, Router, *Repo) error{w.status, w.search, w.search, w.list}
	_ = ways[rng.IntN(len(ways))](ctx, client, router, r) // a failed read is not judged
	time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
}

// errUnsettled means that a request is not published yet.
var errUnsettled = errors.New("not settled")

func (w *Workload) status(ctx context.Context, client int, router Router, r *Repo) error {
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	op := w.History.Begin(client, history.Call{Repo: r.Name, Kind: history.Status})
	got, err := router.Ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: r.Name})
	if status.Code(err) == codes.NotFound {
		w.History.End(op, history.Answer{Missing: true})
		return nil
	}
	if err != nil {
		return err
	}
	s := got.GetStatus()
	w.History.End(op, history.Answer{Epoch: s.GetEpoch(), PublishedEpoch: s.GetPublishedEpoch(), Generation: s.GetGeneration()})
	if s.GetEpoch() != s.GetPublishedEpoch() {
		return fmt.Errorf("%w: %v", errUnsettled, s)
	}
	return nil
}

// search records which commit is found. An incomplete answer says nothing,
// unless something is found.
func (w *Workload) search(ctx context.Context, client int, router Router, r *Repo) error {
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	op := w.History.Begin(client, history.Call{Repo: r.Name, Kind: history.Search})
	answer, err := router.Search.Search(ctx, &searchv1.SearchRequest{Query: `repo:^` + regexp.QuoteMeta(r.Name) + `$ heron`})
	if err != nil {
		return err
	}
	whole := answer.GetCoverage().GetComplete()
	if !whole && len(answer.GetFiles()) == 0 {
		return fmt.Errorf("incomplete: %v", answer.GetCoverage())
	}
	commit, err := commitOf(answer, whole)
	if err != nil {
		w.t.Errorf("%s: %v", r.Name, err)
		return err
	}
	w.History.End(op, history.Answer{Commit: commit})
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
	if n := len(answer.GetFiles()); whole && n != 0 && n != changed {
		return 0, fmt.Errorf("a complete answer has %d of %d files", n, changed)
	}
	return commit, nil
}

func (w *Workload) list(ctx context.Context, client int, router Router, r *Repo) error {
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	op := w.History.Begin(client, history.Call{Repo: r.Name, Kind: history.List})
	answer, err := router.Search.List(ctx, &searchv1.ListRequest{Query: `repo:^` + regexp.QuoteMeta(r.Name) + `$`})
	if err != nil {
		return err
	}
	if repos := answer.GetRepos(); len(repos) > 0 {
		w.History.End(op, history.Answer{Generation: repos[0].GetGeneration()})
	} else if answer.GetCoverage().GetComplete() {
		w.History.End(op, history.Answer{})
	}
	return nil
}

// Settle waits until every acknowledged request is published and found through every router, and records these reads too. Then it adds the changes
// that etcd has recorded below a prefix (see Follow). Call it once, after the callers have stopped.
func (w *Workload) Settle(etcd *clientv3.Client, prefix string) {
	w.t.Helper()
	for _, r := range w.repos {
		for i, router := range w.routers {
			for _, read := range []func(context.Context, int, Router, *Repo) error{w.status, w.search, w.list} {
				testrun.Eventually(w.t, fmt.Sprintf("router%d: %s is settled", i, r.Name), func(ctx context.Context) error { return read(ctx, 0, router, r) })
			}
		}
	}
	for _, r := range w.repos {
		w.addWrites(etcd, prefix, r)
	}
}
