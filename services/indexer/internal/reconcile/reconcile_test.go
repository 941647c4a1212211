package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noted is a queue that only notes what is put into it.
type noted struct {
	jobs []queue.Job
	err  error
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
		Dir: t.TempDir(), Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	q := &noted{}
	return &Reconciler{
		Store: catalog.New(e.Client(), ""), Queue: q, Every: time.Minute, RetryFailed: time.Hour, Log: slog.New(slog.DiscardHandler),
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
