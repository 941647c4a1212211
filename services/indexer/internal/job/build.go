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

// build makes and uploads the shards and the manifest of the next generation,
// and returns the root that is to be published.
func (t *task) build(ctx context.Context, dir string, branches []docstore.Branch) (*catalogv1.Root, error) {
	ctx, span := t.Tracer.Start(ctx, "build")
	defer span.End()
	t.status.set(ingestv1.State_STATE_BUILDING, nil)
	built, how, err := t.shards(ctx, dir, branches)
	if err != nil {
		return nil, dropDamaged(err, dir)
	}
	t.Metrics.built(how, built)
	t.Log.InfoContext(ctx, "built", "repo", t.desired.GetName(), "kind", how.kind, "reason", string(how.reason),
		"documents", built.Documents, "bytes", built.ContentBytes)
	root := &catalogv1.Root{
		Repo: t.desired.GetName(), Generation: t.lease.NextGeneration(), Shards: slices.Concat(built.Kept, built.Shards),
		Epoch: t.desired.GetEpoch(), PublishedAt: timestamppb.Now(), Url: t.desired.GetUrl(), Inputs: t.inputs(), Built: how.String(),
	}
	for _, b := range branches {
		root.Branches = append(root.Branches, &catalogv1.Branch{Name: b.Name, Commit: b.Commit})
	}
	manifest := &catalogv1.Manifest{Root: root, BuilderVersion: t.Version, Desired: t.desired}
	for _, ref := range root.GetShards() {
		manifest.SkippedDocuments += ref.GetLiveSkippedDocuments()
	}
	return root, shardio.PutManifest(ctx, t.Bucket, t.lease.Fence(), manifest)
}

// way is how a generation is built.
type way struct {
	kind   string // delta or full
	reason reason
}

// String is for people.
func (w way) String() string { return w.kind + ": " + string(w.reason) }

// shards builds what changed, or everything where that is not enough.
func (t *task) shards(ctx context.Context, dir string, branches []docstore.Branch) (shardio.Result, way, error) {
	result, err := t.delta(ctx, dir, branches)
	if full, ok := errors.AsType[*fullBuild](err); ok {
		if full.cause != nil {
			t.Log.InfoContext(ctx, "the repo is indexed in full", "repo", t.desired.GetName(), "error", full)
		}
		result, err = t.full(ctx, dir, branches)
		return result, way{"full", full.reason}, err
	}
	if result.Documents == 0 {
		return result, way{"delta", commitsOnly}, err
	}
	return result, way{"delta", changed}, err
}

// full builds everything that is on the branches.
func (t *task) full(ctx context.Context, dir string, branches []docstore.Branch) (shardio.Result, error) {
	var names []string
	for _, b := range branches {
		names = append(names, b.Name)
	}
	src, err := gitsource.OpenRepository(ctx, dir, names, t.Limits)
	if err != nil {
		return shardio.Result{}, err
	}
	return t.buildAll(ctx, src)
}

// buildAll builds all documents of src, and closes it.
func (t *task) buildAll(ctx context.Context, src gitsource.Source) (shardio.Result, error) {
	total := uint64(src.Total())
	builder := shardio.Builder{
		Bucket: t.Bucket, Fence: t.lease.Fence(), TempDir: t.Mirrors.TempDir(), Options: t.Build,
		Progress: func(done uint64) {
			if done%256 == 0 || done == total {
				t.status.set(ingestv1.State_STATE_BUILDING, &ingestv1.Progress{Done: done, Total: total, Unit: "documents"})
			}
		},
	}
	result, err := builder.Build(ctx, t.repo(src.Branches()), src)
	if n := src.Omitted(); n > 0 {
		t.Log.WarnContext(ctx, "files left out: their paths are too long", "repo", t.desired.GetName(), "files", n)
	}
	return result, errors.Join(err, src.Close())
}

// repo is what the shards know of the repo.
func (t *task) repo(branches []docstore.Branch) docstore.Repo {
	facts := t.desired.GetFacts()
	return docstore.Repo{
		Name: t.desired.GetName(), URL: t.desired.GetUrl(), Branches: branches,
		Archived: facts.GetArchived(), Fork: facts.GetFork(), Public: facts.GetPublic(), Meta: facts.GetMeta(),
		Generation: t.lease.NextGeneration(),
	}
}

// inputs is a digest of what the shards depend on beside branches and commits.
func (t *task) inputs() []byte {
	var facts []byte
	if f := t.desired.GetFacts(); f != nil {
		// A record that was decoded can be encoded.
		facts, _ = proto.MarshalOptions{Deterministic: true}.Marshal(f)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %q %+v %+v %x", format.WriterVersion, t.desired.GetUrl(), t.Limits, t.Build, facts)
	return h.Sum(nil)
}

// dropDamaged removes a mirror that cannot be read, so that the next try
// fetches it anew.
func dropDamaged(err error, dir string) error {
	if fail, ok := errors.AsType[*gitsource.Failure](err); ok && (fail.Kind == gitsource.Damaged || fail.Kind == gitsource.Unknown) {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
