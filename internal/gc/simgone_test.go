package gc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// holder reports between its jobs that its disk has nothing of deleted repos, as an
// indexer does.
func (s *sim) holder(name string, work func(context.Context)) func(context.Context) {
	s.clear(name, 0)
	return func(ctx context.Context) {
		work(ctx)
		if revision, err := s.truth.CurrentRevision(context.Background()); err == nil {
			s.clear(name, revision)
		}
	}
}

// clear reports a disk with nothing that was not desired as of the revision.
func (w *world) clear(name string, revision int64) { w.tell(membership.IndexerDisk, name, revision) }

func (w *world) tell(role, name string, revision int64) {
	value, err := proto.Marshal(&catalogv1.Disk{Name: name, Role: role, Revision: revision})
	if err == nil {
		_, err = w.etcd.Client(nil).Put(context.Background(), catalog.DefaultPrefix+"disks/"+name, string(value))
	}
	if err != nil {
		w.t.Error(err)
	}
}

// forget ends the record of a disk, as if its lease had ended.
func (w *world) forget(name string) {
	if _, err := w.etcd.Client(nil).Delete(context.Background(), catalog.DefaultPrefix+"disks/"+name); err != nil {
		w.t.Error(err)
	}
}

// deletion is one that was acknowledged.
type deletion struct {
	repo     string
	revision int64
}

func (s *sim) noteDeletion(repo string, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deletions = append(s.deletions, deletion{repo, revision})
}

// checkGone looks in the raw contents of the bucket for what is reported gone.
func (s *sim) checkGone(when string) {
	s.mu.Lock()
	deletions := s.deletions
	s.mu.Unlock()
	for _, d := range deletions {
		got, err := s.truth.Deletion(context.Background(), d.repo, d.revision)
		if err != nil {
			s.t.Error(err)
			return
		}
		if !got.Gone() {
			continue
		}
		s.add(counts{gone: 1})
		for info, err := range s.bucket.List(context.Background(), "") {
			if err != nil {
				s.t.Error(err)
				return
			}
			if fence, ok := catalog.KeyFence(info.Key); ok && fence < d.revision && bytes.Contains(s.content(info.Key), fmt.Appendf(nil, " of %s ", d.repo)) {
				s.t.Errorf("%s: what was of %s at %d is said to be gone: %s is there", when, d.repo, d.revision, info.Key)
			}
		}
	}
}

func (w *world) content(key string) []byte {
	r, _, err := w.bucket.Get(context.Background(), key)
	if err != nil {
		return nil // deleted meanwhile
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		w.t.Error(err)
	}
	return content
}

// checkAllGone: once all is quiet, everything is gone that is not in a pack that is
// served.
func (s *sim) checkAllGone() {
	for _, name := range []string{"index0", "index1", "compact0", "compact1"} {
		revision, err := s.truth.CurrentRevision(context.Background())
		if err != nil {
			s.t.Error(err)
		}
		s.clear(name, revision)
	}
	s.pass(s.collector(s.etcd.Client(nil), s.bucket, 1_000_000))
	s.checkGone("at the end")
	for _, d := range s.deletions {
		if got, err := s.truth.Deletion(context.Background(), d.repo, d.revision); err != nil || got.InBucket() {
			s.t.Errorf("what was of %s at %d is in the bucket still, %v, %v", d.repo, d.revision, got.Collection, err)
		}
	}
}

// TestForeignObjects: while the bucket has objects of a lost etcd nothing is reported
// gone, since their contents are unknown.
func TestForeignObjects(t *testing.T) {
	synctest.Test(t, foreignObjects)
}

func foreignObjects(t *testing.T) {
	w, c := replaced(t)
	c.Hold = time.Second
	revision, err := w.truth.DeleteRepo(t.Context(), "repo")
	if err != nil {
		t.Fatal(err)
	}
	key := catalog.ShardKey(1<<40, [32]byte{1})
	if err := put(t.Context(), w.bucket, key, []byte("shard 0 of repo at 7")); err != nil {
		t.Fatal(err)
	}
	gone := func() bool {
		for range 3 {
			w.pass(c)
			time.Sleep(c.Hold + time.Second)
		}
		d, err := w.truth.Deletion(t.Context(), "repo", revision)
		if err != nil {
			t.Fatal(err)
		}
		return d.Gone()
	}
	if gone() {
		t.Error("gone, beside an object that nobody knows")
	}
	if err := w.bucket.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if !gone() {
		t.Error("not gone when nothing is left")
	}
}
