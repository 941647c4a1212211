package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a discoverer, and all that it talks to, in a bubble of time.
type world struct {
	*Discoverer

	t      *testing.T
	resign func()

	mu sync.Mutex
	// listed are the repos of each source, failing the error of asking it.
	listed  map[string][]codehost.Repo
	failing map[string]error
	looks   map[string][]time.Time
	// listing is how long each list takes.
	listing time.Duration
	// heads are the commits of repositories by URL; missing ones cannot be reached.
	heads  map[string]string
	polled []string
	// broken is what the branch broken of each repository names, which roots leave out; empty: there is none.
	broken string
	// asked counts the operations on etcd twice: before and after each.
	asked int
	// etcd is the error of all operations on etcd.
	etcd error
	jobs []queue.Job
}

// inWorld runs a test with a discoverer that leads.
func inWorld(t *testing.T, test func(w *world)) { inWorldOf(t, "", test) }

// inWorldOf runs a test with a discoverer that leads, and keeps to the sources of a
// file, unless it has no name.
func inWorldOf(t *testing.T, file string, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		metrics := NewMetrics(prometheus.NewRegistry())
		w := &world{t: t, listed: map[string][]codehost.Repo{}, failing: map[string]error{}, looks: map[string][]time.Time{}, heads: map[string]string{}}
		w.Discoverer = &Discoverer{
			Config: Config{PerSecond: 10, Apart: 10 * time.Second},
			Store:  catalog.New(etcdtest.New().Client(w.ask), ""), Queue: w, Remote: w, Metrics: metrics, Log: slog.New(slog.DiscardHandler),
			Policy: origin.Policy{Schemes: []string{"https"}}, Open: func() (Host, error) { return w, nil },
			Bucket: bucket.NewMemory(1 << 20), File: file,
		}
		w.lead()
		test(w)
		w.resign()
	})
}

// lead runs the discoverer until resign is called.
func (w *world) lead() {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	w.resign = func() {
		cancel()
		<-done
	}
}

// ask counts the operations on etcd.
func (w *world) ask(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	return errors.Join(w.etcd, ctx.Err())
}

// List implements Host.
func (w *world) List(ctx context.Context, s *ingestv1.Source) ([]codehost.Repo, error) {
	w.set(func() { w.looks[s.GetName()] = append(w.looks[s.GetName()], time.Now()) })
	wait.Sleep(ctx, w.listing)
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.listed[s.GetName()]), w.failing[s.GetName()]
}

// Close implements Host.
func (w *world) Close() {}

// Publish implements queue.Publisher.
func (w *world) Publish(_ context.Context, job queue.Job) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, job)
	return nil
}

// Branches implements Remote.
func (w *world) Branches(_ context.Context, url string, _ []string) ([]docstore.Branch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polled = append(w.polled, url)
	if w.heads[url] == "" {
		return nil, &gitsource.Failure{Kind: gitsource.Unreachable, Reason: "the host cannot be reached"}
	}
	branches := []docstore.Branch{{Name: "main", Commit: w.heads[url]}}
	if w.broken != "" {
		branches = append(branches, docstore.Branch{Name: "broken", Commit: w.broken})
	}
	return branches, nil
}

func spec(name string) *ingestv1.Source {
	return &ingestv1.Source{
		Name: name, Kind: "gitea", Url: "https://git.example.com", Owner: "acme", Every: durationpb.New(10 * time.Minute), Grace: durationpb.New(24 * time.Hour),
	}
}

func repo(id int, path string) codehost.Repo {
	return codehost.Repo{ID: fmt.Sprint(id), Path: path, CloneURL: "https://git.example.com/" + path + ".git"}
}

// set changes what the hosts say.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// apply makes these the sources, and waits for the first look at them.
func (w *world) apply(specs ...*ingestv1.Source) {
	w.t.Helper()
	if _, err := w.Store.ApplySources(w.t.Context(), specs); err != nil {
		w.t.Fatal(err)
	}
	after(2 * readEvery)
}

// after lets time pass, and waits for what it brings.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// names are the desired repos.
func (w *world) names() []string {
	w.t.Helper()
	names := []string{}
	for d, err := range w.Store.ListDesired(w.t.Context()) {
		if err != nil {
			w.t.Fatal(err)
		}
		names = append(names, d.Record.GetName())
	}
	return names
}

func (w *world) want(what string, names ...string) {
	w.t.Helper()
	for i := range names {
		names[i] = "git.example.com/" + names[i]
	}
	if got := w.names(); !slices.Equal(got, names) {
		w.t.Errorf("%s: desired are %q, want %q", what, got, names)
	}
}

func (w *world) report(name string) *ingestv1.SourceReport {
	w.t.Helper()
	report, err := w.Store.GetSourceReport(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// publish makes a repo published at a commit, as a job does.
func (w *world) publish(name, commit string) {
	w.t.Helper()
	lease, err := w.Store.AcquireLease(w.t.Context(), name, time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.Store.Publish(w.t.Context(), lease, lease.Root(), &catalogv1.Root{
		Repo: name, Generation: lease.NextGeneration(), Epoch: lease.Desired().GetEpoch(), Branches: []*catalogv1.Branch{{Name: "main", Commit: commit}},
		LeftOut: []*catalogv1.Branch{{Name: "broken", Commit: w.broken}},
	})
	if err := errors.Join(err, lease.Release(w.t.Context())); err != nil {
		w.t.Fatal(err)
	}
}

// take returns the jobs since the last call, as repo:epoch. The first one of a repo is a bulk job.
func (w *world) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := []string{}
	for _, j := range w.jobs {
		if taken = append(taken, fmt.Sprintf("%s:%d", j.Repo, j.Epoch)); j.Bulk != (j.Epoch == 1) {
			taken = append(taken, fmt.Sprintf("%s is wrong in its kind: %v", j.Repo, j.Bulk))
		}
	}
	w.jobs = nil
	return taken
}

// states returns how many sources the metrics report as ok, and as failing.
func (w *world) states() (ok, failing float64) {
	w.t.Helper()
	of := func(state string) float64 { return gauge(w.t, w.Metrics.sources.WithLabelValues(state)) }
	return of("ok"), of("failing")
}

func gauge(t *testing.T, g prometheus.Gauge) float64 {
	t.Helper()
	m := &dto.Metric{}
	if err := g.Write(m); err != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}
