package gc

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/testrun"
)

// lateLists is a bucket that lists what it had a while ago: what was put since is missing, and what was deleted since is there.
type lateLists struct {
	bucket.Bucket

	mu sync.Mutex
	// had are the objects at each second until that time.
	had [][]bucket.Info
}

// note notes what there is every second until ctx ends. Lists are that many seconds late.
func (b *lateLists) note(ctx context.Context, seconds int) {
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		var now []bucket.Info
		for info := range b.Bucket.List(ctx, "") {
			now = append(now, info)
		}
		b.mu.Lock()
		if b.had = append(b.had, now); len(b.had) > seconds {
			b.had = b.had[1:]
		}
		b.mu.Unlock()
	}
}

// List implements bucket.Bucket.
func (b *lateLists) List(_ context.Context, prefix string) iter.Seq2[bucket.Info, error] {
	b.mu.Lock()
	defer b.mu.Unlock()
	then := b.had[0]
	return func(yield func(bucket.Info, error) bool) {
		for _, info := range then {
			if strings.HasPrefix(info.Key, prefix) && !yield(info, nil) {
				return
			}
		}
	}
}

// TestBucketListsLate: a bucket lists half a minute late. What is served stays, whatever the lists say, and what is garbage goes once they say so.
func TestBucketListsLate(t *testing.T) {
	rng := testrun.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		late := &lateLists{Bucket: w.bucket}
		ctx, cancel := context.WithCancel(t.Context())
		var noting sync.WaitGroup
		noting.Go(func() { late.note(ctx, 30) })
		synctest.Wait()
		c := w.collector(w.etcd.Client(nil), late, 1000)
		c.Log = slog.New(slog.DiscardHandler)
		deleted := 0
		pass := func() {
			t.Helper()
			time.Sleep(time.Duration(1+rng.IntN(25)) * time.Second)
			report := w.pass(c)
			if deleted += report.Deleted.Objects; report.Spared > 0 {
				t.Errorf("%d objects were condemned and are in use", report.Spared)
			}
			w.check("after a pass")
		}
		w.want("repo")
		for range 40 {
			w.publish("repo", 1+rng.IntN(3))
			for range rng.IntN(3) {
				pass()
			}
		}
		if deleted < 20 {
			t.Errorf("%d objects were deleted meanwhile: this shows nothing", deleted)
		}
		if _, err := w.truth.DeleteRepo(ctx, "repo"); err != nil {
			t.Error(err)
		}
		w.want("other")
		w.publish("other", 2)
		for range 10 {
			pass()
		}
		if got, want := w.stored(), w.live(); !slices.Equal(got, want) {
			t.Errorf("left are %q, served are %q", got, want)
		}
		cancel()
		noting.Wait()
	})
}
