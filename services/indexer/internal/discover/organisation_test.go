package discover

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/reconcile"
)

var organisationRepos = flag.Int("repos", 1000, "repos of TestOrganisationComesAndGoes, at most 200,000")

// TestOrganisationComesAndGoes: an organisation with very many repos appears at its host, is listed in part, disappears, comes back, and
// disappears for good, on a real etcd and a real queue. Each repo is requested once, and nothing else is; a list that is cut off changes nothing;
// nothing is deleted within the grace time; the pushes of others are found and indexed meanwhile. It logs times and memory; see docs/scale.md.
func TestOrganisationComesAndGoes(t *testing.T) {
	o := startOrganisation(t, *organisationRepos)
	o.step("appears", o.appears)
	o.step("waits to be indexed", o.waits)
	o.step("is indexed", o.isIndexed)
	o.step("is polled", o.isPolled)
	o.step("is listed in part", o.isListedInPart)
	o.step("disappears and comes back", o.comesBack)
	o.step("is deleted", o.isDeleted)
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		t.Logf("this process, with etcd and the queue: %s", regexp.MustCompile(`VmHWM.*`).Find(status))
	}
}

// organisation is a discoverer with a source that has very many repos and another one that has three, on real servers.
type organisation struct {
	*Discoverer

	t     *testing.T
	n     int
	etcd  *clientv3.Client
	queue *queue.Queue
	host  *pagedHost
	// large and small are the looks at the two sources.
	large, small *look
	// published is called after each job that was enqueued.
	published func(queue.Job)
	jobs      atomic.Int64

	mu sync.Mutex
	// heads are the commits of repositories by URL, c1 if they have none here. Polled counts the polls of each URL.
	heads  map[string]string
	polled map[string]int
	// asking is called before each poll.
	asking func()
}

func startOrganisation(t *testing.T, n int) *organisation {
	servers, err := embedded.Start(t.Context(), embedded.Config{NoSync: true, Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	testrun.Must(t, err)
	t.Cleanup(func() { servers.Close() })
	q, err := queue.New(servers.Conn(), queue.Config{Logger: slog.New(slog.DiscardHandler)})
	testrun.Must(t, err, q.Ensure(t.Context()))
	o := &organisation{
		t: t, n: n, etcd: servers.Client(), queue: q, host: startPagedHost(t, n),
		published: func(queue.Job) {}, asking: func() {}, heads: map[string]string{}, polled: map[string]int{},
	}
	o.Discoverer = &Discoverer{
		Config: Config{PerSecond: 1000}, Store: catalog.New(o.etcd, ""), Queue: o, Remote: o, Metrics: NewMetrics(prometheus.NewRegistry()),
		Policy: origin.Policy{Schemes: []string{"http"}, PrivateNetworks: []string{"127.0.0.0/8"}}, Log: slog.New(slog.DiscardHandler),
	}
	specs := []*ingestv1.Source{
		{Name: "large", Kind: codehost.GitHub, Url: o.host.URL, Owner: "large", Every: durationpb.New(time.Hour)},
		{Name: "small", Kind: codehost.GitHub, Url: o.host.URL, Owner: "small", Every: durationpb.New(time.Hour)},
	}
	_, err = o.Store.ApplySources(t.Context(), specs)
	testrun.Must(t, err)
	o.large, o.small = o.lookAt("large"), o.lookAt("small")
	return o
}

func (o *organisation) lookAt(name string) *look {
	o.t.Helper()
	client, err := codehost.NewClient(o.Policy, "", codehost.Secrets{})
	testrun.Must(o.t, err)
	o.t.Cleanup(client.Close)
	s, err := o.Store.GetSource(o.t.Context(), name)
	testrun.Must(o.t, err)
	return &look{Discoverer: o.Discoverer, host: client, source: s, spec: proto.CloneOf(s.Record.GetSpec()), report: &ingestv1.SourceReport{}}
}

// Publish implements queue.Publisher.
func (o *organisation) Publish(ctx context.Context, job queue.Job) error {
	err := o.queue.Publish(ctx, job)
	o.jobs.Add(1)
	o.published(job)
	return err
}

// Branches implements Remote.
func (o *organisation) Branches(_ context.Context, url string, _ []string) ([]docstore.Branch, error) {
	o.asking()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.polled[url]++
	commit := o.heads[url]
	if commit == "" {
		commit = "c1"
	}
	return []docstore.Branch{{Name: "main", Commit: commit}}, nil
}

func (o *organisation) step(what string, do func()) {
	start, cpu := time.Now(), processorTime(o.t)
	do()
	o.t.Logf("an organisation of %d %s: %v, %v of the processor with etcd's and the queue's",
		o.n, what, time.Since(start).Round(time.Millisecond), (processorTime(o.t) - cpu).Round(time.Millisecond))
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	testrun.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// look looks at a source once, and fails the test unless it goes well.
func (o *organisation) look(l *look) {
	o.t.Helper()
	if l.once(o.t.Context()); l.report.GetReason() != "" {
		o.t.Errorf("a look at %s: %s", l.spec.GetName(), l.report.GetReason())
	}
}

// want fails the test unless the organisation has that number of desired repos, each requested once, with that number of them leaving.
func (o *organisation) want(what string, repos, leaving int) {
	o.t.Helper()
	desired, left, again := 0, 0, 0
	for entry, err := range o.Store.ListDesired(o.t.Context()) {
		testrun.Must(o.t, err)
		if entry.Record.GetSource() != "large" {
			continue
		}
		desired++
		if entry.Record.GetLeftAt() != nil {
			left++
		}
		if entry.Record.GetEpoch() != 1 {
			again++
		}
	}
	r := o.large.report
	if desired != repos || left != leaving || again > 0 || int(r.GetLeaving()) != leaving || int(r.GetRepos()) != repos-leaving {
		o.t.Errorf("%s: %d desired, %d of them leaving, %d requested again; reported are %d and %d leaving; want %d, %d of them leaving",
			what, desired, left, again, r.GetRepos(), r.GetLeaving(), repos, leaving)
	}
}

// nothingQueued fails the test if the number of jobs that were ever enqueued has changed.
func (o *organisation) nothingQueued(what string, before int64) {
	o.t.Helper()
	if now := o.jobs.Load(); now != before {
		o.t.Errorf("%s: %d jobs were enqueued", what, now-before)
	}
}

// publish publishes the newest request of a repo of the small source at a commit.
func (o *organisation) publish(path, commit string) {
	o.t.Helper()
	lease, err := o.Store.AcquireLease(o.t.Context(), o.host.repo(path), time.Minute)
	testrun.Must(o.t, err)
	_, err = o.Store.Publish(o.t.Context(), lease, lease.Root(), &catalogv1.Root{
		Repo: o.host.repo(path), Generation: lease.NextGeneration(), Epoch: lease.Desired().GetEpoch(), Branches: []*catalogv1.Branch{{Name: "main", Commit: commit}},
	})
	testrun.Must(o.t, err, lease.Release(o.t.Context()))
}

// appears: each repo is requested once. When half of them are, what was pushed to a repo of another source is found.
func (o *organisation) appears() {
	o.look(o.small)
	o.publish("small/r0000000", "c1")
	o.heads[o.host.cloneURL("small/r0000000")] = "c2"
	before := o.jobs.Load()
	o.published = func(job queue.Job) {
		if job.Repo == o.host.repo(fmt.Sprintf("large/r%07d", o.n/2)) {
			o.published = func(queue.Job) {}
			o.look(o.small)
			if d, err := o.Store.GetDesired(o.t.Context(), o.host.repo("small/r0000000")); err != nil || d.Record.GetEpoch() != 2 {
				o.t.Errorf("a push to another source, while the organisation appears: %v, %v", d.Record, err)
			}
		}
	}
	o.look(o.large)
	o.want("at first", o.n, 0)
	pages := (o.n + hostPage - 1) / hostPage
	if o.jobs.Load() != before+int64(o.n)+1 || o.host.most.Load() != 1 || o.host.asked.Load() != int64(pages) {
		o.t.Errorf("%d jobs, and %d requests for %d pages, %d at once", o.jobs.Load()-before, o.host.asked.Load(), pages, o.host.most.Load())
	}
	o.look(o.large)
	o.nothingQueued("a second look", before+int64(o.n)+1)
	if o.host.unsent.Load() != int64(pages-1) {
		o.t.Errorf("a second look: %d of %d pages are sent again, want the last one", int64(pages)-o.host.unsent.Load(), pages)
	}
}

// waits: as long as the queue has the jobs, it gets no more of them.
func (o *organisation) waits() {
	r := reconcile.Reconciler{
		Store: o.Store, Queue: o.queue, Every: time.Minute, RetryFailed: time.Hour, RetryUnreachable: time.Minute,
		Metrics: reconcile.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
	}
	testrun.Must(o.t, r.Pass(o.t.Context(), time.Now().Add(time.Hour)))
	if depth, err := o.queue.Depth(o.t.Context()); err != nil || depth.Jobs != int(o.jobs.Load()) {
		o.t.Errorf("the queue has %d jobs for %d requests, %v", depth.Jobs, o.jobs.Load(), err)
	}
}

// isIndexed: each repo has one job, and a push to another source has its turn long before them.
func (o *organisation) isIndexed() {
	ctx, cancel := context.WithCancel(o.t.Context())
	defer cancel()
	var mu sync.Mutex
	seen, first, pushed, before := map[string]int{}, make(chan struct{}), make(chan struct{}), -1
	var consuming sync.WaitGroup
	consuming.Go(func() {
		_ = o.queue.Consume(ctx, 2, func(_ context.Context, d *queue.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			if d.Repo == o.host.repo("small/r0000001") && d.Epoch > 1 {
				before = len(seen)
			}
			if seen[d.Repo]++; len(seen) == 10 && seen[d.Repo] == 1 { // the push comes before the next job is done
				close(first)
				select {
				case <-pushed:
				case <-ctx.Done():
				}
			}
			return nil
		})
	})
	<-first
	epoch, _, err := o.Store.Refresh(ctx, o.host.repo("small/r0000001"), nil, time.Now(), 0)
	testrun.Must(o.t, err)
	if epoch == 0 { // its first request waits among those of the organisation
		o.publish("small/r0000001", "c1")
		epoch, _, err = o.Store.Refresh(ctx, o.host.repo("small/r0000001"), nil, time.Now(), 0)
		testrun.Must(o.t, err)
	}
	testrun.Must(o.t, o.queue.Publish(ctx, queue.Job{Repo: o.host.repo("small/r0000001"), Epoch: epoch}))
	close(pushed)
	testrun.Until(o.t, "all jobs are done", func() bool {
		depth, err := o.queue.Depth(ctx)
		return err == nil && depth.Jobs == 0
	})
	cancel()
	consuming.Wait()
	for i := range o.n {
		if name := o.host.repo(fmt.Sprintf("large/r%07d", i)); seen[name] != 1 {
			o.t.Fatalf("%s had %d jobs", name, seen[name])
		}
	}
	if before < 0 || before > o.n/2 {
		o.t.Errorf("a push to another source had its turn after %d of %d repos", before, o.n)
	}
	o.t.Logf("a push to another source had its turn after %d of %d repos", before, o.n)
	o.publishAll()
}

// publishAll writes a root of each repo of the organisation.
func (o *organisation) publishAll() {
	all := make([]int, o.n)
	for i := range all {
		all[i] = i
	}
	for some := range slices.Chunk(all, 100) {
		var puts []clientv3.Op
		for _, i := range some {
			name := o.host.repo(fmt.Sprintf("large/r%07d", i))
			root, err := proto.Marshal(&catalogv1.Root{Repo: name, Generation: 1, Epoch: 1, Branches: []*catalogv1.Branch{{Name: "main", Commit: "c1"}}})
			testrun.Must(o.t, err)
			puts = append(puts, clientv3.OpPut(o.Store.Prefix()+"roots/"+name, string(root)))
		}
		_, err := o.etcd.Txn(o.t.Context()).Then(puts...).Commit()
		testrun.Must(o.t, err)
	}
}

// isPolled: each repo is polled once. What a look holds meanwhile is in step with the number of repos.
func (o *organisation) isPolled() {
	jobs, before, held := o.jobs.Load(), testrun.LiveHeap(), int64(0)
	o.asking = sync.OnceFunc(func() { held = testrun.LiveHeap() - before })
	clear(o.polled)
	o.look(o.large)
	for i := range o.n {
		if url := o.host.cloneURL(fmt.Sprintf("large/r%07d", i)); o.polled[url] != 1 {
			o.t.Fatalf("%s was polled %d times", url, o.polled[url])
		}
	}
	o.nothingQueued("nothing moved", jobs)
	o.t.Logf("a look holds %d bytes for each repo beside the pages of its host", held/int64(o.n))
	if held > int64(o.n)*heldPerRepo+heldAtAll {
		o.t.Errorf("a look at %d repos holds %d bytes", o.n, held)
	}
}

// What a look may hold: twice what was measured.
const heldPerRepo, heldAtAll = 1200, 2 << 20

// isListedInPart: a list that is cut off is an error, and changes nothing. One that lacks some repos marks these.
func (o *organisation) isListedInPart() {
	jobs := o.jobs.Load()
	for _, trouble := range []string{"short", "truncated", "unavailable", "not found"} {
		o.host.set(trouble)
		l := o.lookAt("large") // no page is known
		listed, err := l.host.List(o.t.Context(), l.spec)
		if _, ok := errors.AsType[*codehost.Error](err); !ok || len(listed) > 0 {
			o.t.Errorf("%s: %d repos, %v", trouble, len(listed), err)
		}
	}
	if o.large.once(o.t.Context()); o.large.report.GetReason() == "" {
		o.t.Error("a look at a list that is cut off went well")
	}
	o.want("after a list that is cut off", o.n, 0)
	o.host.set("half")
	o.look(o.large)
	o.want("half of them are listed", o.n, o.n-o.n/2)
	if gauge(o.t, o.Metrics.leaving) != 1 {
		o.t.Error("the metrics do not report a source that half of the repos are leaving")
	}
	o.nothingQueued("listed in part", jobs)
}

// comesBack: an organisation that disappears and comes back costs no job, although etcd soon forgets old revisions.
func (o *organisation) comesBack() {
	jobs := o.jobs.Load()
	o.host.set("gone")
	o.look(o.large)
	o.want("all have left", o.n, o.n)
	ctx, cancel := context.WithCancel(o.t.Context())
	var forgetting sync.WaitGroup
	forgetting.Go(func() {
		for ctx.Err() == nil {
			if now, err := o.etcd.Get(ctx, "x"); err == nil {
				_, _ = o.etcd.Compact(ctx, now.Header.Revision-100)
			}
			time.Sleep(time.Millisecond)
		}
	})
	o.host.set("")
	o.look(o.large)
	cancel()
	forgetting.Wait()
	o.want("all are back", o.n, 0)
	if gauge(o.t, o.Metrics.leaving) != 0 {
		o.t.Error("the metrics report a source that nothing is leaving")
	}
	o.nothingQueued("gone and back", jobs)
}

// isDeleted: after the grace time all are deleted, and nothing else.
func (o *organisation) isDeleted() {
	jobs := o.jobs.Load()
	o.host.set("gone")
	o.look(o.large)
	o.want("within the grace time", o.n, o.n)
	o.large.spec.Grace = durationpb.New(0)
	o.look(o.large)
	o.want("after the grace time", 0, 0)
	o.nothingQueued("deleted", jobs)
	var names []string
	for entry, err := range o.Store.ListDesired(o.t.Context()) {
		testrun.Must(o.t, err)
		names = append(names, entry.Record.GetName())
	}
	if len(names) != 3 || !strings.HasSuffix(names[0], "small/r0000000") {
		o.t.Errorf("left are %q", names)
	}
}
