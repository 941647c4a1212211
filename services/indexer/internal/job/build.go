package job

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/gitsource"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

// Kinds of builds.
const (
	full  = "full"
	delta = "delta"
)

// method is how a generation was built, and why so.
type method struct {
	kind   string
	reason reason
}

// String is for people.
func (m method) String() string { return m.kind + ": " + string(m.reason) }

// build builds and uploads the shards and the manifest of the next generation, and
// returns the root to publish.
func (t *task) build(ctx context.Context, dir string, branches []docstore.Branch) (*catalogv1.Root, error) {
	ctx, span := t.Tracer.Start(ctx, "build")
	defer span.End()
	t.status.set(ingestv1.State_STATE_BUILDING, nil)
	began := timestamppb.Now()
	built, kept, method, err := t.buildShards(ctx, dir, branches)
	if err != nil {
		return nil, removeDamaged(err, dir)
	}
	t.Metrics.built(method, built)
	t.Log.InfoContext(ctx, "built", "repo", t.desired.GetName(), "kind", method.kind, "reason", string(method.reason),
		"documents", built.Documents, "bytes", built.ContentBytes)
	root := &catalogv1.Root{
		Repo: t.desired.GetName(), Generation: t.lease.NextGeneration(), Shards: slices.Concat(kept, built.Shards),
		Epoch: t.desired.GetEpoch(), PublishedAt: timestamppb.Now(), Url: t.desired.GetUrl(), Id: t.desired.GetFacts().GetId(), Inputs: t.inputs(), Built: method.String(),
		BuiltInFullAt: began, Sketch: built.Sketch, Branches: records(branches), LeftOut: records(t.leftOut),
	}
	if old := t.lease.Root(); method.kind == delta {
		root.BuiltInFullAt, root.Sketch = old.Record.GetBuiltInFullAt(), old.Record.GetSketch()
	}
	manifest := &catalogv1.Manifest{Root: root, BuilderVersion: t.Version, Desired: t.desired}
	for _, ref := range root.GetShards() {
		manifest.SkippedDocuments += ref.GetLiveSkippedDocuments()
	}
	return root, shardio.PutManifest(ctx, t.Bucket, t.lease.Fence(), manifest)
}

// records is the inverse of gitsource.Branches.
func records(branches []docstore.Branch) (records []*catalogv1.Branch) {
	for _, b := range branches {
		records = append(records, &catalogv1.Branch{Name: b.Name, Commit: b.Commit})
	}
	return records
}

// buildShards builds the documents that changed, or all of them if a delta is not
// possible. Kept are the published shards that a delta builds upon.
func (t *task) buildShards(ctx context.Context, dir string, branches []docstore.Branch) (built shardio.Result, kept []*catalogv1.ShardRef, how method, err error) {
	plan, err := t.plan(ctx, dir, branches)
	switch {
	case err != nil:
		return built, nil, how, err
	case plan.full != "":
		if plan.cause != nil {
			t.Log.InfoContext(ctx, "building the repo in full", "repo", t.desired.GetName(), "reason", string(plan.full), "error", plan.cause)
		}
		built, err = t.buildInFull(ctx, dir, branches)
		return built, nil, method{full, plan.full}, err
	case plan.changes.Total() == 0:
		return built, plan.kept, method{delta, commitsOnly}, nil
	}
	built, err = t.buildDocuments(ctx, plan.changes)
	for _, ref := range built.Shards {
		ref.Delta = true
	}
	return built, plan.kept, method{delta, changed}, err
}

// buildInFull builds and uploads all documents of the branches.
func (t *task) buildInFull(ctx context.Context, dir string, branches []docstore.Branch) (shardio.Result, error) {
	src, err := gitsource.OpenBranches(ctx, dir, branches, t.Limits)
	if err != nil {
		return shardio.Result{}, err
	}
	if t.mayShare(dir, src) {
		small, result, err := t.buildSmall(ctx, src)
		if t.noteOmitted(ctx, src); small || err != nil {
			return result, errors.Join(err, src.Close())
		}
		if err := src.Close(); err != nil {
			return result, err
		}
		if src, err = gitsource.OpenBranches(ctx, dir, branches, t.Limits); err != nil {
			return result, err
		}
	}
	return t.buildDocuments(ctx, src)
}

// buildDocuments builds and uploads all documents of src, and closes it.
func (t *task) buildDocuments(ctx context.Context, src gitsource.Source) (shardio.Result, error) {
	total := uint64(src.Total())
	builder := shardio.Builder{
		Bucket: t.Bucket, Fence: t.lease.Fence(), TempDir: t.Mirrors.TempDir(), Options: t.Build,
		Progress: func(done uint64) {
			if done%256 == 0 || done == total {
				t.status.set(ingestv1.State_STATE_BUILDING, &ingestv1.Progress{Done: done, Total: total, Unit: "documents"})
			}
		},
	}
	result, err := builder.Build(ctx, t.repo(src), src)
	t.Metrics.uploaded(result.Shards)
	t.noteOmitted(ctx, src)
	return result, errors.Join(err, src.Close())
}

// repo returns the record of the repo in its new shards.
func (t *task) repo(src gitsource.Source) docstore.Repo {
	facts := t.desired.GetFacts()
	return docstore.Repo{
		Name: t.desired.GetName(), URL: t.desired.GetUrl(), Branches: src.Branches(),
		Archived: facts.GetArchived(), Fork: facts.GetFork(), Public: facts.GetPublic(), Meta: facts.GetMeta(),
		Rank: uint8(min(facts.GetRank(), docstore.MaxRank)), Generation: t.lease.NextGeneration(),
	}
}

func (t *task) noteOmitted(ctx context.Context, src gitsource.Source) {
	if n := src.Omitted(); n > 0 {
		t.Log.WarnContext(ctx, "files left out because their paths are too long", "repo", t.desired.GetName(), "files", n)
	}
}

// inputs returns a digest of everything but branches and commits that the shards
// depend on.
func (t *task) inputs() []byte {
	var facts []byte
	if f := proto.CloneOf(t.desired.GetFacts()); f != nil {
		f.Id = 0
		// A record that was decoded can be encoded.
		facts, _ = proto.MarshalOptions{Deterministic: true}.Marshal(f)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %q %+v %+v %x", format.Version, t.desired.GetUrl(), t.Limits, t.Build, facts)
	return h.Sum(nil)
}

// removeDamaged removes a mirror that cannot be read, so that the next attempt
// fetches it anew.
func removeDamaged(err error, dir string) error {
	if fail, ok := errors.AsType[*gitsource.Failure](err); ok && (fail.Kind == gitsource.Damaged || fail.Kind == gitsource.Unknown) {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
