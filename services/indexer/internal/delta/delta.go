// Package delta works out what becomes of the published shards of a repo when
// some of its paths changed: they stay as they are, and the next root says which
// of their documents are not served any more.
package delta

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/docset"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// ErrCrowded is the error of Hide when a root cannot name all that is hidden.
var ErrCrowded = errors.New("too many documents are hidden")

// Counted says whether the root of a shard counts what is served of it: that of an
// earlier version does not.
func Counted(ref *catalogv1.ShardRef) bool {
	return ref.GetLiveDocuments() > 0 || ref.GetDocuments() == 0
}

// atOnce is how many shards are read at a time.
const atOnce = 8

// Hide returns the refs of a repo's shards, which are counted, with the documents at paths, which
// ascend, hidden, in the same order; shards of which nothing is served any more
// are left out. It makes sure that the bucket has all of them, and reads of each a
// few hundred KiB and what finding the paths takes. Errors are ErrCrowded, and those
// of reading: *bucket.Error, format.ErrCorrupt.
func Hide(ctx context.Context, b bucket.Bucket, repo string, refs []*catalogv1.ShardRef, paths []string) ([]*catalogv1.ShardRef, error) {
	next := make([]*catalogv1.ShardRef, len(refs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, ref := range refs {
		group.Go(func() (err error) {
			next[i], err = hide(ctx, b, repo, ref, paths)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var left []*catalogv1.ShardRef
	size := 0
	for _, ref := range next {
		if ref.GetLiveDocuments() == 0 {
			continue
		}
		left = append(left, ref)
		if size += len(ref.GetHidden()); size > docset.MaxBytes {
			return nil, fmt.Errorf("%w: %d bytes in all", ErrCrowded, size)
		}
	}
	return left, nil
}

func hide(ctx context.Context, b bucket.Bucket, repo string, ref *catalogv1.ShardRef, paths []string) (*catalogv1.ShardRef, error) {
	info, err := b.Stat(ctx, ref.GetKey())
	if err != nil {
		return nil, fmt.Errorf("look for shard: %w", err)
	}
	if info.Size != int64(ref.GetSizeBytes()) {
		return nil, fmt.Errorf("shard %s has %d bytes, %d are wanted: %w", ref.GetKey(), info.Size, ref.GetSizeBytes(), format.ErrCorrupt)
	}
	if len(paths) == 0 || ref.GetDocuments() == 0 {
		return ref, nil
	}
	set, err := docset.Parse(ref.GetHidden())
	if err != nil {
		return nil, fmt.Errorf("read root of %s: %w", repo, err)
	}
	next := proto.CloneOf(ref)
	err = withDocs(ctx, b, ref, func(docs *docstore.Docs) error {
		i, ok, err := docs.FindRepo(repo)
		if err != nil || !ok {
			return err
		}
		l := layer{docs: docs, repo: i, hidden: set}
		return l.hide(next, paths)
	})
	if err != nil {
		return nil, fmt.Errorf("read shard %s: %w", ref.GetKey(), err)
	}
	return next, nil
}

// layer is what a shard holds of a repo.
type layer struct {
	docs   *docstore.Docs
	repo   int
	first  uint32 // of the repo's documents
	hidden docset.Set
}

// hide adds to what is hidden, and takes it off what ref counts.
func (l *layer) hide(ref *catalogv1.ShardRef, paths []string) error {
	first, n, err := l.docs.RepoDocs(l.repo)
	if err != nil {
		return err
	}
	l.first = first
	var gone []uint32
	for _, path := range paths {
		doc, ok, err := l.docs.FindPath(l.repo, []byte(path))
		if err != nil {
			return err
		}
		for ; ok && doc < first+n; doc++ {
			have, err := l.docs.AppendPath(nil, doc)
			if err != nil {
				return err
			}
			if string(have) != path {
				break
			}
			if !l.hidden.Has(doc - first) {
				gone = append(gone, doc-first)
			}
		}
	}
	if len(gone) == 0 {
		return nil
	}
	l.hidden = l.hidden.With(gone...)
	ref.Hidden = l.hidden.Code()
	return l.count(ref, gone)
}

// count takes documents that are hidden now off what is served of the shard.
func (l *layer) count(ref *catalogv1.ShardRef, gone []uint32) error {
	ref.LiveDocuments -= min(ref.LiveDocuments, uint64(len(gone)))
	dropped := make(map[uint32]bool)
	for _, number := range gone {
		doc := l.first + number
		skip, err := l.docs.Skip(doc)
		if err != nil {
			return err
		}
		if skip != docstore.NotSkipped {
			ref.LiveSkippedDocuments -= min(ref.LiveSkippedDocuments, 1)
			continue
		}
		blob, err := l.docs.Blob(doc)
		if err != nil {
			return err
		}
		if dropped[blob] {
			continue
		}
		dropped[blob] = true
		used, err := l.used(blob)
		if err != nil {
			return err
		}
		if !used {
			size, err := l.docs.Size(doc)
			if err != nil {
				return err
			}
			ref.LiveContentBytes -= min(ref.LiveContentBytes, size)
		}
	}
	return nil
}

// used says whether a document of the repo that is served has the blob.
func (l *layer) used(blob uint32) (bool, error) {
	for doc, err := range l.docs.DocsOf(blob) {
		if err != nil {
			return false, err
		}
		repo, err := l.docs.RepoOf(doc)
		if err != nil {
			return false, err
		}
		if repo == l.repo && !l.hidden.Has(doc-l.first) {
			return true, nil
		}
	}
	return false, nil
}
