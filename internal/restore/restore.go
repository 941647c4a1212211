// Package restore rebuilds a catalog from the manifests and the copies of sources in
// the bucket, when etcd is lost and there is no snapshot of it.
//
// It restores the newest generation of each repo whose objects are all in the bucket.
// The bucket does not record:
//
//   - which repos were deleted. Their manifests stay until garbage is collected,
//     so those deleted within the hold of the collector come back.
//   - which of several jobs of one generation published. The one that began last is
//     taken; all of them hold the repo as it was requested.
//   - requests that no generation answers, sources applied so recently that there is
//     no copy, and tokens of callers.
package restore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/inorder"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/owner"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// epochGap keeps epochs unique. Requests that needed no build also had epochs, and no
// manifest records them.
const epochGap = 1 << 20

// Restorer restores an empty catalog from the manifests in a bucket.
type Restorer struct {
	Store  *catalog.Store
	Bucket bucket.Bucket
	// Contents reads all objects and compares their digests, too.
	Contents bool
	// DryRun writes nothing, and also accepts a catalog that is in use.
	DryRun bool
	// Skip names repos that are not restored. Each must have a manifest, or nothing is restored: see ErrNotThere.
	Skip []string
}

// Repo is the outcome for one repo.
type Repo struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Generation is served again. It is 0 if no generation is complete: then the repo is
	// only desired, and indexers build it.
	Generation uint64 `json:"generation"`
	// Newest is the newest generation that has a manifest.
	Newest uint64 `json:"newest"`
	// Problems are those of generations that could not be restored.
	Problems []string `json:"problems,omitempty"`
	// Skipped says that Restorer.Skip names the repo.
	Skipped bool `json:"skipped,omitempty"`
}

// found is a manifest of the bucket.
type found struct {
	*catalogv1.Manifest

	key    string
	digest [32]byte
	fence  int64
}

// atOnce is how many repos are restored at the same time. Buckets and etcd take milliseconds for each request, and many of them together.
const atOnce = 64

// Run restores all repos and passes each to report, in the order of the keys of their manifests. It reports
// unreadable manifests to damaged. At the end the catalog owns the bucket. Until then indexers write
// nothing there, and nothing is collected.
func (r *Restorer) Run(ctx context.Context, report func(Repo) error, damaged func(key string, err error)) error {
	if err := owner.Check(ctx, r.Bucket, r.Store); err != nil && !errors.Is(err, owner.ErrNewEtcd) {
		return err
	}
	if !r.DryRun {
		if err := r.Store.CheckEmpty(ctx); err != nil {
			return err
		}
	}
	for _, name := range r.Skip {
		if err := r.checkThere(ctx, name); err != nil {
			return err
		}
	}
	if err := r.restoreAll(ctx, report, damaged); err != nil {
		return err
	}
	if r.DryRun {
		return nil
	}
	return owner.TakeOver(ctx, r.Bucket, r.Store)
}

// ErrNotThere means that a repo that is to be skipped has no manifest. If its name is misspelt, the one that was meant would
// come back.
var ErrNotThere = errors.New("no manifest in the bucket is of this repo, so that it does not come back: correct its name, or leave it out")

// checkThere returns ErrNotThere if a repo has no manifest.
func (r *Restorer) checkThere(ctx context.Context, name string) error {
	for info, err := range r.Bucket.List(ctx, catalog.ManifestFolder(name)) {
		if err != nil {
			return fmt.Errorf("list the manifests of %q: %w", name, err)
		}
		if _, err = r.read(ctx, info.Key); !errors.Is(err, errDamaged) {
			return err
		}
	}
	return fmt.Errorf("skip %q: %w", name, ErrNotThere)
}

// outcome is what became of the manifests in a folder, all of which are of one repo.
type outcome struct {
	repo    Repo // its name is empty if there is no manifest
	damaged []string
	err     error
}

func (r *Restorer) restoreAll(ctx context.Context, report func(Repo) error, damaged func(string, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	running := inorder.New[outcome](atOnce)
	defer func() {
		for cancel(); !running.Empty(); {
			running.Next()
		}
	}()
	take := func() error {
		done, _ := running.Next()
		for _, key := range done.damaged {
			damaged(key, errDamaged)
		}
		if done.err != nil || done.repo.Name == "" {
			return done.err
		}
		return report(done.repo)
	}
	shards := &shardChecks{r: r, of: make(map[string]func() (string, error))}
	for keys, err := range r.folders(ctx) {
		if err != nil {
			return err
		}
		running.Start(func() outcome { return r.restore(ctx, keys, shards) })
		if running.Full() {
			if err := take(); err != nil {
				return err
			}
		}
	}
	for !running.Empty() {
		if err := take(); err != nil {
			return err
		}
	}
	return nil
}

// folders are the keys of all manifests, those of each folder together.
func (r *Restorer) folders(ctx context.Context) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		var keys []string
		for info, err := range r.Bucket.List(ctx, catalog.ManifestPrefix) {
			if err != nil {
				yield(nil, fmt.Errorf("list manifests: %w", err))
				return
			}
			if len(keys) > 0 && path.Dir(keys[0]) != path.Dir(info.Key) {
				if !yield(keys, nil) {
					return
				}
				keys = nil
			}
			keys = append(keys, info.Key)
		}
		if len(keys) > 0 {
			yield(keys, nil)
		}
	}
}

var errDamaged = errors.New("not a manifest, or damaged")

// maxManifest bounds a manifest that is read: roots are bounded, too.
const maxManifest = 4 * catalog.MaxRecordBytes

func (r *Restorer) read(ctx context.Context, key string) (found, error) {
	data, err := bucket.Read(ctx, r.Bucket, key, maxManifest)
	if err != nil {
		return found{}, err
	}
	m := found{Manifest: &catalogv1.Manifest{}, key: key, digest: sha256.Sum256(data)}
	fence, ok := catalog.KeyFence(key)
	if !ok || proto.Unmarshal(data, m.Manifest) != nil || m.Root.GetRepo() == "" ||
		key != catalog.ManifestKey(fence, m.Root.GetRepo(), m.Root.GetGeneration(), m.digest) {
		return found{}, errDamaged
	}
	m.fence = fence
	return m, nil
}

// restore takes the newest complete generation among the manifests of a folder.
func (r *Restorer) restore(ctx context.Context, keys []string, shards *shardChecks) (o outcome) {
	var all []found
	for _, key := range keys {
		m, err := r.read(ctx, key)
		switch {
		case errors.Is(err, errDamaged):
			o.damaged = append(o.damaged, key)
		case err != nil:
			return outcome{err: err}
		default:
			all = append(all, m)
		}
	}
	if len(all) > 0 {
		o.repo, o.err = r.restoreRepo(ctx, all, shards)
	}
	return o
}

func (r *Restorer) restoreRepo(ctx context.Context, all []found, shards *shardChecks) (Repo, error) {
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.Root.GetGeneration(), a.Root.GetGeneration()), cmp.Compare(b.fence, a.fence))
	})
	newest := all[0]
	name := newest.Root.GetRepo()
	repo := Repo{Name: name, URL: newest.Root.GetUrl(), Newest: newest.Root.GetGeneration(), Skipped: slices.Contains(r.Skip, name)}
	if repo.Skipped {
		return repo, nil
	}
	var root *catalogv1.Root
	for _, m := range all {
		problem, err := shards.check(ctx, m.Root)
		if err != nil {
			return repo, err
		}
		if problem == "" {
			root = proto.CloneOf(m.Root)
			root.ManifestKey, root.ManifestDigest, root.Fence = m.key, m.digest[:], m.fence
			repo.Generation = root.GetGeneration()
			break
		}
		repo.Problems = append(repo.Problems, fmt.Sprintf("generation %d: %s", m.Root.GetGeneration(), problem))
	}
	if r.DryRun {
		return repo, nil
	}
	desired, last := desiredOf(newest), uint64(0)
	for _, m := range all {
		last = max(last, m.Root.GetEpoch())
	}
	if root.GetGeneration() != newest.Root.GetGeneration() {
		// The root does not satisfy the last request, so indexers build it.
		desired.Epoch = last + epochGap
	}
	return repo, r.Store.Restore(ctx, desired, root, repo.Newest, last+epochGap)
}

// desiredOf is the request that a manifest answers. A compaction that did not find the
// manifest before leaves it out: then it is derived from the build, and the repo's
// properties are unknown.
func desiredOf(m found) *catalogv1.Desired {
	if m.Desired != nil {
		return proto.CloneOf(m.Desired)
	}
	d := &catalogv1.Desired{
		Name: m.Root.GetRepo(), Url: m.Root.GetUrl(), Epoch: m.Root.GetEpoch(), RequestedAt: m.Root.GetPublishedAt(),
	}
	for _, b := range m.Root.GetBranches() {
		d.Branches = append(d.Branches, b.GetName())
	}
	return d
}

// shardChecks remembers which shards cannot be served, since many repos share one. It is safe for concurrent use.
type shardChecks struct {
	r  *Restorer
	mu sync.Mutex
	of map[string]func() (problem string, err error)
}

// check returns the reason why a root cannot be served, if there is one.
func (c *shardChecks) check(ctx context.Context, root *catalogv1.Root) (problem string, err error) {
	for _, s := range root.GetShards() {
		id := fmt.Sprintf("%s %d %x", s.GetKey(), s.GetSizeBytes(), s.GetDigest())
		c.mu.Lock()
		once := c.of[id]
		if once == nil {
			once = sync.OnceValues(func() (string, error) { return c.r.check(ctx, s) })
			c.of[id] = once
		}
		c.mu.Unlock()
		if problem, err := once(); problem != "" || err != nil {
			return problem, err
		}
	}
	return "", nil
}

// check returns the reason why a shard cannot be served, if there is one.
func (r *Restorer) check(ctx context.Context, s *catalogv1.ShardRef) (problem string, err error) {
	info, err := r.Bucket.Stat(ctx, s.GetKey())
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return s.GetKey() + " is missing", nil
	case err != nil:
		return "", err
	case info.Size != int64(s.GetSizeBytes()):
		return fmt.Sprintf("%s has %d bytes instead of %d", s.GetKey(), info.Size, s.GetSizeBytes()), nil
	}
	if same, err := r.same(ctx, s); err != nil || !same {
		return s.GetKey() + " has another content", err
	}
	return "", nil
}

// same compares the content of a shard with its digest, if Contents is set.
func (r *Restorer) same(ctx context.Context, s *catalogv1.ShardRef) (bool, error) {
	if !r.Contents {
		return true, nil
	}
	digest, err := bucket.Digest(ctx, r.Bucket, s.GetKey())
	return bytes.Equal(digest, s.GetDigest()), err
}
