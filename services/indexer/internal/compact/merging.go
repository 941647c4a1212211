package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/merge"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

const (
	// manifestsAtOnce bounds how many manifests are read and written concurrently.
	manifestsAtOnce = 8
	// readBlock is the unit in which shards are read, in bytes. A merge reads the
	// documents of a repo from first to last, and the posting lists.
	readBlock = 1 << 20
	// replacePause is the wait between attempts to replace roots while etcd does not
	// answer.
	replacePause = time.Second
)

// merging is one compaction under its claim.
type merging struct {
	*Worker

	claim *catalog.Claim
	pacer pacer
	late  time.Time // from then on it no longer gives way to jobs

	read, paused    atomic.Int64 // bytes, nanoseconds
	written         int64
	compacted, left int
}

// part is one repo of a compaction.
type part struct {
	root catalog.Root
	keys []string
	// next is the root to publish, and made the reference to its new shard.
	next *catalogv1.Root
	made *catalogv1.ShardRef
}

// run merges the shards, uploads the new one, writes the manifests and replaces the
// roots. It returns the outcome.
func (m *merging) run(ctx context.Context) (string, error) {
	parts, err := m.parts(ctx)
	if err != nil {
		return "", err
	}
	m.left = len(m.claim.Work().GetInputs()) - len(parts)
	if len(parts) == 0 {
		return vain, nil
	}
	file, err := os.CreateTemp(m.TempDir, "compact-")
	if err != nil {
		return "", fmt.Errorf("create a file for a shard: %w", err)
	}
	defer func() {
		file.Close()
		_ = os.Remove(file.Name()) // the next start removes what stays
	}()
	built, err := m.merge(ctx, file, parts)
	if err != nil {
		return "", err
	}
	if err := m.upload(ctx, file, built, parts); err != nil {
		return "", err
	}
	replacements, err := m.putManifests(ctx, parts)
	if err != nil {
		return "", err
	}
	done, err := m.replaceShards(ctx, replacements)
	m.compacted = len(done)
	m.left += len(parts) - len(done)
	if err != nil {
		return "", err
	}
	if len(done) == 0 {
		return vain, nil
	}
	return compacted, nil
}

// parts returns the repos whose roots are still as they were planned.
func (m *merging) parts(ctx context.Context) ([]*part, error) {
	roots, err := m.claim.Roots(ctx)
	if err != nil {
		return nil, err
	}
	keys := map[string][]string{}
	for _, in := range m.claim.Work().GetInputs() {
		keys[in.GetRepo()] = in.GetKeys()
	}
	var parts []*part
	for _, root := range roots {
		p := &part{root: root, keys: keys[root.Record.GetRepo()], next: proto.CloneOf(root.Record)}
		p.next.Generation++
		p.made = combine(p.next, p.keys)
		parts = append(parts, p)
	}
	return parts, nil
}

// pace admits n bytes of reading or merging as soon as jobs and the rate allow it.
func (m *merging) pace(ctx context.Context, n int) error {
	if err := m.giveWay(ctx); err != nil {
		return err
	}
	return m.pacer.wait(ctx, n)
}

// merge writes the new shard.
func (m *merging) merge(ctx context.Context, w io.Writer, parts []*part) (result build.Result, err error) {
	open := map[string]*shardio.Reader{}
	defer func() {
		for _, s := range open {
			err = errors.Join(err, s.Close())
		}
	}()
	inputs := map[string]*merge.Input{}
	size := uint64(0)
	for _, p := range parts {
		refs := slices.DeleteFunc(slices.Clone(p.root.Record.GetShards()), func(ref *catalogv1.ShardRef) bool {
			return !slices.Contains(p.keys, ref.GetKey())
		})
		for _, ref := range refs {
			if open[ref.GetKey()] == nil {
				s, err := shardio.OpenReader(ctx, m.Bucket, ref, shardio.ReaderOptions{TempDir: m.TempDir, BlockBytes: readBlock, Pace: m.paceRead})
				if err != nil {
					return result, fmt.Errorf("open shard %s: %w", ref.GetKey(), err)
				}
				open[ref.GetKey()], inputs[ref.GetKey()] = s, &merge.Input{File: s.File}
			}
			size += share(ref)
		}
		record, err := m.record(open[refs[len(refs)-1].GetKey()], p)
		if err != nil {
			return result, err
		}
		for _, ref := range refs {
			hidden, err := docstore.ParseSet(ref.GetHidden())
			if err != nil {
				return result, fmt.Errorf("root of %s: %w", p.next.GetRepo(), err)
			}
			in := inputs[ref.GetKey()]
			in.Repos = append(in.Repos, merge.Repo{Record: record, Hidden: hidden.Numbers(), Branches: branchPositions(ref)})
		}
	}
	opts := merge.Options{Processors: 1, Pace: m.pace, TempDir: m.TempDir} // jobs and searches go first
	if size >= small {
		opts.Effort = docstore.Compact // the shard will be kept for long
	}
	var ordered []merge.Input
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		ordered = append(ordered, *inputs[key])
	}
	if result, err = merge.Shards(ctx, w, ordered, opts); err != nil {
		return result, err
	}
	// The digest of the new shard vouches for its content from here on, so the content must be what the roots want.
	for _, in := range ordered {
		if err := open[in.File.Name()].Verify(); err != nil {
			return result, fmt.Errorf("merge: %w", err)
		}
	}
	return result, nil
}

// branchPositions returns the positions, from 0, of the root's branches in a shard.
func branchPositions(ref *catalogv1.ShardRef) []int {
	var positions []int
	for _, position := range ref.GetBranches() {
		positions = append(positions, int(position)-1)
	}
	return positions
}

// paceRead admits n bytes of reading from the bucket, and counts them.
func (m *merging) paceRead(ctx context.Context, n int) error {
	m.read.Add(int64(n))
	return m.pace(ctx, n)
}

// record returns the repo record of the new shard: that of the newest old shard with
// the root's commits and the next generation.
func (m *merging) record(shard *shardio.Reader, p *part) (record docstore.Repo, err error) {
	err = shard.ReadDocs(func(docs *docstore.Docs) error {
		i, found, err := docs.FindRepo(p.next.GetRepo())
		if err == nil && !found {
			err = fmt.Errorf("%w: the shard does not hold %s", merge.ErrInputs, p.next.GetRepo())
		}
		if err != nil {
			return err
		}
		record, err = docs.Repo(i)
		return err
	})
	if err != nil {
		return record, fmt.Errorf("read the record of a repo in shard %s: %w", shard.Name(), err)
	}
	record.Generation = p.next.GetGeneration()
	record.Branches = gitsource.Branches(p.next.GetBranches())
	return record, nil
}

// upload puts the new shard into the bucket and names it in the next roots.
func (m *merging) upload(ctx context.Context, file *os.File, built build.Result, parts []*part) error {
	// Give way before the upload starts: the bucket would end an upload that pauses.
	if err := m.giveWay(ctx); err != nil {
		return err
	}
	ref, err := shardio.UploadShard(ctx, m.Bucket, m.claim.Fence(), file, built, m.pacer.wait)
	if err != nil {
		return err
	}
	m.written = built.Size
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.next.GetRepo()
	}
	slices.Sort(names)
	if len(names) != built.Repos {
		return fmt.Errorf("%w: the new shard holds %d repos, not %d", merge.ErrInputs, built.Repos, len(names))
	}
	for _, p := range parts {
		number, _ := slices.BinarySearch(names, p.next.GetRepo())
		p.made.RepoNumber = uint32(number)
		p.made.Digest, p.made.Key, p.made.SizeBytes = ref.GetDigest(), ref.GetKey(), ref.GetSizeBytes()
		p.made.FormatVersion, p.made.Documents, p.made.ContentBytes = ref.GetFormatVersion(), ref.GetDocuments(), ref.GetContentBytes()
		p.made.Repos = ref.GetRepos()
	}
	if len(parts) == 1 { // all documents are of one repo, so its counts are exact
		p := parts[0]
		p.made.LiveDocuments, p.made.LiveContentBytes, p.made.LiveSkippedDocuments = ref.GetLiveDocuments(), ref.GetLiveContentBytes(), ref.GetLiveSkippedDocuments()
		p.made.Languages = ref.GetLanguages()
		return nil
	}
	return m.claim.NotePack(ctx, &catalogv1.Pack{Key: ref.GetKey(), MadeAt: timestamppb.Now(), Repos: names})
}

// putManifests writes the manifests of the new generations. They keep the requests
// that the old manifests hold. A root without a manifest gets one without a request.
func (m *merging) putManifests(ctx context.Context, parts []*part) ([]catalog.Replacement, error) {
	group, putting := errgroup.WithContext(ctx)
	group.SetLimit(manifestsAtOnce)
	replacements := make([]catalog.Replacement, len(parts))
	for i, p := range parts {
		replacements[i] = catalog.Replacement{Old: p.root, Next: p.next}
		group.Go(func() error {
			manifest, err := shardio.GetManifest(putting, m.Bucket, p.root.Record.GetManifestKey())
			if err != nil {
				return err
			}
			p.next.ManifestKey, p.next.ManifestDigest = "", nil
			manifest.Root, manifest.BuilderVersion = p.next, m.Version
			return shardio.PutManifest(putting, m.Bucket, m.claim.Fence(), manifest)
		})
	}
	return replacements, group.Wait()
}

// replaceShards publishes the new roots and returns the repos whose roots were
// replaced. While etcd does not answer it tries again until ctx ends.
func (m *merging) replaceShards(ctx context.Context, replacements []catalog.Replacement) ([]string, error) {
	for {
		done, err := m.claim.ReplaceShards(ctx, replacements)
		if err == nil || !catalog.IsTransient(err) {
			return done, err
		}
		if !wait.Sleep(ctx, replacePause) {
			return done, err
		}
	}
}
