package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noted is a queue that only records its jobs.
type noted struct {
	jobs    []queue.Job
	letters map[string]queue.DeadLetter
	err     error
	depth   int
	// meanwhile runs once the depth is known.
	meanwhile func()
}

func (n *noted) Depth(context.Context) (queue.Depth, error) {
	depth := queue.Depth{Jobs: n.depth}
	if n.meanwhile != nil {
		n.meanwhile()
	}
	return depth, nil
}

func (n *noted) DeadLetter(_ context.Context, repo string) (queue.DeadLetter, error) {
	if letter, ok := n.letters[repo]; ok {
		return letter, nil
	}
	return queue.DeadLetter{}, queue.ErrNoLetter
}

func (n *noted) Publish(_ context.Context, job queue.Job) error {
	n.jobs = append(n.jobs, job)
	return n.err
}

// take returns what came since the last call, as repo:epoch.
func (n *noted) take() []string {
	var taken []string
	for _, j := range n.jobs {
		taken = append(taken, fmt.Sprintf("%s:%d", j.Repo, j.Epoch))
	}
	n.jobs = nil
	return taken
}

func newReconciler(t *testing.T) (*Reconciler, *noted) {
	t.Helper()
	e, err := embedded.StartEtcd(t.Context(), embedded.Config{
		NoSync: true,
		Dir:    t.TempDir(), Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	q := &noted{}
	metrics := NewMetrics(prometheus.NewRegistry())
	return &Reconciler{
		Store: catalog.New(e.Client(), ""), Queue: q, Every: time.Minute, RetryFailed: time.Hour, RetryUnreachable: time.Minute,
		Metrics: metrics, Log: slog.New(slog.DiscardHandler),
	}, q
}

func TestPass(t *testing.T) {
	r, q := newReconciler(t)
	ctx := t.Context()
	start := time.Now()
	put := func(name string) uint64 {
		epoch, _, err := r.Store.PutDesired(ctx, &catalogv1.Desired{Name: name, Url: "u", RequestedAt: timestamppb.New(start)})
		if err != nil {
			t.Fatal(err)
		}
		return epoch
	}
	for _, name := range []string{"failed", "leased", "lost", "published"} {
		put(name)
	}
	publish(t, r.Store, "published")
	lease, err := r.Store.AcquireLease(ctx, "leased", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Store.PutStatus(ctx, "failed", &catalogv1.Status{
		State: ingestv1.State_STATE_FAILED, Epoch: 1, UpdatedAt: timestamppb.New(start),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pass := func(after time.Duration, want ...string) {
		t.Helper()
		if err := r.Pass(ctx, start.Add(after)); err != nil {
			t.Fatal(err)
		}
		if got := q.take(); !slices.Equal(got, want) {
			t.Errorf("after %v: enqueued %v, want %v", after, got, want)
		}
	}
	pass(30 * time.Second) // the queue has its chance first
	pass(61*time.Second, "lost:1")
	pass(2 * time.Minute) // it waits twice as long
	if err := lease.Release(ctx); err != nil {
		t.Fatal(err)
	}
	pass(4*time.Minute, "leased:1", "lost:1")
	put("lost")
	pass(5*time.Minute, "lost:2")
	publish(t, r.Store, "lost")
	publish(t, r.Store, "leased")
	pass(59 * time.Minute)
	pass(61*time.Minute, "failed:1")
	if len(r.pending) != 1 {
		t.Errorf("%d requests are remembered, want the one outstanding", len(r.pending))
	}
	q.err = errors.New("away")
	if err := r.Pass(ctx, start.Add(24*time.Hour)); !errors.Is(err, q.err) {
		t.Errorf("got %v", err)
	}
	q.err = nil
	q.take()
	pass(24*time.Hour+time.Second, "failed:1") // what could not be enqueued is tried at once
}

// TestRequestOfAClockAhead: a request that the queue lost is enqueued again in time, although the clock of the router that took it was an
// hour ahead.
func TestRequestOfAClockAhead(t *testing.T) {
	r, q := newReconciler(t)
	start := time.Now()
	if _, _, err := r.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: "lost", Url: "u", RequestedAt: timestamppb.New(start.Add(time.Hour))}); err != nil {
		t.Fatal(err)
	}
	for after, want := range []int{0, 0, 1} {
		if err := r.Pass(t.Context(), start.Add(time.Duration(after)*40*time.Second)); err != nil {
			t.Fatal(err)
		}
		if got := q.take(); len(got) != want {
			t.Errorf("at look %d %q were enqueued", after, got)
		}
	}
}

// TestFailuresBackOff: a request that fails again and again is tried less and less often, also
// under another leader: one whose host cannot be reached soon, and any other after an hour.
func TestFailuresBackOff(t *testing.T) {
	r, q := newReconciler(t)
	for unreachable, waits := range map[bool][]time.Duration{
		false: {time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 16 * time.Hour, 24 * time.Hour, 24 * time.Hour},
		true:  {time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, 64 * time.Minute},
	} {
		at := time.Now()
		epoch, _, err := r.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: "bad", RequestedAt: timestamppb.New(at)})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range waits {
			err := r.Store.PutStatus(t.Context(), "bad", &catalogv1.Status{
				State: ingestv1.State_STATE_FAILED, Epoch: epoch, UpdatedAt: timestamppb.New(at), Unreachable: unreachable,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				after time.Duration
				jobs  int
			}{{want - time.Second, 0}, {max(want, r.Every), 1}} { // no request is looked at before Every
				r.pending = nil // another one leads
				if err := r.Pass(t.Context(), at.Add(c.after)); err != nil {
					t.Fatal(err)
				}
				if jobs := q.take(); len(jobs) != c.jobs {
					t.Errorf("unreachable %v, failure %d, after %v: enqueued %v", unreachable, i+1, c.after, jobs)
				}
			}
			at = at.Add(want)
		}
	}
}

// TestPoison: a job that no worker survived has a dead letter and no status that
// says so. It becomes a failure like others.
func TestPoison(t *testing.T) {
	r, q := newReconciler(t)
	start := time.Now().Truncate(time.Second)
	put := func() {
		if _, _, err := r.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: "poison", RequestedAt: timestamppb.New(start)}); err != nil {
			t.Fatal(err)
		}
	}
	put()
	err := r.Store.PutStatus(t.Context(), "poison", &catalogv1.Status{
		State: ingestv1.State_STATE_BUILDING, Epoch: 1, UpdatedAt: timestamppb.New(start),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.letters = map[string]queue.DeadLetter{"poison": {Job: queue.Job{Repo: "poison", Epoch: 1}, Reason: "no worker lived", Time: start.Add(time.Minute)}}
	pass := func(after time.Duration, want ...string) {
		t.Helper()
		if err := r.Pass(t.Context(), start.Add(after)); err != nil {
			t.Fatal(err)
		}
		if got := q.take(); !slices.Equal(got, want) {
			t.Errorf("after %v: enqueued %v, want %v", after, got, want)
		}
	}
	pass(2 * time.Minute)
	status, err := r.Store.GetStatus(t.Context(), "poison")
	if err != nil || status.Record.GetState() != ingestv1.State_STATE_FAILED || status.Record.GetReason() != "no worker lived" || status.Record.GetFailures() != 1 {
		t.Errorf("status %v, %v", status.Record, err)
	}
	pass(10 * time.Minute)
	pass(2*time.Hour, "poison:1")
	put() // the letter is of an earlier request
	pass(3*time.Hour, "poison:2")
}

// TestLettersOfOtherRequests: a dead letter gives up its own request and no other, whatever the
// status says and whenever the job died.
func TestLettersOfOtherRequests(t *testing.T) {
	r, q := newReconciler(t)
	start := time.Now().Truncate(time.Second)
	states := []ingestv1.State{ingestv1.State_STATE_UNSPECIFIED, ingestv1.State_STATE_BUILDING, ingestv1.State_STATE_FAILED, ingestv1.State_STATE_PUBLISHED}
	q.letters = map[string]queue.DeadLetter{}
	var want []string
	for _, letter := range []uint64{1, 2, 3} {
		for _, state := range states {
			for _, died := range []time.Duration{-time.Minute, time.Minute} { // before or after the status
				name := fmt.Sprintf("%d/%d/%v", letter, state, died)
				for range 2 {
					if _, _, err := r.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: name, RequestedAt: timestamppb.New(start)}); err != nil {
						t.Fatal(err)
					}
				}
				if state != ingestv1.State_STATE_UNSPECIFIED { // there is a status: of the request before
					err := r.Store.PutStatus(t.Context(), name, &catalogv1.Status{State: state, Epoch: 1, UpdatedAt: timestamppb.New(start)}, nil)
					if err != nil {
						t.Fatal(err)
					}
				}
				q.letters[name] = queue.DeadLetter{Job: queue.Job{Repo: name, Epoch: letter}, Reason: "no worker lived", Time: start.Add(died)}
				if letter != 2 || state != ingestv1.State_STATE_UNSPECIFIED && died < 0 {
					want = append(want, name+":2")
				}
			}
		}
	}
	slices.Sort(want)
	if err := r.Pass(t.Context(), start.Add(2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := q.take(); !slices.Equal(got, want) {
		t.Errorf("enqueued %q\nwant %q", got, want)
	}
}

// TestManyRepos: only those without a root are enqueued.
func TestManyRepos(t *testing.T) {
	r, q := newReconciler(t)
	start := time.Now()
	var want []string
	for i := range 40 {
		name := fmt.Sprintf("r/%02d", i)
		if _, _, err := r.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: name, RequestedAt: timestamppb.New(start)}); err != nil {
			t.Fatal(err)
		}
		if i%3 == 1 {
			publish(t, r.Store, name)
		} else {
			want = append(want, name+":1")
		}
	}
	if err := r.Pass(t.Context(), start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := q.take(); !slices.Equal(got, want) {
		t.Errorf("enqueued %v, want %v", got, want)
	}
	// 13 are published; the others wait for an hour.
	lag := &dto.Metric{}
	collected := make(chan prometheus.Metric, 1)
	r.Metrics.lags.Collect(collected)
	if err := (<-collected).Write(lag); err != nil {
		t.Fatal(err)
	}
	within := map[float64]uint64{}
	for _, b := range lag.GetHistogram().GetBucket() {
		within[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	if h := lag.GetHistogram(); h.GetSampleCount() != 40 || within[1800] != 13 || within[3600] != 40 || h.GetSampleSum() != 27*3600 {
		t.Errorf("lags %v", h)
	}
}

// TestLongQueueGetsNoLonger: requests that wait in the queue are not enqueued again, however long they wait, but for those that the queue has lost.
func TestLongQueueGetsNoLonger(t *testing.T) {
	r, q := newReconciler(t)
	now := time.Now()
	put := func(name string) {
		t.Helper()
		if _, _, err := r.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: name, RequestedAt: timestamppb.New(now)}); err != nil {
			t.Fatal(err)
		}
	}
	pass := func(want ...string) {
		t.Helper()
		now = now.Add(time.Minute)
		if err := r.Pass(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if got := q.take(); !slices.Equal(got, want) {
			t.Fatalf("enqueued %v, want %v", got, want)
		}
	}
	for _, name := range []string{"a", "b", "c", "d", "failed"} {
		put(name)
	}
	err := r.Store.PutStatus(t.Context(), "failed", &catalogv1.Status{State: ingestv1.State_STATE_FAILED, Epoch: 1, UpdatedAt: timestamppb.New(now.Add(100 * time.Hour))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.depth = 4
	pass("a:1", "b:1", "c:1", "d:1") // before it is known that one has failed
	for range 200 {
		pass()
	}
	q.meanwhile = func() { // a job is done, and another request comes, while the requests are listed
		publish(t, r.Store, "a")
		put("e")
	}
	pass()
	q.depth, q.meanwhile = 4, func() {}
	pass()
	q.depth = 3
	pass("b:1", "c:1", "d:1", "e:1") // one of them was lost
	q.depth = 0
	pass()
}

// TestFailedRequestsBesideALongQueue: a failed request is tried again when it is due, although the queue still has jobs and has lost none.
func TestFailedRequestsBesideALongQueue(t *testing.T) {
	r, q := newReconciler(t)
	start := time.Now()
	for _, name := range []string{"failed", "waits"} {
		if _, _, err := r.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: name, RequestedAt: timestamppb.New(start)}); err != nil {
			t.Fatal(err)
		}
	}
	err := r.Store.PutStatus(t.Context(), "failed", &catalogv1.Status{State: ingestv1.State_STATE_FAILED, Epoch: 1, UpdatedAt: timestamppb.New(start)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.depth = 1
	for minute := 2; minute < 60; minute++ {
		if err := r.Pass(t.Context(), start.Add(time.Duration(minute)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if got := q.take(); !slices.Equal(got, []string{"waits:1"}) { // at the first pass it was not known which has no job
		t.Errorf("before its time: enqueued %v", got)
	}
	if err := r.Pass(t.Context(), start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := q.take(); !slices.Equal(got, []string{"failed:1"}) {
		t.Errorf("enqueued %v", got)
	}
}

// TestRequestsOfNewReposAreBulk: a request that was lost takes its turn with others of its kind.
func TestRequestsOfNewReposAreBulk(t *testing.T) {
	r, q := newReconciler(t)
	put := func(name string) {
		t.Helper()
		if _, _, err := r.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: name, RequestedAt: timestamppb.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	put("new")
	put("pushed")
	publish(t, r.Store, "pushed")
	put("pushed")
	if err := r.Pass(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if len(q.jobs) != 2 || q.jobs[0].Repo != "new" || !q.jobs[0].Bulk || q.jobs[1].Bulk {
		t.Errorf("enqueued %+v", q.jobs)
	}
}

func publish(t *testing.T, store *catalog.Store, name string) {
	t.Helper()
	lease, err := store.AcquireLease(t.Context(), name, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Publish(t.Context(), lease, lease.Root(), &catalogv1.Root{
		Repo: name, Generation: lease.NextGeneration(), Epoch: lease.Desired().GetEpoch(),
	})
	if err := errors.Join(err, lease.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func TestRunEnds(t *testing.T) {
	r, _ := newReconciler(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx)
}
