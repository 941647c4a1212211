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

// maxDeltas is how many deltas a root may have before the repo is built in full,
// which takes them all away. Compaction merges them long before: this is for when
// it is off, or cannot keep up.
const maxDeltas = 256

// mostChanged is the share of a repo's documents, one in so many, past which a
// full build is as cheap and leaves less behind.
const mostChanged = 4

// fullBuild says that a repo is built in full, and why.
type fullBuild struct {
	reason reason
	cause  error // may be nil
}

// Error implements error.
func (f *fullBuild) Error() string {
	if f.cause != nil {
		return fmt.Sprintf("%s: %v", f.reason, f.cause)
	}
	return string(f.reason)
}

// Unwrap gives the cause.
func (f *fullBuild) Unwrap() error { return f.cause }

// reason is why a generation is built as it is. Every one has a counter.
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
	olderRoot      reason = "indexed by an earlier version"
	baseUnreadable reason = "the shards so far cannot be read"
)

var (
	deltaReasons = []reason{changed, commitsOnly}
	fullReasons  = []reason{
		firstBuild, otherInputs, noBranch, commitGone, muchChanged, manyDeltas, manyHidden, olderRoot, baseUnreadable,
	}
)

// delta builds what changed since the root. Where a full build is due instead the
// error is a *fullBuild, and nothing was uploaded.
func (t *task) delta(ctx context.Context, dir string, branches []docstore.Branch) (shardio.Result, error) {
	old, err := t.base(branches)
	if err != nil {
		return shardio.Result{}, err
	}
	live := uint64(0)
	for _, ref := range old.GetShards() {
		live += ref.GetLiveDocuments()
	}
	src, err := t.changes(ctx, dir, old, branches, int(live/mostChanged))
	if err != nil {
		return shardio.Result{}, err
	}
	if t.Limits.MaxDocuments > 0 && live+uint64(src.Total()) > uint64(t.Limits.MaxDocuments) {
		return shardio.Result{}, &fullBuild{reason: muchChanged} // which says whether it is too many
	}
	change := Change{Paths: src.Paths(), Branches: origins(old, branches, src.From())}
	kept, err := Apply(ctx, t.Bucket, t.desired.GetName(), old.GetShards(), change)
	switch {
	case ctx.Err() != nil:
		return shardio.Result{}, context.Cause(ctx)
	case errors.Is(err, ErrCrowded):
		return shardio.Result{}, &fullBuild{manyHidden, err}
	case bucketFailed(err):
		return shardio.Result{}, &shardio.StoreError{Err: err}
	case err != nil:
		return shardio.Result{}, &fullBuild{baseUnreadable, err}
	case len(kept) == 0 && src.Total() == 0:
		return shardio.Result{}, &fullBuild{reason: muchChanged} // a root has a shard
	}
	var result shardio.Result
	if src.Total() > 0 {
		if result, err = t.buildAll(ctx, src); err != nil {
			return result, err
		}
	}
	for _, ref := range result.Shards {
		ref.Delta = true
	}
	result.Kept = kept
	return result, nil
}

// bucketFailed says that the bucket did not answer, rather than that something is
// wrong with what it has.
func bucketFailed(err error) bool {
	_, ok := errors.AsType[*bucket.Error](err)
	return ok && !errors.Is(err, bucket.ErrNotFound) && !errors.Is(err, bucket.ErrRange)
}

// base is the root that a delta can be of.
func (t *task) base(branches []docstore.Branch) (*catalogv1.Root, error) {
	if t.lease.Root() == nil {
		return nil, &fullBuild{reason: firstBuild}
	}
	old := t.lease.Root().Record
	deltas, counted, placed := 0, true, true
	for _, ref := range old.GetShards() {
		if ref.GetDelta() {
			deltas++
		}
		counted = counted && Counted(ref)
		placed = placed && (len(ref.GetBranches()) == 0 || len(ref.GetBranches()) == len(old.GetBranches()))
	}
	switch {
	case !counted:
		return nil, &fullBuild{reason: olderRoot}
	case !slices.Equal(t.inputs(), old.GetInputs()):
		return nil, &fullBuild{reason: otherInputs}
	case len(branches) == 0 || len(old.GetBranches()) == 0:
		return nil, &fullBuild{reason: noBranch}
	case !placed:
		return nil, &fullBuild{reason: baseUnreadable}
	case deltas >= maxDeltas:
		return nil, &fullBuild{reason: manyDeltas}
	}
	return old, nil
}

// origins are the places, from 1, of the root's branches that branches come from; nil
// if they are the same.
func origins(old *catalogv1.Root, branches []docstore.Branch, from []int) []uint32 {
	if slices.EqualFunc(branches, old.GetBranches(), func(a docstore.Branch, b *catalogv1.Branch) bool { return a.Name == b.GetName() }) {
		return nil
	}
	places := make([]uint32, len(from))
	for i, place := range from {
		places[i] = uint32(place) + 1
	}
	return places
}

// changes opens what changed since the root's commits, which are fetched where
// the mirror does not have them: another indexer's job had.
func (t *task) changes(ctx context.Context, dir string, old *catalogv1.Root, branches []docstore.Branch, most int) (*gitsource.Changes, error) {
	var was []docstore.Branch
	for _, b := range old.GetBranches() {
		was = append(was, docstore.Branch{Name: b.GetName(), Commit: b.GetCommit()})
	}
	src, err := gitsource.OpenChanges(ctx, dir, was, branches, most, t.Limits)
	if errors.Is(err, gitsource.ErrNoCommit) && t.Fetcher.FetchCommits(ctx, dir, t.desired.GetUrl(), was) == nil {
		src, err = gitsource.OpenChanges(ctx, dir, was, branches, most, t.Limits)
	}
	switch {
	case err == nil:
		return src, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, gitsource.ErrManyChanges):
		return nil, &fullBuild{muchChanged, err}
	}
	return nil, &fullBuild{commitGone, err}
}
