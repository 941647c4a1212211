package job

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// die leaves what a dead indexer leaves of an attempt: the status, and a delivery without an
// outcome.
func (e *env) die(d *queue.Delivery, alone bool, lost uint32) {
	e.t.Helper()
	err := e.Store.PutStatus(e.t.Context(), d.Repo, &catalogv1.Status{
		State: ingestv1.State_STATE_FETCHING, Epoch: d.Epoch, Alone: alone, Lost: lost,
	}, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	d.NumDelivered++
}

// TestDeadIndexersDoNotCountAgainstJobsBesideTheKiller: a job whose indexer died of another job is
// tried alone, however often that happened, and publishes.
func TestDeadIndexersDoNotCountAgainstJobsBesideTheKiller(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	d := e.want(r.Dir)
	d.NumDelivered = 0
	for range 3 * e.Attempts {
		e.die(d, false, 0)
	}
	d.NumDelivered++
	alone := false
	e.bucket.hold = func(context.Context, string) {
		if alone = !e.turns.slots.TryAcquire(1); !alone {
			e.turns.slots.Release(1)
		}
	}
	if root := e.done(d); root.GetGeneration() != 1 {
		t.Errorf("root %v", root)
	}
	if !alone {
		t.Error("another job could run beside the one whose indexer had died")
	}
	if !e.turns.slots.TryAcquire(everySlot) || e.turns.has(repoName) {
		t.Error("the job still has its turn")
	}
	if s := e.status(); s.GetAlone() || s.GetLost() != 0 {
		t.Errorf("status %v", s)
	}
}

// TestJobThatKillsIndexersAloneIsGivenUp: a dead indexer counts only if the job was alone in it.
func TestJobThatKillsIndexersAloneIsGivenUp(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	d := e.want(r.Dir)
	e.die(d, false, 0)
	for lost := range uint32(e.Attempts) {
		lease, err := e.Store.AcquireLease(t.Context(), repoName, e.LeaseTTL)
		if err != nil {
			t.Fatal(err)
		}
		before, err := e.attemptsBefore(t.Context(), lease)
		if err != nil || !before.alone || before.lost != lost {
			t.Errorf("after %d: %+v, %v", lost, before, err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.die(d, before.alone, before.lost)
	}
	if err := e.Handle(t.Context(), d); !queue.IsPermanent(err) || !strings.Contains(e.status().GetReason(), "more memory") {
		t.Errorf("got %v, status %v", err, e.status())
	}
	// Another request has its own attempts.
	d = e.want(r.Dir, "main")
	if root := e.done(d); root.GetGeneration() != 1 {
		t.Errorf("root %v", root)
	}
}

// TestKilledGit: when the kernel kills git, another job may have taken the memory. So the next
// attempt runs alone, and only that one counts.
func TestKilledGit(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	d := e.want(r.Dir)
	d.NumDelivered = e.Attempts
	bin, path := t.TempDir(), os.Getenv("PATH")
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nkill -9 $$\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+path)
	if err := e.Handle(t.Context(), d); err == nil || queue.IsPermanent(err) {
		t.Errorf("beside other jobs: %v", err)
	}
	if s := e.status(); s.GetState() != ingestv1.State_STATE_QUEUED || !s.GetAlone() {
		t.Errorf("status %v", s)
	}
	if err := e.Handle(t.Context(), d); !queue.IsPermanent(err) || !strings.Contains(e.status().GetReason(), "fewer workers") {
		t.Errorf("alone: %v, status %v", err, e.status())
	}
}

// TestTurns: a job alone waits for the others and keeps later ones waiting, and one that
// waits ends with its context.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w turns
		begin := func(repo string, alone bool) func() {
			end, err := w.begin(t.Context(), repo, alone)
			if err != nil {
				t.Error(err)
				return func() {}
			}
			return end
		}
		one, two := begin("a", false), begin("b", false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.begin(ctx, "c", true); !errors.Is(err, context.DeadlineExceeded) || w.has("c") {
			t.Errorf("beside others: %v", err)
		}
		var order []string
		var jobs sync.WaitGroup
		jobs.Go(func() {
			end := begin("c", true)
			order = append(order, "alone")
			end()
		})
		synctest.Wait()
		jobs.Go(func() {
			end := begin("d", false)
			order = append(order, "later")
			end()
		})
		synctest.Wait()
		one()
		synctest.Wait()
		if len(order) != 0 || w.has("a") || !w.has("b") {
			t.Errorf("with one left: %v", order)
		}
		two()
		jobs.Wait()
		if !slices.Equal(order, []string{"alone", "later"}) || len(w.running) != 0 {
			t.Errorf("order %v, running %v", order, w.running)
		}
	})
}
