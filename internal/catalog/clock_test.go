package catalog

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/testrun"
)

// slowRead stands for etcd: a read answers with the revision at its beginning,
// the oldest that a linearizable read may answer with.
type slowRead struct {
	revision atomic.Int64
	running  atomic.Int32
	reads    atomic.Int32
	overlap  atomic.Bool
	took     func() time.Duration
	// ahead is how much earlier than its caller etcd sees a deadline.
	ahead time.Duration
	rng   *rand.Rand
}

func (r *slowRead) read(ctx context.Context) (int64, error) {
	r.reads.Add(1)
	if r.running.Add(1) > 1 {
		r.overlap.Store(true)
	}
	defer r.running.Add(-1)
	now := r.revision.Load()
	if deadline, ok := ctx.Deadline(); ok && r.ahead > 0 {
		early, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(-r.ahead))
		defer cancel()
		select {
		case <-time.After(r.took()):
			return now, nil
		case <-early.Done():
			return 0, status.Error([]codes.Code{codes.Canceled, codes.DeadlineExceeded}[r.rng.IntN(2)], "its clock is ahead")
		}
	}
	select {
	case <-time.After(r.took()):
		return now, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func TestNoCallerGetsAnEarlierRead(t *testing.T) {
	t.Run("", func(t *testing.T) { noCallerGetsAnEarlierRead(t, 0) })
	t.Run("etcd's clock is ahead", func(t *testing.T) { noCallerGetsAnEarlierRead(t, time.Millisecond) })
}

func noCallerGetsAnEarlierRead(t *testing.T, ahead time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		rng := testrun.Rand(t)
		short := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
		r := &slowRead{ahead: ahead, rng: rng, took: func() time.Duration { return short(10 * time.Millisecond) }}
		c := &clock{read: r.read}
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 2000 {
				time.Sleep(short(time.Millisecond))
				r.revision.Add(1)
			}
		})
		for range 20 {
			wg.Go(func() {
				for range 50 {
					time.Sleep(short(20 * time.Millisecond))
					ctx, cancel := context.WithTimeout(t.Context(), short(40*time.Millisecond))
					known := r.revision.Load()
					got, err := c.now(ctx)
					if err == nil && got < known {
						t.Errorf("got %d although %d was there before the call", got, known)
					}
					deadline, _ := ctx.Deadline()
					if err != nil && ctx.Err() == nil && time.Until(deadline) > ahead {
						t.Errorf("another caller's end reached this one: %v", err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if r.overlap.Load() {
			t.Error("two reads ran at once")
		}
	})
}

func TestCallersShareReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &slowRead{took: func() time.Duration { return time.Second }}
		c := &clock{read: r.read}
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if _, err := c.now(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		// The first caller's, and one for all who came while it ran.
		if n := r.reads.Load(); n != 2 {
			t.Errorf("%d reads for 100 callers, want 2", n)
		}
	})
}

func TestLeaderThatLeavesIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &slowRead{took: func() time.Duration { return time.Second }}
		c := &clock{read: r.read}
		var wg sync.WaitGroup
		// The first leaves while its read runs, the second while it waits to lead.
		for i, patience := range []time.Duration{500 * time.Millisecond, 100 * time.Millisecond} {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, err := c.now(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("caller %d: %v", i, err)
				}
			})
		}
		for range 5 {
			wg.Go(func() {
				time.Sleep(10 * time.Millisecond)
				if _, err := c.now(t.Context()); err != nil {
					t.Errorf("caller that stayed: %v", err)
				}
			})
		}
		wg.Wait()
	})
}

func TestFailedReadIsToldToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		c := &clock{read: func(context.Context) (int64, error) { time.Sleep(time.Second); return 0, broken }}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := c.now(t.Context()); !errors.Is(err, broken) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}
