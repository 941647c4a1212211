package indexer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/owner"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// slowBucket has the first upload wait.
type slowBucket struct {
	bucket.Bucket

	puts        atomic.Int64
	begun, goOn chan struct{}
}

func (b *slowBucket) Put(ctx context.Context, key string, r io.Reader, opts bucket.PutOptions) error {
	if key != owner.Key && b.puts.Add(1) == 1 {
		close(b.begun)
		select {
		case <-b.goOn:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return b.Bucket.Put(ctx, key, r, opts)
}

// TestCompactsAfterJobs: an indexer with a running job leaves planned compactions alone, and does
// them afterwards.
func TestCompactsAfterJobs(t *testing.T) {
	repo := gitsourcetest.New(t)
	repo.Files("main", "a", "1")
	r := newRole(t, filepath.Dir(repo.Dir))
	r.config.Compact.Every, r.config.Compact.Settle = 100*time.Millisecond, 0
	slow := &slowBucket{Bucket: r.bucket.Bucket, begun: make(chan struct{}), goOn: make(chan struct{})}
	r.bucket.Bucket = slow
	r.run()
	last := r.put("last", repo.Dir, true)
	<-slow.begun
	for i := range 10 {
		name := fmt.Sprintf("r/%d", i)
		r.wait(name, r.put(name, repo.Dir, true), ingestv1.State_STATE_PUBLISHED)
	}
	testrun.Eventually(t, "a plan", func(context.Context) error {
		if all, err := r.store.ListCompactions(t.Context()); err != nil || len(all) == 0 && r.compacted() == 0 {
			return errors.Join(err, errors.New("none"))
		}
		return nil
	})
	time.Sleep(time.Second) // ten looks for work, and more
	if n := r.compacted(); n > 0 {
		t.Errorf("%d repos were compacted during a job", n)
	}
	close(slow.goOn)
	r.wait("last", last, ingestv1.State_STATE_PUBLISHED)
	testrun.Eventually(t, "repos that share a shard", func(context.Context) error {
		if n := r.compacted(); n < 8 {
			return fmt.Errorf("%d repos", n)
		}
		return nil
	})
}

// compacted is how many repos share shards.
func (r *role) compacted() (n int) {
	r.t.Helper()
	for root, err := range r.store.ListRoots(r.t.Context()) {
		if err != nil {
			r.t.Fatal(err)
		}
		if root.Record.GetShards()[0].GetCompacted() {
			n++
		}
	}
	return n
}
