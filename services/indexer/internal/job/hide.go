package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// Change is what happened to a repo since its shards were built.
type Change struct {
	// Paths at which anything is different, ascending.
	Paths []string
	// Branches are, for each branch now, the place of the one it comes from among
	// those before, from 1; it has the same documents but for those at Paths. Nil:
	// the branches are those before.
	Branches []uint32
}

// Apply returns the refs of a repo's shards, which are counted, as they are after a
// change, in the same order: documents at its paths, and those on none of the branches
// now, are hidden; shards of which nothing is served any more are left out. It makes
// sure that the bucket has all of them, and reads of each a few hundred KiB and what
// finding the documents takes. Errors are ErrCrowded, and those of reading:
// *bucket.Error, format.ErrCorrupt.
func Apply(ctx context.Context, b bucket.Bucket, repo string, refs []*catalogv1.ShardRef, change Change) ([]*catalogv1.ShardRef, error) {
	next := make([]*catalogv1.ShardRef, len(refs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, ref := range refs {
		group.Go(func() (err error) {
			next[i], err = apply(ctx, b, repo, ref, &change)
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
		if size += len(ref.GetHidden()) + len(ref.GetBranches()); size > docset.MaxBytes {
			return nil, fmt.Errorf("%w: %d bytes in all", ErrCrowded, size)
		}
	}
	return left, nil
}

func apply(ctx context.Context, b bucket.Bucket, repo string, ref *catalogv1.ShardRef, change *Change) (*catalogv1.ShardRef, error) {
	info, err := b.Stat(ctx, ref.GetKey())
	if err != nil {
		return nil, fmt.Errorf("look for shard: %w", err)
	}
	if info.Size != int64(ref.GetSizeBytes()) {
		return nil, fmt.Errorf("shard %s has %d bytes, %d are wanted: %w", ref.GetKey(), info.Size, ref.GetSizeBytes(), format.ErrCorrupt)
	}
	next := proto.CloneOf(ref)
	next.Branches = change.branchesIn(ref)
	if len(change.Paths) == 0 && change.Branches == nil || ref.GetDocuments() == 0 {
		return next, nil
	}
	set, err := docset.Parse(ref.GetHidden())
	if err != nil {
		return nil, fmt.Errorf("read root of %s: %w", repo, err)
	}
	err = withDocs(ctx, b, ref, func(docs *docstore.Docs) error {
		i, ok, err := docs.FindRepo(repo)
		if err != nil || !ok {
			return err
		}
		first, n, err := docs.RepoDocs(i)
		if err != nil {
			return err
		}
		l := layer{docs: docs, repo: i, first: first, end: first + n, hidden: set}
		return l.change(next, change)
	})
	if err != nil {
		return nil, fmt.Errorf("read shard %s: %w", ref.GetKey(), err)
	}
	return next, nil
}

// branchesIn are the places of the branches now in a shard, as its ref says it.
func (c *Change) branchesIn(ref *catalogv1.ShardRef) []uint32 {
	switch {
	case c.Branches == nil:
		return ref.GetBranches()
	case len(ref.GetBranches()) == 0:
		return c.Branches
	}
	places := make([]uint32, len(c.Branches))
	for i, from := range c.Branches {
		places[i] = ref.GetBranches()[from-1]
	}
	return places
}

// layer is what a shard holds of a repo.
type layer struct {
	docs       *docstore.Docs
	repo       int
	first, end uint32 // of the repo's documents
	hidden     docset.Set
}

// change hides what is not the repo's any more, and takes it off what ref counts.
func (l *layer) change(ref *catalogv1.ShardRef, change *Change) error {
	gone, err := l.at(change.Paths)
	if err != nil {
		return err
	}
	if change.Branches != nil {
		lost, err := l.off(ref.GetBranches())
		if err != nil {
			return err
		}
		gone = append(gone, lost...)
		slices.Sort(gone)
		gone = slices.Compact(gone)
	}
	if len(gone) == 0 {
		return nil
	}
	l.hidden = l.hidden.With(gone...)
	ref.Hidden = l.hidden.Code()
	return l.count(ref, gone)
}

// at are the documents at paths that are served.
func (l *layer) at(paths []string) (gone []uint32, err error) {
	for _, path := range paths {
		doc, ok, err := l.docs.FindPath(l.repo, []byte(path))
		if err != nil {
			return nil, err
		}
		for ; ok && doc < l.end; doc++ {
			have, err := l.docs.AppendPath(nil, doc)
			if err != nil {
				return nil, err
			}
			if string(have) != path {
				break
			}
			if !l.hidden.Has(doc - l.first) {
				gone = append(gone, doc-l.first)
			}
		}
	}
	return gone, nil
}

// off are the documents that are served, but on none of the branches at these places,
// counted from 1.
func (l *layer) off(places []uint32) (gone []uint32, err error) {
	known := make(map[uint32]bool) // by set of branches, whether documents with it stay
	for doc := l.first; doc < l.end; doc++ {
		set, err := l.docs.BranchSet(doc)
		if err != nil {
			return nil, err
		}
		stays, ok := known[set]
		if !ok {
			branches, err := l.docs.AppendBranchSet(nil, set)
			if err != nil {
				return nil, err
			}
			stays = slices.ContainsFunc(branches, func(b uint32) bool { return slices.Contains(places, b+1) })
			known[set] = stays
		}
		if !stays && !l.hidden.Has(doc-l.first) {
			gone = append(gone, doc-l.first)
		}
	}
	return gone, nil
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
