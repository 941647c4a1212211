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
	"github.com/trawl-search/trawl/index/docset"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/merge"
	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

const (
	// manifestsAtOnce is how many manifests are read and written at once.
	manifestsAtOnce = 8
	// readBlock is the unit in which shards are read, in bytes. A merge reads the
	// documents of a repo from first to last, and the posting lists.
	readBlock = 1 << 20
	// flipPause is the wait before a flip is tried again while etcd is away.
	flipPause = time.Second
)

// merging is one compaction under its claim.
type merging struct {
	*Worker

	claim *catalog.Claim
	pacer pacer
	late  time.Time // when it no longer gives way to jobs

	read, paused    atomic.Int64 // bytes, nanoseconds
	written         int64
	compacted, left int
}

// part is one repo of a compaction.
type part struct {
	root catalog.Root
	keys []string
	// next is the root to be, and made its new shard.
	next *catalogv1.Root
	made *catalogv1.ShardRef
}

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
		return "", fmt.Errorf("make a file for a shard: %w", err)
	}
	defer func() {
		file.Close()
		_ = os.Remove(file.Name()) // at the next start at the latest
	}()
	built, err := m.merge(ctx, file, parts)
	if err != nil {
		return "", err
	}
	if err := m.upload(ctx, file, built, parts); err != nil {
		return "", err
	}
	flips, err := m.manifests(ctx, parts)
	if err != nil {
		return "", err
	}
	done, err := m.flip(ctx, flips)
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

// parts are the repos that the compaction may still do.
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

// pace admits n bytes of reading or merging, when jobs and the rate allow it.
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
			hidden, err := docset.Parse(ref.GetHidden())
			if err != nil {
				return result, fmt.Errorf("root of %s: %w", p.next.GetRepo(), err)
			}
			in := inputs[ref.GetKey()]
			in.Repos = append(in.Repos, merge.Repo{Record: record, Hidden: hidden.Numbers(), Branches: places(ref)})
		}
	}
	opts := merge.Options{Processors: 1, Pace: m.pace, TempDir: m.TempDir} // jobs and searches come first
	if size >= uint64(m.Small) {
		opts.Effort = docstore.Compact // it stays for long
	}
	var ordered []merge.Input
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		ordered = append(ordered, *inputs[key])
	}
	return merge.Shards(ctx, w, ordered, opts)
}

// places are those of the root's branches in a shard, as merge wants them.
func places(ref *catalogv1.ShardRef) []int {
	var places []int
	for _, place := range ref.GetBranches() {
		places = append(places, int(place)-1)
	}
	return places
}

// paceRead admits n bytes of reading from the bucket, and counts them.
func (m *merging) paceRead(ctx context.Context, n int) error {
	m.read.Add(int64(n))
	return m.pace(ctx, n)
}

// record is what the new shard says of a repo: what the newest one of the old ones
// does, at the root's commits and next generation.
func (m *merging) record(shard *shardio.Reader, p *part) (record docstore.Repo, err error) {
	err = shard.ReadDocs(func(docs *docstore.Docs) error {
		i, found, err := docs.FindRepo(p.next.GetRepo())
		if err == nil && !found {
			err = fmt.Errorf("%w: it does not hold %s", merge.ErrInputs, p.next.GetRepo())
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
	record.Branches = nil
	for _, b := range p.next.GetBranches() {
		record.Branches = append(record.Branches, docstore.Branch{Name: b.GetName(), Commit: b.GetCommit()})
	}
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
		p.made.Digest, p.made.Key, p.made.SizeBytes = ref.GetDigest(), ref.GetKey(), ref.GetSizeBytes()
		p.made.FormatVersion, p.made.Documents, p.made.ContentBytes = ref.GetFormatVersion(), ref.GetDocuments(), ref.GetContentBytes()
	}
	if len(parts) == 1 { // all documents are of one repo, so its counts are exact
		p := parts[0]
		p.made.LiveDocuments, p.made.LiveContentBytes, p.made.LiveSkippedDocuments = ref.GetLiveDocuments(), ref.GetLiveContentBytes(), ref.GetLiveSkippedDocuments()
		p.made.Languages = ref.GetLanguages()
		return nil
	}
	slices.Sort(names)
	return m.claim.NotePack(ctx, &catalogv1.Pack{Key: ref.GetKey(), MadeAt: timestamppb.Now(), Repos: names})
}

// manifests puts the manifests of the new generations, which say what those of the
// old ones do of the requests.
func (m *merging) manifests(ctx context.Context, parts []*part) ([]catalog.Flip, error) {
	group, putting := errgroup.WithContext(ctx)
	group.SetLimit(manifestsAtOnce)
	flips := make([]catalog.Flip, len(parts))
	for i, p := range parts {
		flips[i] = catalog.Flip{Old: p.root, Next: p.next}
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
	return flips, group.Wait()
}

// flip makes the new roots served. While etcd is away it waits, until ctx ends.
func (m *merging) flip(ctx context.Context, flips []catalog.Flip) ([]string, error) {
	for {
		done, err := m.claim.Flip(ctx, flips)
		if err == nil || !catalog.IsTransient(err) {
			return done, err
		}
		select {
		case <-ctx.Done():
			return done, err
		case <-time.After(flipPause):
		}
	}
}
