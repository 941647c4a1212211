package job

import (
	"bytes"
	"context"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/internal/gitsource"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

const (
	// smallRepo is the size in bytes, of the documents in memory and of the mirror on disk, up to
	// which a new repo shares a shard. A pack thus has at least eight repos, or nothing else waits.
	smallRepo = packBytes / 8
	// documentBytes is about what a document takes in memory besides its path and content.
	documentBytes = 256
)

// mayShare reports whether the repo may share a shard with others: it is new and looks small. If it
// was attempted before and may have killed its indexer, it stays alone.
func (t *task) mayShare(dir string, src gitsource.Source) bool {
	return t.lease.Root() == nil && !t.alone && int64(src.Total())*documentBytes <= t.smallRepo() && folderSize(dir) <= smallRepo
}

func (t *task) smallRepo() int64 {
	if most := t.Build.MaxSourceBytes; most > 0 {
		return min(most, smallRepo)
	}
	return smallRepo
}

// buildSmall puts the documents of src into a shard together with those of other repos. If there
// turn out to be too many of them, small is false, and src is partly read.
func (t *task) buildSmall(ctx context.Context, src gitsource.Source) (small bool, result shardio.Result, err error) {
	m := &member{lease: t.lease}
	m.Repo = t.repo(src)
	for doc, err := range src.Documents(ctx) {
		if err != nil {
			return false, result, err
		}
		if m.bytes += int64(len(doc.Path)+len(doc.Content)) + documentBytes; m.bytes > t.smallRepo() {
			return false, result, nil
		}
		m.Docs = append(m.Docs, keep(doc))
	}
	sketch := m.Sketch()
	if err := t.packs.join(ctx, t.Worker, m); err != nil {
		return true, result, err
	}
	t.member = m
	ref, err := m.await(ctx, t.delivery)
	if err != nil {
		return true, result, err
	}
	return true, shardio.Result{
		Shards: []*catalogv1.ShardRef{ref}, Documents: ref.GetLiveDocuments(),
		Skipped: ref.GetLiveSkippedDocuments(), ContentBytes: ref.GetLiveContentBytes(), Sketch: sketch,
	}, nil
}

// keep returns a copy of a document that stays valid.
func keep(d *build.Document) build.Document {
	kept := *d
	kept.Path, kept.Content, kept.OID = bytes.Clone(d.Path), bytes.Clone(d.Content), bytes.Clone(d.OID)
	return kept
}
