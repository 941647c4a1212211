package catalog_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestDeletion: a repo is gone only when every place says so: the bucket, packs made
// before the deletion, and each disk. A later repo of the same name and later packs do
// not count.
func TestDeletion(t *testing.T) {
	s := newStore(t)
	c := claim(t, s, planned(t, s, "repo"))
	note := func(c *catalog.Claim, repos ...string) string {
		key := catalog.ShardKey(c.Fence(), sha256.Sum256([]byte(repos[0])))
		if err := c.NotePack(t.Context(), &catalogv1.Pack{Key: key, Repos: repos, MadeAt: timestamppb.Now()}); err != nil {
			t.Fatal(err)
		}
		return key
	}
	shared := note(c, "other", "repo")
	note(c, "other2", "third")
	revision, err := s.DeleteRepo(t.Context(), "repo")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Done(t.Context()), c.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
	if at, err := s.DeletedAt(t.Context(), "repo"); err != nil || at != revision {
		t.Errorf("deleted at %d, %v, want %d", at, err, revision)
	}
	later := claim(t, s, planned(t, s, "repo"))
	note(later, "repo")
	now := func() *catalog.Deletion {
		t.Helper()
		d, err := s.Deletion(t.Context(), "repo", revision)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	look := func(what string, packs int, bucket, gone bool, disks ...string) {
		t.Helper()
		d := now()
		var on []string
		for _, disk := range d.Disks {
			if d.OnDisk(disk) {
				on = append(on, disk.Name)
			}
		}
		if d.Packs != packs || d.InBucket() != bucket || d.Gone() != gone || !slices.Equal(on, disks) {
			t.Errorf("%s: in %d packs, in the bucket %v, gone %v, on the disks %q", what, d.Packs, d.InBucket(), d.Gone(), on)
		}
	}
	look("at first", 1, true, false)
	for i, far := range []int64{revision - 1, revision, revision - 1} { // it never goes back
		if err := s.NoteCollection(t.Context(), &catalogv1.Collection{Deleted: far}); err != nil {
			t.Fatal(err)
		}
		look("a collection", 1, i == 0, false)
	}
	for pack, err := range s.ListPacks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if pack.Record.GetKey() == shared {
			if err := s.ForgetPack(t.Context(), pack); err != nil {
				t.Fatal(err)
			}
		}
	}
	look("without the pack", 0, false, true)
	for _, role := range []string{membership.IndexerDisk, membership.SearcherDisk} {
		cleared, ended := keepDisk(t, role)
		testrun.Until(t, role+" is known", func() bool { return len(now().Disks) == 1 })
		look(role+" that tells nothing", 0, false, false, role)
		cleared(revision - 1)
		look(role+" of before", 0, false, false, role)
		cleared(revision)
		testrun.Until(t, role+" is clear", func() bool { return now().Gone() })
		ended()
		look(role+" is away", 0, false, true)
	}
}

// keepDisk keeps the record of a disk until ended is called.
func keepDisk(t *testing.T, role string) (purged func(revision int64), ended func()) {
	ctx, cancel := context.WithCancel(t.Context())
	updates, done := make(chan *catalogv1.Disk), make(chan struct{})
	go func() {
		defer close(done)
		membership.KeepDisk(ctx, shared.Client(), "/"+t.Name()+"/", &catalogv1.Disk{Name: role, Role: role}, 5*time.Second, updates, slog.New(slog.DiscardHandler))
	}()
	return func(revision int64) { updates <- &catalogv1.Disk{Name: role, Role: role, Revision: revision} }, func() { cancel(); <-done }
}
