package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

// errManyHidden is the error of hideReplaced when the hidden documents do not fit
// into a root.
var errManyHidden = errors.New("too many documents are hidden")

const (
	// readShards bounds how many shards are read at a time.
	readShards = 8
	// readBlock is the unit in which they are read, in bytes: documents are looked
	// up here and there.
	readBlock = 128 << 10
)

// change is what happened to a repo since its shards were built.
type change struct {
	// paths at which anything changed, ascending.
	paths []string
	// branches has for each branch now the position, from 1, of the old branch that
	// it is derived from: both have the same documents except at paths. Nil means
	// that the branches are the old ones.
	branches []uint32
}

// hideReplaced returns the references to a repo's published shards as the next root has them: the
// shards stay as they are, and the references hide documents at changed paths and documents that
// are on none of the branches any more. It leaves out shards without live documents. It checks that
// the bucket has all shards, and reads a few hundred KiB of each, besides what the look-ups need.
// Errors are errManyHidden and those of shardio.OpenReader.
func hideReplaced(ctx context.Context, b bucket.Bucket, tempDir, repo string, refs []*catalogv1.ShardRef, change change) ([]*catalogv1.ShardRef, error) {
	next := make([]*catalogv1.ShardRef, len(refs))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(readShards)
	for i, ref := range refs {
		group.Go(func() (err error) {
			next[i], err = hideInShard(reading, b, tempDir, repo, ref, &change)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var live []*catalogv1.ShardRef
	size := 0
	for _, ref := range next {
		if ref.GetLiveDocuments() == 0 {
			continue
		}
		live = append(live, ref)
		if size += len(ref.GetHidden()) + len(ref.GetBranches()); size > docstore.MaxSetBytes {
			return nil, fmt.Errorf("%w: their numbers take more than %d bytes", errManyHidden, docstore.MaxSetBytes)
		}
	}
	return live, nil
}

// hideInShard returns the next reference to one shard.
func hideInShard(ctx context.Context, b bucket.Bucket, tempDir, repo string, ref *catalogv1.ShardRef, change *change) (*catalogv1.ShardRef, error) {
	info, err := b.Stat(ctx, ref.GetKey())
	if err != nil {
		return nil, fmt.Errorf("look for shard: %w", err)
	}
	if info.Size != int64(ref.GetSizeBytes()) {
		return nil, fmt.Errorf("shard %s has %d bytes, want %d: %w", ref.GetKey(), info.Size, ref.GetSizeBytes(), format.ErrCorrupt)
	}
	next := proto.CloneOf(ref)
	next.Branches = change.branchesIn(ref)
	if len(change.paths) == 0 && change.branches == nil || ref.GetDocuments() == 0 {
		return next, nil
	}
	hidden, err := docstore.ParseSet(ref.GetHidden())
	if err != nil {
		return nil, fmt.Errorf("read root of %s: %w", repo, err)
	}
	shard, err := shardio.OpenReader(ctx, b, ref, shardio.ReaderOptions{TempDir: tempDir, BlockBytes: readBlock})
	if err != nil {
		return nil, fmt.Errorf("open shard %s: %w", ref.GetKey(), err)
	}
	err = shard.ReadDocs(func(docs *docstore.Docs) error {
		i, ok, err := docs.FindRepo(repo)
		if err != nil || !ok {
			return err
		}
		first, n, err := docs.RepoDocs(i)
		if err != nil {
			return err
		}
		in := repoDocs{docs: docs, repo: i, first: first, end: first + n, hidden: hidden}
		return in.hide(next, change)
	})
	if err = errors.Join(err, shard.Close()); err != nil {
		return nil, fmt.Errorf("read shard %s: %w", ref.GetKey(), err)
	}
	return next, nil
}

// branchesIn returns the positions, from 1, of the present branches in a shard.
func (c *change) branchesIn(ref *catalogv1.ShardRef) []uint32 {
	switch {
	case c.branches == nil:
		return ref.GetBranches()
	case len(ref.GetBranches()) == 0:
		return c.branches
	}
	positions := make([]uint32, len(c.branches))
	for i, from := range c.branches {
		positions[i] = ref.GetBranches()[from-1]
	}
	return positions
}

// repoDocs are the documents of one repo in a shard. Hidden ones are numbered from
// the repo's first.
type repoDocs struct {
	docs       *docstore.Docs
	repo       int
	first, end uint32
	hidden     docstore.Set
}

// hide hides in ref the documents that a change replaced, and subtracts them from
// its counts.
func (r *repoDocs) hide(ref *catalogv1.ShardRef, change *change) error {
	replaced, err := r.atPaths(change.paths)
	if err != nil {
		return err
	}
	if change.branches != nil {
		dropped, err := r.offBranches(ref.GetBranches())
		if err != nil {
			return err
		}
		replaced = append(replaced, dropped...)
		slices.Sort(replaced)
		replaced = slices.Compact(replaced)
	}
	if len(replaced) == 0 {
		return nil
	}
	r.hidden = r.hidden.With(replaced...)
	ref.Hidden = r.hidden.Code()
	return r.subtract(ref, replaced)
}

// atPaths returns the live documents at paths.
func (r *repoDocs) atPaths(paths []string) (found []uint32, err error) {
	for _, path := range paths {
		doc, ok, err := r.docs.FindPath(r.repo, []byte(path))
		if err != nil {
			return nil, err
		}
		for ; ok && doc < r.end; doc++ { // a path may have several documents
			have, err := r.docs.AppendPath(nil, doc)
			if err != nil {
				return nil, err
			}
			if string(have) != path {
				break
			}
			if !r.hidden.Has(doc - r.first) {
				found = append(found, doc-r.first)
			}
		}
	}
	return found, nil
}

// offBranches returns the live documents that are on none of the branches at these
// positions, which count from 1.
func (r *repoDocs) offBranches(positions []uint32) (found []uint32, err error) {
	onBranch := make(map[uint32]bool) // by set of branches
	for doc := r.first; doc < r.end; doc++ {
		set, err := r.docs.BranchSet(doc)
		if err != nil {
			return nil, err
		}
		on, known := onBranch[set]
		if !known {
			branches, err := r.docs.AppendBranchSet(nil, set)
			if err != nil {
				return nil, err
			}
			on = slices.ContainsFunc(branches, func(b uint32) bool { return slices.Contains(positions, b+1) })
			onBranch[set] = on
		}
		if !on && !r.hidden.Has(doc-r.first) {
			found = append(found, doc-r.first)
		}
	}
	return found, nil
}

// subtract takes newly hidden documents off the counts of ref. Content counts as
// long as any live document of the repo has it.
func (r *repoDocs) subtract(ref *catalogv1.ShardRef, replaced []uint32) error {
	ref.LiveDocuments -= min(ref.LiveDocuments, uint64(len(replaced)))
	seen := make(map[uint32]bool) // blobs
	for _, number := range replaced {
		doc := r.first + number
		skip, err := r.docs.Skip(doc)
		if err != nil {
			return err
		}
		if skip != docstore.NotSkipped {
			ref.LiveSkippedDocuments -= min(ref.LiveSkippedDocuments, 1)
			continue
		}
		blob, err := r.docs.Blob(doc)
		if err != nil {
			return err
		}
		if seen[blob] {
			continue
		}
		seen[blob] = true
		live, err := r.isLive(blob)
		if err != nil {
			return err
		}
		if !live {
			size, err := r.docs.Size(doc)
			if err != nil {
				return err
			}
			ref.LiveContentBytes -= min(ref.LiveContentBytes, size)
		}
	}
	return nil
}

// isLive reports whether a live document of the repo has the blob.
func (r *repoDocs) isLive(blob uint32) (bool, error) {
	for doc, err := range r.docs.DocsOf(blob) {
		if err != nil {
			return false, err
		}
		repo, err := r.docs.RepoOf(doc)
		if err != nil {
			return false, err
		}
		if repo == r.repo && !r.hidden.Has(doc-r.first) {
			return true, nil
		}
	}
	return false, nil
}
