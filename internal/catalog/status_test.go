package catalog_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// slowKV is an etcd whose transactions take a second and fail.
type slowKV struct {
	clientv3.KV
	asked atomic.Int64
}

type slowTxn struct {
	clientv3.Txn
	of *slowKV
}

func (k *slowKV) Txn(context.Context) clientv3.Txn { return slowTxn{of: k} }

func (t slowTxn) Then(...clientv3.Op) clientv3.Txn { return t }

func (t slowTxn) Commit() (*clientv3.TxnResponse, error) {
	t.of.asked.Add(1)
	time.Sleep(time.Second)
	return nil, errors.New("it is slow")
}

// TestStatusesAreReadWithinBounds: however many ask how far repos are, etcd is asked by few of them at once. Who waits
// ends with its context.
func TestStatusesAreReadWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &slowKV{}
		store := catalog.New(&clientv3.Client{KV: etcd}, "")
		var asking sync.WaitGroup
		for range 100 {
			asking.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer cancel()
				_, _ = store.RepoStatus(ctx, "r")
			})
		}
		for second, want := range []int64{8, 16, 16} {
			if synctest.Wait(); etcd.asked.Load() != want {
				t.Errorf("in second %d etcd has been asked %d times", second, etcd.asked.Load())
			}
			time.Sleep(time.Second)
		}
		asking.Wait()
	})
}

func putStatus(t *testing.T, s *catalog.Store, name string, status *catalogv1.Status) {
	t.Helper()
	if err := s.PutStatus(t.Context(), name, status, nil); err != nil {
		t.Fatal(err)
	}
}

func TestDesiredNames(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"b", "a/c", "a"} {
		putDesired(t, s, name)
	}
	if names, more, err := s.DesiredNames(t.Context()); err != nil || more || !slices.Equal(names, []string{"a", "a/c", "b"}) {
		t.Errorf("%v, %v, %v", names, more, err)
	}
	for i := range 1000 {
		putDesired(t, s, fmt.Sprintf("c/%04d", i))
	}
	if names, more, err := s.DesiredNames(t.Context()); err != nil || !more || len(names) != 1000 || names[999] != "c/0996" {
		t.Errorf("of 1003: %d, %v, %v", len(names), more, err)
	}
}

func TestStatusIsOfTheNewestEpoch(t *testing.T) {
	s := newStore(t)
	if err := s.PutStatus(t.Context(), "repo", &catalogv1.Status{}, nil); !errors.Is(err, catalog.ErrNotDesired) {
		t.Errorf("status of a repo that is not desired: %v", err)
	}
	putDesired(t, s, "repo")
	putStatus(t, s, "repo", &catalogv1.Status{Epoch: 2, Attempts: 1})
	putStatus(t, s, "repo", &catalogv1.Status{Epoch: 2, Attempts: 2})
	if err := s.PutStatus(t.Context(), "repo", &catalogv1.Status{Epoch: 1}, nil); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("status of an older epoch: %v", err)
	}
	if status, err := s.GetStatus(t.Context(), "repo"); err != nil || status.Record.Attempts != 2 {
		t.Errorf("stored %v, %v", status.Record, err)
	}
	lease := acquire(t, s, "repo")
	if err := s.PutStatus(t.Context(), "repo", &catalogv1.Status{Epoch: 3}, lease); err != nil {
		t.Errorf("status under a lease: %v", err)
	}
	dropLease(t)
	if err := s.PutStatus(t.Context(), "repo", &catalogv1.Status{Epoch: 3}, lease); !errors.Is(err, catalog.ErrLeaseLost) {
		t.Errorf("status of a job that lost its lease: %v", err)
	}
}

func TestComposedStatus(t *testing.T) {
	s := newStore(t)
	expect := func(what string, state ingestv1.State, epoch, published, generation uint64, reason string) {
		t.Helper()
		got, err := s.RepoStatus(t.Context(), "repo")
		if err != nil {
			t.Fatal(err)
		}
		if got.State != state || got.Epoch != epoch || got.PublishedEpoch != published || got.Generation != generation || got.Reason != reason {
			t.Errorf("%s: %v", what, got)
		}
		if hasToken := len(got.RevisionToken) > 0; hasToken != (generation > 0) {
			t.Errorf("%s: token %x", what, got.RevisionToken)
		}
	}
	if _, err := s.RepoStatus(t.Context(), "repo"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("never put: %v", err)
	}
	putDesired(t, s, "repo")
	expect("put", ingestv1.State_STATE_QUEUED, 1, 0, 0, "")
	putStatus(t, s, "repo", &catalogv1.Status{Epoch: 1, State: ingestv1.State_STATE_BUILDING})
	expect("building", ingestv1.State_STATE_BUILDING, 1, 0, 0, "")
	putStatus(t, s, "repo", &catalogv1.Status{Epoch: 1, State: ingestv1.State_STATE_PUBLISHED})
	expect("claims to be published", ingestv1.State_STATE_QUEUED, 1, 0, 0, "")
	putStatus(t, s, "repo", &catalogv1.Status{Epoch: 1, State: ingestv1.State_STATE_QUEUED, Reason: "disk full, will be tried again"})
	expect("tried in vain", ingestv1.State_STATE_QUEUED, 1, 0, 0, "disk full, will be tried again")
	putStatus(t, s, "repo", &catalogv1.Status{Epoch: 1, State: ingestv1.State_STATE_FAILED, Reason: "no"})
	expect("failed", ingestv1.State_STATE_FAILED, 1, 0, 0, "no")
	putDesired(t, s, "repo")
	expect("put again", ingestv1.State_STATE_QUEUED, 2, 0, 0, "")
	revision := publish(t, s, "repo")
	expect("published", ingestv1.State_STATE_PUBLISHED, 2, 2, 1, "")
	if got, _ := s.RepoStatus(t.Context(), "repo"); !slices.Equal(got.GetRevisionToken(), catalog.EncodeToken(revision)) {
		t.Errorf("token %x is not that of the publication at %d", got.GetRevisionToken(), revision)
	}
	putDesired(t, s, "repo")
	putStatus(t, s, "repo", &catalogv1.Status{Epoch: 3, State: ingestv1.State_STATE_FAILED, Reason: "gone"})
	expect("failed, earlier generation served", ingestv1.State_STATE_FAILED, 3, 2, 1, "gone")
}

func TestListRepoStatusPages(t *testing.T) {
	s := newStore(t)
	var names []string
	for i := range 7 {
		for _, group := range []string{"a/", "b/", "b0"} {
			names = append(names, fmt.Sprintf("%s%d", group, i))
		}
	}
	for _, name := range names {
		putDesired(t, s, name)
	}
	publish(t, s, "b/3")
	slices.Sort(names)
	for _, prefix := range []string{"", "a", "b/", "b", "nothing"} {
		for _, limit := range []int{0, 1, 3, 100} {
			for _, start := range []string{"", "a/6", "b/2", "zz"} {
				var want, got []string
				for _, name := range names {
					if strings.HasPrefix(name, prefix) && name > start {
						want = append(want, name)
					}
				}
				for after, more := start, true; more; {
					page, next, err := s.ListRepoStatus(t.Context(), prefix, after, limit)
					if err != nil {
						t.Fatal(err)
					}
					if limit > 0 && len(page) > limit || next && len(page) == 0 {
						t.Fatalf("page of %d, more %v", len(page), next)
					}
					for _, repo := range page {
						got = append(got, repo.Name)
						after = repo.Name
						if (repo.Generation == 1) != (repo.Name == "b/3") {
							t.Errorf("%v", repo)
						}
					}
					more = next
				}
				if !slices.Equal(got, want) {
					t.Errorf("prefix %q, limit %d, after %q: %q, want %q", prefix, limit, start, got, want)
				}
			}
		}
	}
}

// pull reads the next status or fails.
func pull(t *testing.T, next func() (*ingestv1.RepoStatus, error, bool)) *ingestv1.RepoStatus {
	t.Helper()
	status, err, ok := next()
	if err != nil || !ok {
		t.Fatalf("watch ended: %v", err)
	}
	return status
}

func TestWatchRepoTellsEveryState(t *testing.T) {
	s := newStore(t)
	for _, err := range s.WatchRepo(t.Context(), "repo") {
		if !errors.Is(err, catalog.ErrNotFound) {
			t.Fatalf("watch of a repo that was never put: %v", err)
		}
	}
	putDesired(t, s, "repo")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	next, stop := iter.Pull2(s.WatchRepo(ctx, "repo"))
	defer stop()
	until := func(state ingestv1.State, act func()) {
		t.Helper()
		act()
		for {
			if status := pull(t, next); status.State == state {
				return
			}
		}
	}
	until(ingestv1.State_STATE_QUEUED, func() {})
	until(ingestv1.State_STATE_BUILDING, func() {
		putStatus(t, s, "repo", &catalogv1.Status{Epoch: 1, State: ingestv1.State_STATE_BUILDING})
	})
	until(ingestv1.State_STATE_PUBLISHED, func() { publish(t, s, "repo") })
	until(ingestv1.State_STATE_DELETED, func() {
		if _, err := s.DeleteRepo(t.Context(), "repo"); err != nil {
			t.Fatal(err)
		}
	})
	until(ingestv1.State_STATE_QUEUED, func() { putDesired(t, s, "repo") })
	cancel()
	if status, err, ok := next(); ok {
		t.Errorf("after the context ended: %v, %v", status, err)
	}
}

// What a watcher sees never goes back and never repeats, even across a restart of
// etcd.
func TestWatchRepoSurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	etcd, err := embedded.StartEtcd(t.Context(), etcdConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	s := catalog.New(connect(t, etcd.Endpoint()), "")
	putDesired(t, s, "repo")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := make(chan *ingestv1.RepoStatus, 100)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for status, err := range s.WatchRepo(ctx, "repo") {
			if err != nil {
				t.Error(err)
				return
			}
			seen <- status
		}
	}()
	<-seen
	if err := etcd.Close(); err != nil {
		t.Fatal(err)
	}
	if etcd, err = embedded.StartEtcd(t.Context(), etcdConfig(dir)); err != nil {
		t.Fatal(err)
	}
	publish(t, s, "repo")
	var last *ingestv1.RepoStatus
	for last.GetGeneration() != 1 {
		select {
		case status := <-seen:
			if proto.Equal(status, last) || cmp.Less(status.PublishedEpoch, last.GetPublishedEpoch()) {
				t.Errorf("%v after %v", status, last)
			}
			last = status
		case <-ctx.Done():
			t.Fatal("the publication was not seen")
		}
	}
	cancel()
	<-watched
	if err := etcd.Close(); err != nil {
		t.Fatal(err)
	}
}
