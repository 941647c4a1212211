package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/bucket/buckettest"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gc"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// hold is how long garbage is kept in these tests. No query here takes longer.
const hold = 2 * time.Second

// unsteady is a bucket that calls a function before each deletion, which may fail it.
type unsteady struct {
	bucket.Bucket

	before func() error
}

// Delete implements bucket.Bucket.
func (b unsteady) Delete(ctx context.Context, key string) error {
	if err := b.before(); err != nil {
		return err
	}
	return b.Bucket.Delete(ctx, key)
}

// collector returns a collector in this process, on the real etcd and S3 server. It calls
// the function before each deletion, and an error fails the deletion.
func (c *cluster) collector(before func() error) *gc.Collector {
	c.t.Helper()
	var cfg bucket.Config
	cfg.SetDefaults()
	o := &c.objects
	cfg.URL = fmt.Sprintf("s3://%s?endpoint=%s&region=%s", o.bucket, o.admin.EndpointURL(), o.region)
	cfg.CredentialsFile = buckettest.Credentials(c.t, o.access, o.secret)
	s3, err := bucket.Open(c.t.Context(), cfg)
	c.must(err)
	c.t.Cleanup(func() { c.must(bucket.Close(s3)) })
	store, _ := c.catalog()
	return &gc.Collector{
		Store: store, Bucket: unsteady{s3, before}, Log: slog.New(slog.DiscardHandler),
		Config: gc.Config{Hold: hold, Limit: 1000, Memory: time.Hour},
	}
}

// findings counts the problems that an audit finds, contents included.
func (c *cluster) findings(g *gc.Collector) map[gc.Problem]int {
	c.t.Helper()
	found := map[gc.Problem]int{}
	well, err := g.Audit(c.t.Context(), true, func(f gc.Finding) error {
		found[f.Problem]++
		return nil
	})
	c.must(err)
	c.t.Logf("%d objects are well, others are %v", well.Objects, found)
	return found
}

// orphan leaves an object in the bucket like an indexer that dies after an upload.
func (c *cluster) orphan(g *gc.Collector, r *repository) {
	c.t.Helper()
	lease, err := g.Store.AcquireLease(c.t.Context(), r.name, time.Second)
	c.must(err)
	content := []byte("never published")
	digest := sha256.Sum256(content)
	c.must(g.Bucket.Put(c.t.Context(), catalog.ShardKey(lease.Fence(), digest), bytes.NewReader(content),
		bucket.PutOptions{Size: int64(len(content)), SHA256: digest, IfAbsent: true}))
	c.must(lease.Release(c.t.Context()))
}

// collect runs passes until nothing is left to do, and returns the number of deleted objects.
func (c *cluster) collect(g *gc.Collector) (deleted int) {
	c.t.Helper()
	testrun.Eventually(c.t, "all garbage is collected", func(ctx context.Context) error {
		report, err := g.Pass(ctx)
		deleted += report.Deleted.Objects
		if err == nil && report.Condemned.Objects+report.Waiting.Objects+report.Deleted.Objects > 0 {
			time.Sleep(hold)
			err = fmt.Errorf("%+v", report)
		}
		return err
	})
	return deleted
}

var errBroken = errors.New("broken off")

// TestGarbageOnS3: replaced generations, a deleted repo and an abandoned upload disappear
// from a real S3 server, although the first passes break off in the middle of their
// deletions. All that is served stays, byte for byte.
func TestGarbageOnS3(t *testing.T) {
	c := newCluster(t, layout{})
	repos := c.newRepositories("repo", 4)
	c.index(repos...)
	for _, r := range repos {
		r.commit(c.rng, 3, 20)
	}
	c.index(repos...)
	gone, repos := repos[3], repos[:3]
	_, err := c.clients[0].ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: gone.name})
	c.must(err)

	var steps, broken atomic.Int64 // a pass breaks off after steps deletions
	g := c.collector(func() error {
		if steps.Add(-1) < 0 {
			return errBroken
		}
		return nil
	})
	c.orphan(g, repos[0])
	// Four manifests of replaced generations and at least one shard, since new repos may share one; a shard and a manifest of the deleted repo; the
	// orphan.
	if found := c.findings(g); found[gc.Orphan] < 8 || len(found) != 1 {
		t.Fatalf("before: %v", found)
	}
	for range 4 {
		steps.Store(2)
		if _, err := g.Pass(t.Context()); errors.Is(err, errBroken) {
			broken.Add(1)
		} else {
			c.must(err)
		}
		time.Sleep(hold)
	}
	steps.Store(1_000_000)
	c.collect(g)
	if found := c.findings(g); len(found) > 0 || broken.Load() == 0 {
		t.Errorf("after: %v; %d passes were broken off", found, broken.Load())
	}
	c.expect(repos...)
}

// TestCollectorPausedBeforeDeleting: a collector hangs between its decision and its
// deletions, while every repo is published anew and a repo appears that it has never seen.
// Nothing that it deletes in the end is needed.
func TestCollectorPausedBeforeDeleting(t *testing.T) {
	c := newCluster(t, layout{indexers: 2})
	repos := c.newRepositories("repo", 3)
	c.index(repos...)
	repos[0].commit(c.rng, 3, 20)
	c.index(repos[0])

	reached, goOn := make(chan struct{}), make(chan struct{})
	reach, release := sync.OnceFunc(func() { close(reached) }), sync.OnceFunc(func() { close(goOn) })
	defer release()
	g := c.collector(func() error {
		reach()
		<-goOn
		return nil
	})
	_, err := g.Pass(t.Context())
	c.must(err)
	time.Sleep(hold + 2*time.Second) // etcd ends holds within a moment
	ended := make(chan error, 1)
	go func() {
		_, err := g.Pass(context.WithoutCancel(t.Context()))
		ended <- err
	}()
	<-reached
	fresh := c.newRepositories("fresh", 1)
	for range 2 {
		for _, r := range repos {
			r.commit(c.rng, 3, 20)
		}
		c.index(append(fresh, repos...)...)
	}
	release()
	c.must(<-ended)
	if found := c.findings(g); found[gc.Missing]+found[gc.WrongSize]+found[gc.WrongDigest]+found[gc.Unknown] > 0 {
		t.Errorf("a collector that paused has done harm: %v", found)
	}
	c.expect(append(fresh, repos...)...)
}
