package restore_test

import (
	"testing"

	"github.com/trawl-search/trawl/index/docstore"
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
