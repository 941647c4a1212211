// Package workload pushes to repositories while it searches them, and checks every answer: it
// must be complete, and match the repositories at the time of the query.
package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Call makes one call, f, to a router.
type Call func(ctx context.Context, f func(context.Context, searchv1.SearchServiceClient, ingestv1.IngestServiceClient) error) error

// Workload pushes to all Repos but the first, and searches all of them.
type Workload struct {
	// Call must be safe for concurrent use.
	Call  Call
	Repos []*Repo
	// Patience bounds a push, from the commit until it is published.
	Patience time.Duration

	// Answers and Pushes count right answers and published pushes.
	Answers, Pushes atomic.Uint64

	failed atomic.Pointer[error]
}

// Start pushes and searches until stop is called, which waits until both have ended.
func (w *Workload) Start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	for _, f := range []func(context.Context) error{w.push, w.ask, w.ask} {
		work.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				w.failed.CompareAndSwap(nil, &err)
			}
		})
	}
	return func() {
		cancel()
		work.Wait()
	}
}

// Err returns the first error of pushes or queries; nil while both succeed.
func (w *Workload) Err() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// push pushes to all repos but the first. When the context ends, it completes the push in
// progress.
func (w *Workload) push(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		r := w.Repos[1+n%(len(w.Repos)-1)]
		if err := w.Push(context.WithoutCancel(ctx), r); err != nil {
			return fmt.Errorf("push to %s after commit %d: %w", r.Name, r.shown.Load(), err)
		}
		w.Pushes.Add(1)
	}
	return nil
}

// Push makes the next commit of a repo, and waits until it is published.
func (w *Workload) Push(ctx context.Context, r *Repo) error {
	ctx, cancel := context.WithTimeout(ctx, w.Patience)
	defer cancel()
	n := r.committed.Load() + 1
	r.committed.Store(n) // from here on it may be seen
	if err := r.commit(ctx, n); err != nil {
		return err
	}
	if err := w.Index(ctx, r); err != nil {
		return err
	}
	r.shown.Store(n)
	return nil
}

// Index requests that a repo be indexed, and waits until it is published.
func (w *Workload) Index(ctx context.Context, r *Repo) error {
	epoch := uint64(0)
	err := w.Call(ctx, func(ctx context.Context, _ searchv1.SearchServiceClient, ingest ingestv1.IngestServiceClient) error {
		put, err := ingest.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: r.URL, Name: r.Name})
		epoch = put.GetEpoch()
		return err
	})
	for published := false; err == nil && !published; {
		err = w.Call(ctx, func(ctx context.Context, _ searchv1.SearchServiceClient, ingest ingestv1.IngestServiceClient) error {
			got, err := ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: r.Name})
			published = got.GetStatus().GetPublishedEpoch() >= epoch
			if err == nil && got.GetStatus().GetState() == ingestv1.State_STATE_FAILED {
				err = errors.New(got.GetStatus().GetReason())
			}
			return err
		})
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// ask searches until the context ends. It fails at the first answer that is wrong or
// incomplete.
func (w *Workload) ask(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		err := w.askStamp(ctx, w.Repos[n%len(w.Repos)])
		if err == nil {
			err = w.askSteady(ctx, n)
		}
		if err != nil {
			return err
		}
		w.Answers.Add(2)
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// Check runs every query once.
func (w *Workload) Check(ctx context.Context) error {
	var errs []error
	for n := range steady {
		errs = append(errs, w.askSteady(ctx, n))
	}
	for _, r := range w.Repos {
		errs = append(errs, w.askStamp(ctx, r))
	}
	return errors.Join(errs...)
}

// search runs a query over the workload's repos, and compares the answer with want.
func (w *Workload) search(ctx context.Context, query string, want []string) (answer *searchv1.SearchResponse, err error) {
	err = w.Call(ctx, func(ctx context.Context, search searchv1.SearchServiceClient, _ ingestv1.IngestServiceClient) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // long enough for a slow machine
		defer cancel()
		answer, err = search.Search(ctx, &searchv1.SearchRequest{Query: query})
		return err
	})
	if err == nil {
		err = Compare(answer, want)
	}
	if err != nil {
		err = fmt.Errorf("search %q: %w", query, err)
	}
	return answer, err
}

// steady are queries for content that no push changes, each with the paths that it finds in
// every repo.
var steady = []struct {
	query string
	paths []string
}{
	{"kingfisher", []string{"heron.go", "doc/same.md"}},
	{"case:yes kingFisher", []string{"heron.go"}},
	{`\bheron\d_4\b`, []string{"heron.go"}},
	{`func heron\d_4\(\)`, []string{"heron.go"}},
	{"\"the same in each\"", []string{"doc/same.md"}},
	{"eron1_", nil},
	{"f:now.txt", []string{"now.txt"}},
}

func (w *Workload) askSteady(ctx context.Context, n int) error {
	s := steady[n%len(steady)]
	want := []string{}
	for i, r := range w.Repos {
		for _, path := range s.paths {
			want = append(want, r.Name+":"+path)
		}
		if s.query == "eron1_" && i == 1 {
			want = append(want, r.Name+":heron.go")
		}
	}
	_, err := w.search(ctx, s.query, want)
	return err
}

var stampedWord = regexp.MustCompile(`stamp(\d+)`)

// askStamp searches for a repo's last commit. It must find the one that was published when the
// query began, or a later one.
func (w *Workload) askStamp(ctx context.Context, r *Repo) error {
	least := r.shown.Load()
	answer, err := w.search(ctx, "r:"+r.Name+"$ stamp[0-9]+", []string{r.Name + ":now.txt"})
	most := r.committed.Load()
	if err != nil {
		return fmt.Errorf("the last commit of %s: %w", r.Name, err)
	}
	found := stampedWord.FindSubmatch(content(answer.GetFiles()[0]))
	if len(found) == 0 {
		return fmt.Errorf("the last commit of %s is not shown: %q", r.Name, content(answer.GetFiles()[0]))
	}
	if n, err := strconv.ParseInt(string(found[1]), 10, 64); err != nil || n < least || n > most {
		return fmt.Errorf("the last commit of %s is %d, published was %d and committed %d", r.Name, n, least, most)
	}
	return nil
}

// content returns what an answer shows of a file.
func content(f *searchv1.FileMatch) (shown []byte) {
	for _, chunk := range f.GetChunks() {
		shown = append(shown, chunk.GetContent()...)
	}
	return bytes.TrimSpace(shown)
}

// Compare returns how an answer differs from a complete one with exactly these files, each
// "repo:path".
func Compare(answer *searchv1.SearchResponse, want []string) error {
	cov := answer.GetCoverage()
	if !cov.GetComplete() || cov.GetRequested() != cov.GetSearched()+cov.GetPruned() {
		return fmt.Errorf("it is not complete: %v", cov)
	}
	got := map[string]bool{}
	for _, f := range answer.GetFiles() {
		got[f.GetRepo()+":"+string(f.GetPath())] = true
	}
	if len(got) != len(want) {
		return fmt.Errorf("found %v, want %v", got, want)
	}
	for _, w := range want {
		if !got[w] {
			return fmt.Errorf("found %v, want %v", got, want)
		}
	}
	return nil
}
