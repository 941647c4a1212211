package catalog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
)

// waitLost fails the test if a loss is not noticed within a generous limit.
func waitLost(t *testing.T, lease *catalog.Lease) {
	t.Helper()
	select {
	case <-lease.Lost():
	case <-time.After(time.Minute):
		t.Fatal("the loss of the lease was not noticed")
	}
}

func TestLeaseIsExclusive(t *testing.T) {
	s := newStore(t)
	if _, err := s.AcquireLease(t.Context(), "repo", time.Second); !errors.Is(err, catalog.ErrNotDesired) {
		t.Errorf("lease of a repo that is not desired: %v", err)
	}
	putDesired(t, s, "repo")
	lease := acquire(t, s, "repo")
	if _, err := s.AcquireLease(t.Context(), "repo", time.Second); !errors.Is(err, catalog.ErrLeased) {
		t.Errorf("second lease: %v", err)
	}
	if leased, err := s.Leased(t.Context(), "repo"); err != nil || !leased {
		t.Errorf("leased: %v, %v", leased, err)
	}
	select {
	case <-lease.Lost():
		t.Error("lost a lease that is held")
	default:
	}
	for range 2 {
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	if leased, err := s.Leased(t.Context(), "repo"); err != nil || leased {
		t.Errorf("leased after release: %v, %v", leased, err)
	}
	if next := acquire(t, s, "repo"); next.Fence() <= lease.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
	}
}

// A failed attempt must not leave an etcd lease behind that lives on.
func TestFailedAcquisitionLeavesNothing(t *testing.T) {
	s := newStore(t)
	before, err := shared.Client().Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := s.AcquireLease(t.Context(), "repo", time.Hour); err == nil {
			t.Fatal("acquired")
		}
	}
	after, err := shared.Client().Leases(t.Context())
	if err != nil || len(after.Leases) > len(before.Leases) {
		t.Errorf("%d leases before, %d after, %v", len(before.Leases), len(after.Leases), err)
	}
}

// TestLeaseOutlivesItsTTLWhileKept: a machine that stands still for the ttl loses the
// lease, but not always, however long the ttl is.
func TestLeaseOutlivesItsTTLWhileKept(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "repo")
	for ttl := time.Second; ; ttl *= 2 {
		lease, err := s.AcquireLease(t.Context(), "repo", ttl)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl + ttl/2) // etcd's clock cannot be faked
		_, err = s.Publish(t.Context(), lease, nil, nextRoot(lease))
		release(t, lease)
		if err == nil {
			return
		}
		if !errors.Is(err, catalog.ErrLeaseLost) || ttl > 5*time.Second {
			t.Fatalf("kept with a ttl of %v: %v", ttl, err)
		}
	}
}

func TestLossIsNoticed(t *testing.T) {
	losses := map[string]func(*testing.T, *catalog.Store, *gate, context.CancelFunc){
		"repo deleted": func(t *testing.T, s *catalog.Store, _ *gate, _ context.CancelFunc) {
			if _, err := s.DeleteRepo(t.Context(), "repo"); err != nil {
				t.Fatal(err)
			}
		},
		"lease revoked": func(t *testing.T, _ *catalog.Store, _ *gate, _ context.CancelFunc) { dropLease(t) },
		"etcd away":     func(t *testing.T, _ *catalog.Store, g *gate, _ context.CancelFunc) { g.shut() },
		"context ended": func(_ *testing.T, _ *catalog.Store, _ *gate, end context.CancelFunc) { end() },
	}
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			putDesired(t, s, "repo")
			g := newGate(t, shared.Endpoint())
			holder := catalog.New(connect(t, g.endpoint()), "/"+t.Name()+"/")
			ctx, end := context.WithCancel(t.Context())
			defer end()
			lease, err := holder.AcquireLease(ctx, "repo", time.Second)
			if err != nil {
				t.Fatal(err)
			}
			lose(t, s, g, end)
			waitLost(t, lease)
		})
	}
}

// A holder that is cut off loses the lease to another, and is refused when it is
// back.
func TestCutOffHolderIsFenced(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "repo")
	g := newGate(t, shared.Endpoint())
	holder := catalog.New(connect(t, g.endpoint()), "/"+t.Name()+"/")
	lease, err := holder.AcquireLease(t.Context(), "repo", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	g.shut()
	testrun.Eventually(t, "another gets the lease", func(context.Context) error {
		other, err := s.AcquireLease(t.Context(), "repo", time.Second)
		if err == nil {
			t.Cleanup(func() { release(t, other) })
		} else if !errors.Is(err, catalog.ErrLeased) {
			t.Fatal(err)
		}
		return err
	})
	g.open(t)
	if _, err := holder.Publish(t.Context(), lease, nil, nextRoot(lease)); !errors.Is(err, catalog.ErrLeaseLost) {
		t.Errorf("published by a holder that was cut off: %v", err)
	}
	waitLost(t, lease)
}
