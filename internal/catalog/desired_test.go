package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

func TestDesiredIsStoredWithItsEpoch(t *testing.T) {
	s := newStore(t)
	want := &catalogv1.Desired{Name: "a/b", Url: "https://x", Branches: []string{"main"}, RequestedAt: timestamppb.Now(), Epoch: 99}
	for epoch := uint64(1); epoch <= 3; epoch++ {
		got, revision, err := s.PutDesired(t.Context(), want)
		if err != nil || got != epoch {
			t.Fatalf("epoch %d, %v, want %d", got, err, epoch)
		}
		stored, err := s.GetDesired(t.Context(), "a/b")
		if err != nil || stored.Revision != revision {
			t.Fatalf("stored at %d, %v, want %d", stored.Revision, err, revision)
		}
		full := proto.CloneOf(want)
		full.Epoch = epoch
		if all := stored.Record.GetPending(); uint64(len(all)) != epoch || all[epoch-1].GetEpoch() != epoch || all[epoch-1].GetAt() == nil {
			t.Errorf("requests that wait: %v", all)
		}
		stored.Record.Pending = nil
		if !proto.Equal(stored.Record, full) {
			t.Errorf("stored %v, want %v", stored.Record, full)
		}
		if now, err := s.CurrentRevision(t.Context()); err != nil || now != revision {
			t.Errorf("current revision %d, %v, want %d", now, err, revision)
		}
	}
	if want.Epoch != 99 {
		t.Error("the caller's record was changed")
	}
}

func TestConcurrentPutDesiredLosesNoEpoch(t *testing.T) {
	s := newStore(t)
	const writers, puts = 8, 8
	var mu sync.Mutex
	var epochs []uint64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range puts {
				epoch, _, err := s.PutDesired(t.Context(), &catalogv1.Desired{Name: "repo"})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				epochs = append(epochs, epoch)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(epochs)
	for i, epoch := range epochs {
		if epoch != uint64(i+1) {
			t.Fatalf("epochs are not 1 to %d, each once: %v", writers*puts, epochs)
		}
	}
	if d, err := s.GetDesired(t.Context(), "repo"); err != nil || d.Record.Epoch != writers*puts {
		t.Errorf("last epoch %d, %v", d.Record.GetEpoch(), err)
	}
}

func TestDeleteIsOneTransaction(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "repo")
	putDesired(t, s, "repo/other")
	publish(t, s, "repo")
	lease := acquire(t, s, "repo")
	if err := s.PutStatus(t.Context(), "repo", &catalogv1.Status{Epoch: 1}, lease); err != nil {
		t.Fatal(err)
	}
	before, err := s.CurrentRevision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	revision, err := s.DeleteRepo(t.Context(), "repo")
	if err != nil {
		t.Fatal(err)
	}
	changed := eventsAt(t, "/"+t.Name()+"/", before+1, revision)
	want := []string{"DELETE desired/repo", "DELETE leases/repo", "DELETE roots/repo", "DELETE status/repo", "PUT deleted/repo", "PUT roots.clock"}
	if !slices.Equal(changed, want) {
		t.Errorf("revision %d changed %q, want %q", revision, changed, want)
	}
	if _, err := s.DeleteRepo(t.Context(), "repo"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("second delete: %v", err)
	}
	if _, err := s.GetDesired(t.Context(), "repo/other"); err != nil {
		t.Errorf("another repo was deleted too: %v", err)
	}
}

// eventsAt returns what one revision changed, sorted.
func eventsAt(t *testing.T, prefix string, from, revision int64) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var changed []string
	for resp := range shared.Client().Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(from)) {
		for _, e := range resp.Events {
			if e.Kv.ModRevision == revision {
				changed = append(changed, fmt.Sprintf("%s %s", e.Type, strings.TrimPrefix(string(e.Kv.Key), prefix)))
			}
		}
		if resp.Header.Revision >= revision {
			break
		}
	}
	slices.Sort(changed)
	return changed
}

func TestEpochAndGenerationGoOnAfterDelete(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "repo")
	putDesired(t, s, "repo")
	publish(t, s, "repo")
	publish(t, s, "repo")
	for life := range uint64(3) {
		if _, err := s.DeleteRepo(t.Context(), "repo"); err != nil {
			t.Fatal(err)
		}
		if epoch := putDesired(t, s, "repo"); epoch != 3+life {
			t.Errorf("life %d starts with epoch %d, want %d", life, epoch, 3+life)
		}
		// The second life ends before anything was published in it.
		if life != 1 {
			publish(t, s, "repo")
		}
	}
	root, err := s.GetRoot(t.Context(), "repo")
	if err != nil || root.Record.Generation != 4 {
		t.Errorf("generation %d, %v, want 4", root.Record.GetGeneration(), err)
	}
}

func TestListReadsEveryPage(t *testing.T) {
	s := newStore(t)
	var want []string
	for i := range 1003 { // more than two pages
		name := fmt.Sprintf("repo%05d", i)
		want = append(want, name)
		// Straight to etcd, since a thousand calls of PutDesired take long.
		raw, _ := proto.Marshal(&catalogv1.Desired{Name: name})
		if _, err := shared.Client().Put(t.Context(), "/"+t.Name()+"/desired/"+name, string(raw)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for d, err := range s.ListDesired(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d.Record.Name)
		if len(got) == 1 {
			// A repo that is put while the list is read is newer than the list.
			putDesired(t, s, "zzz")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %d, want %d", len(got), len(want))
	}
	for range s.ListDesired(t.Context()) {
		break // stopping early must not panic
	}
	for _, err := range s.ListRoots(t.Context()) {
		t.Fatalf("roots of a catalog without any: %v", err)
	}
}

func TestBadNamesAndSizes(t *testing.T) {
	s := newStore(t)
	long := strings.Repeat("n", catalog.MaxNameBytes+1)
	for name, want := range map[string]error{"": catalog.ErrName, long: catalog.ErrTooLarge} {
		_, _, put := s.PutDesired(t.Context(), &catalogv1.Desired{Name: name})
		_, del := s.DeleteRepo(t.Context(), name)
		_, lease := s.AcquireLease(t.Context(), name, 0)
		_, read := s.GetRoot(t.Context(), name)
		_, status := s.RepoStatus(t.Context(), name)
		for i, err := range []error{put, del, lease, read, status, s.PutStatus(t.Context(), name, nil, nil)} {
			if !errors.Is(err, want) {
				t.Errorf("operation %d of a name of %d bytes: %v", i, len(name), err)
			}
		}
	}
	big := &catalogv1.Desired{Name: "big", Url: strings.Repeat("u", catalog.MaxDesiredBytes-8)}
	if n := proto.Size(big); n < catalog.MaxDesiredBytes || n > catalog.MaxDesiredBytes+8 {
		t.Fatalf("%d bytes", n)
	}
	big.Url = big.Url[proto.Size(big)-catalog.MaxDesiredBytes:]
	for range 20 { // times of requests come in addition
		if _, _, err := s.PutDesired(t.Context(), big); err != nil {
			t.Errorf("record at the limit: %v", err)
		}
	}
	big.Url += "u"
	if _, _, err := s.PutDesired(t.Context(), big); !errors.Is(err, catalog.ErrTooLarge) {
		t.Errorf("record over the limit: %v", err)
	}
}

func TestOperationsEndWithTheirContext(t *testing.T) {
	g := newGate(t, shared.Endpoint())
	client := connect(t, g.endpoint())
	g.shut()
	s := catalog.New(client, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, put := s.PutDesired(ctx, &catalogv1.Desired{Name: "r"})
	_, del := s.DeleteRepo(ctx, "r")
	_, lease := s.AcquireLease(ctx, "r", 0)
	_, now := s.CurrentRevision(ctx)
	_, status := s.RepoStatus(ctx, "r")
	for i, err := range []error{put, del, lease, now, status, s.PutStatus(ctx, "r", nil, nil)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	g.open(t)
}
