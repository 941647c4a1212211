package gc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

const (
	// hold is how long garbage waits in the tests, leaseTTL how long a lease
	// outlives its holder.
	hold     = 20 * time.Second
	leaseTTL = 5 * time.Second
)

// world is a catalog and a bucket in memory, for a bubble of synctest.
type world struct {
	t      *testing.T
	etcd   *etcdtest.Server
	bucket *bucket.Memory
	// truth reads the catalog without delay.
	truth *catalog.Store
}

func newWorld(t *testing.T) *world {
	etcd := etcdtest.New()
	return &world{t: t, etcd: etcd, bucket: bucket.NewMemory(1 << 20), truth: catalog.New(etcd.Client(nil), "")}
}

// collector makes a collector on its own way to etcd and the bucket.
func (w *world) collector(client *clientv3.Client, b bucket.Bucket, limit int) *Collector {
	return &Collector{
		Store: catalog.New(client, ""), Bucket: b, Log: slog.New(slog.DiscardHandler),
		Config: Config{Hold: hold, Limit: limit, Memory: time.Hour},
	}
}

// check fails the test if a root that is served names an object that is not there.
func (w *world) check(when string) {
	for root, err := range w.truth.ListRoots(context.Background()) {
		if err != nil {
			w.t.Errorf("%s: %v", when, err)
			return
		}
		for _, key := range keysOf(root.Record) {
			if _, err := w.bucket.Stat(context.Background(), key); err != nil {
				w.t.Errorf("%s: generation %d of %s is served: %v", when, root.Record.GetGeneration(), root.Record.GetRepo(), err)
			}
		}
	}
}

// live lists the objects that the roots name, in order.
func (w *world) live() (keys []string) {
	for root, err := range w.truth.ListRoots(context.Background()) {
		if err != nil {
			w.t.Error(err)
		}
		keys = append(keys, keysOf(root.Record)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys) // one shard may be in several roots
}

// stored lists the objects that are there, in order.
func (w *world) stored() (keys []string) {
	for info, err := range w.bucket.List(context.Background(), "") {
		if err != nil {
			w.t.Error(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// checkClean fails the test unless, once all leases are over, two passes with
// the hold between them leave what is served and nothing else.
func (w *world) checkClean() {
	time.Sleep(leaseTTL + time.Second)
	c := w.collector(w.etcd.Client(nil), w.bucket, 1_000_000)
	for range 2 {
		if _, err := c.Pass(context.Background()); err != nil {
			w.t.Error(err)
		}
		time.Sleep(hold + time.Second)
	}
	last, err := c.Pass(context.Background())
	if err != nil || last.Deleted.Objects > 0 || last.Condemned.Objects > 0 || last.Waiting.Objects > 0 || last.Spared > 0 {
		w.t.Errorf("a third pass has something to do: %+v, %v", last, err)
	}
	if got, want := w.stored(), w.live(); !slices.Equal(got, want) {
		w.t.Errorf("left are %q, served are %q", got, want)
	}
	w.check("at the end")
}

func keysOf(root *catalogv1.Root) []string {
	keys := []string{root.GetManifestKey()}
	for _, s := range root.GetShards() {
		keys = append(keys, s.GetKey())
	}
	return keys
}

// want makes a repo desired.
func (w *world) want(repo string) {
	if _, _, err := w.truth.PutDesired(context.Background(), &catalogv1.Desired{Name: repo}); err != nil {
		w.t.Error(err)
	}
}

// attempt does an indexer's work under a lease: it makes n shards, in addition to the
// first kept ones of the root that it replaces, and the manifest. The same generation
// always has the same contents. Like an indexer, attempt repeats a publication that
// may not have been refused.
func attempt(ctx context.Context, b bucket.Bucket, lease *catalog.Lease, n, kept int) (*catalogv1.Root, error) {
	root := &catalogv1.Root{Repo: lease.Desired().GetName(), Generation: lease.NextGeneration(), Epoch: lease.Desired().GetEpoch()}
	if old := lease.Root(); old != nil {
		root.Shards = append(root.Shards, old.Record.Shards[:min(kept, len(old.Record.Shards))]...)
	}
	for i := range n {
		content := fmt.Appendf(nil, "shard %d of %s at %d", i, root.Repo, root.Generation)
		digest := sha256.Sum256(content)
		key := catalog.ShardKey(lease.Fence(), digest)
		if err := put(ctx, b, key, content); err != nil {
			return nil, err
		}
		root.Shards = append(root.Shards, &catalogv1.ShardRef{Digest: digest[:], Key: key, SizeBytes: uint64(len(content))})
	}
	manifest := fmt.Appendf(nil, "manifest of %s at %d", root.Repo, root.Generation)
	digest := sha256.Sum256(manifest)
	root.ManifestKey, root.ManifestDigest = catalog.ManifestKey(lease.Fence(), root.Repo, root.Generation, digest), digest[:]
	return root, put(ctx, b, root.ManifestKey, manifest)
}

func put(ctx context.Context, b bucket.Bucket, key string, content []byte) error {
	err := b.Put(ctx, key, bytes.NewReader(content), bucket.PutOptions{
		Size: int64(len(content)), SHA256: sha256.Sum256(content), IfAbsent: true,
	})
	if errors.Is(err, bucket.ErrExists) {
		return nil
	}
	return err
}

// watched is a bucket that calls something before and after every operation.
type watched struct {
	bucket.Bucket

	before, after func(op string) error
}

func (b watched) Put(ctx context.Context, key string, r io.Reader, opts bucket.PutOptions) error {
	return b.do("put", func() error { return b.Bucket.Put(ctx, key, r, opts) })
}

func (b watched) Delete(ctx context.Context, key string) error {
	return b.do("delete", func() error { return b.Bucket.Delete(ctx, key) })
}

func (b watched) List(ctx context.Context, prefix string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		if err := b.before("list " + prefix); err != nil {
			yield(bucket.Info{}, err)
			return
		}
		for info, err := range b.Bucket.List(ctx, prefix) {
			if !yield(info, err) {
				return
			}
		}
	}
}

func (b watched) do(op string, do func() error) error {
	if err := b.before(op); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return b.after(op)
}
