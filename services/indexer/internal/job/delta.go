package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/gitsource"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

// maxDeltas bounds the deltas of a root. A full build then replaces them all.
// Compaction merges them long before, unless it is off or cannot keep up.
const maxDeltas = 256

// changedShare bounds a delta: beyond one changed path for that many live documents, a
// full build costs no more and hides no documents.
const changedShare = 4

// reason is why a generation is built as a delta or in full. A counter has it as a
// label.
type reason string

// Reasons of a build.
const (
	changed        reason = "documents changed" // of a delta
	commitsOnly    reason = "no document changed"
	firstBuild     reason = "first build"
	otherInputs    reason = "facts or settings changed"
	noBranch       reason = "no branch before"
	commitGone     reason = "the indexed commit is gone"
	muchChanged    reason = "much changed"
	manyDeltas     reason = "many deltas"
	manyHidden     reason = "many replaced documents"
	fullRequested  reason = "a full build was asked for"
	baseUnreadable reason = "the shards so far cannot be read"
	diffUnreadable reason = "what changed cannot be read"
)

var (
	deltaReasons = []reason{changed, commitsOnly}
	fullReasons  = []reason{
		firstBuild, otherInputs, noBranch, commitGone, muchChanged, manyDeltas, manyHidden, fullRequested, baseUnreadable,
		diffUnreadable,
	}
)

// plan says how the next generation is built.
type plan struct {
	// full is why everything must be built, "" if a delta will do. Cause is the
	// error behind it, if there is one.
	full  reason
	cause error
	// changes are the documents of a delta, and kept the published shards with
	// replaced documents hidden.
	changes *gitsource.Changes
	kept    []*catalogv1.ShardRef
}

// inFull plans a full build.
func inFull(why reason, cause error) (plan, error) { return plan{full: why, cause: cause}, nil }

// plan compares the branches with the published root. It uploads nothing.
func (t *task) plan(ctx context.Context, dir string, branches []docstore.Branch) (plan, error) {
	if why := t.rebuildReason(branches); why != "" {
		return inFull(why, nil)
	}
	old := t.lease.Root().Record
	live := uint64(0)
	for _, ref := range old.GetShards() {
		live += ref.GetLiveDocuments()
	}
	changes, err := t.changesSince(ctx, dir, old, branches, int(live/changedShare))
	switch {
	case ctx.Err() != nil:
		return plan{}, context.Cause(ctx)
	case errors.Is(err, gitsource.ErrManyChanges):
		return inFull(muchChanged, err)
	case isTemporary(err) && t.delivery.NumDelivered < t.Attempts:
		return plan{}, err
	case errors.Is(err, gitsource.ErrNoCommit):
		return inFull(commitGone, err)
	case err != nil:
		return inFull(diffUnreadable, err)
	case t.Limits.MaxDocuments > 0 && live+uint64(changes.Total()) > uint64(t.Limits.MaxDocuments):
		return inFull(muchChanged, nil) // the full build finds out whether there are too many
	}
	since := change{paths: changes.Paths(), branches: branchOrigins(old, branches, changes.From())}
	kept, err := hideReplaced(ctx, t.Bucket, t.Mirrors.TempDir(), t.desired.GetName(), old.GetShards(), since)
	switch {
	case ctx.Err() != nil:
		return plan{}, context.Cause(ctx)
	case errors.Is(err, errManyHidden):
		return inFull(manyHidden, err)
	case isStoreFailure(err):
		return plan{}, &shardio.StoreError{Err: err}
	case err != nil:
		return inFull(baseUnreadable, err)
	case len(kept) == 0 && changes.Total() == 0:
		return inFull(muchChanged, nil) // a root has at least one shard
	}
	return plan{changes: changes, kept: kept}, nil
}

// rebuildReason returns why no delta of the published root is possible, "" if one
// may be.
func (t *task) rebuildReason(branches []docstore.Branch) reason {
	if t.lease.Root() == nil {
		return firstBuild
	}
	old := t.lease.Root().Record
	deltas, placed := 0, true
	for _, ref := range old.GetShards() {
		if ref.GetDelta() {
			deltas++
		}
		placed = placed && (len(ref.GetBranches()) == 0 || len(ref.GetBranches()) == len(old.GetBranches()))
	}
	switch {
	case t.wantsFullBuild():
		return fullRequested
	case !slices.Equal(t.inputs(), old.GetInputs()):
		return otherInputs
	case len(branches) == 0 || len(old.GetBranches()) == 0:
		return noBranch
	case !placed:
		return baseUnreadable
	case deltas >= maxDeltas:
		return manyDeltas
	}
	return ""
}

// changesSince opens what changed since the root's commits. It fetches those that
// the mirror lacks, as it does if another indexer built the root.
func (t *task) changesSince(ctx context.Context, dir string, old *catalogv1.Root, branches []docstore.Branch, most int) (*gitsource.Changes, error) {
	indexed := gitsource.Branches(old.GetBranches())
	changes, err := gitsource.OpenChanges(ctx, dir, indexed, branches, most, t.Limits)
	if !errors.Is(err, gitsource.ErrNoCommit) {
		return changes, err
	}
	if failed := t.Fetcher.FetchCommits(ctx, dir, t.desired.GetUrl(), indexed); failed != nil {
		return nil, fmt.Errorf("%w: %w", err, failed)
	}
	return gitsource.OpenChanges(ctx, dir, indexed, branches, most, t.Limits)
}

// isTemporary reports whether git failed for a cause outside the repository, so that it is worth another attempt before all of a
// large repository is built.
func isTemporary(err error) bool {
	fail, ok := errors.AsType[*gitsource.Failure](err)
	return ok && slices.Contains([]gitsource.Kind{gitsource.Unreachable, gitsource.TimedOut, gitsource.NoSpace, gitsource.Killed}, fail.Kind)
}

// branchOrigins returns for each branch the position, from 1, of the root's branch
// that it is derived from, nil if both have the same names.
func branchOrigins(old *catalogv1.Root, branches []docstore.Branch, from []int) []uint32 {
	if slices.EqualFunc(branches, old.GetBranches(), func(a docstore.Branch, b *catalogv1.Branch) bool { return a.Name == b.GetName() }) {
		return nil
	}
	positions := make([]uint32, len(from))
	for i, position := range from {
		positions[i] = uint32(position) + 1
	}
	return positions
}

// isStoreFailure reports whether the bucket or the local disk failed, as opposed to
// an object that is missing or damaged.
func isStoreFailure(err error) bool {
	if _, local := errors.AsType[*shardio.StoreError](err); local {
		return true
	}
	_, remote := errors.AsType[*bucket.Error](err)
	return remote && !errors.Is(err, bucket.ErrNotFound) && !errors.Is(err, bucket.ErrRange)
}
