package restore_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/restore"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestSharedShards: a shard with foreign documents may have those of any repo, so every
// deletion waits for it. A shard whose foreign documents are hidden is the repo's own.
func TestSharedShards(t *testing.T) {
	w := newWorld(t)
	hidden := docstore.SetOf([]uint32{1}).Code()
	for name, shard := range map[string]*catalogv1.ShardRef{
		"shares": {Compacted: true, Documents: 4, LiveDocuments: 2, Hidden: hidden},
		"own":    {Compacted: true, Documents: 3, LiveDocuments: 2, Hidden: hidden},
		"built":  {Documents: 3, LiveDocuments: 3},
	} {
		w.publishShard(&catalogv1.Desired{Name: name, Url: "u"}, "shard of "+name, shard, false)
	}
	w.etcd()
	_, err := w.restore(restore.Restorer{})
	w.must(err)
	shared := w.root("shares").GetShards()[0].GetKey()
	for _, name := range []string{"built", "own", "shares"} {
		revision, err := w.store.DeleteRepo(t.Context(), name)
		w.must(err)
		d, err := w.store.Deletion(t.Context(), name, revision)
		w.must(err)
		if d.Packs != 1 || d.Gone() {
			t.Errorf("%s: left in %d shards that it shared, gone %v", name, d.Packs, d.Gone())
		}
	}
	for pack, err := range w.store.ListPacks(t.Context()) {
		w.must(err)
		if !pack.Record.GetUnknown() || pack.Record.GetKey() != shared {
			t.Errorf("noted is %v", pack.Record)
		}
	}
}

// TestShardsAreReadOnce: a shard of many repos is looked at and read once, not once for each.
func TestShardsAreReadOnce(t *testing.T) {
	w := newWorld(t)
	digest := sha256.Sum256([]byte("pack"))
	pack := &catalogv1.ShardRef{Key: catalog.ShardKey(1, digest), Digest: digest[:], SizeBytes: 4, Repos: 100}
	w.put(pack.Key, []byte("pack"))
	for i := range pack.Repos {
		name := fmt.Sprint("repo", i)
		manifest, err := proto.Marshal(&catalogv1.Manifest{Root: &catalogv1.Root{Repo: name, Generation: 1, Shards: []*catalogv1.ShardRef{pack}}})
		w.must(err)
		w.put(catalog.ManifestKey(1, name, 1, sha256.Sum256(manifest)), manifest)
	}
	counting, restored := &counter{Bucket: w.bucket, of: make(map[string]int)}, uint32(0)
	r := restore.Restorer{Store: w.store, Bucket: counting, Contents: true}
	w.must(r.Run(t.Context(), func(restore.Repo) error { restored++; return nil }, nil))
	if n := counting.of[pack.Key]; n != 2 || restored != pack.Repos {
		t.Errorf("%d repos restored; %d requests for their shard, want one for its size and one for its content", restored, n)
	}
}

// counter counts requests by key.
type counter struct {
	bucket.Bucket

	mu sync.Mutex
	of map[string]int
}

func (c *counter) count(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[key]++
}

func (c *counter) Get(ctx context.Context, key string) (io.ReadCloser, bucket.Info, error) {
	c.count(key)
	return c.Bucket.Get(ctx, key)
}

func (c *counter) Stat(ctx context.Context, key string) (bucket.Info, error) {
	c.count(key)
	return c.Bucket.Stat(ctx, key)
}
