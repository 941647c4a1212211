package restore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/restore"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a bucket that was in use, and an etcd.
type world struct {
	t      *testing.T
	bucket *bucket.Memory
	store  *catalog.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, bucket: bucket.NewMemory(1 << 20)}
	w.etcd()
	return w
}

// etcd replaces etcd by an empty one, and returns it.
func (w *world) etcd() *embedded.Etcd {
	w.t.Helper()
	e, err := embedded.StartEtcd(w.t.Context(), embedded.Config{
		NoSync: true,
		Dir:    w.t.TempDir(), Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	w.must(err)
	w.t.Cleanup(func() { e.Close() })
	w.store = catalog.New(e.Client(), "")
	return e
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(key string, content []byte) {
	w.t.Helper()
	w.must(w.bucket.Put(w.t.Context(), key, bytes.NewReader(content), bucket.PutOptions{Size: int64(len(content))}))
}

// publish indexes a repo as an indexer does, and returns its root. With bare the
// manifest lacks the desired record.
func (w *world) publish(desired *catalogv1.Desired, content string, bare bool) *catalogv1.Root {
	w.t.Helper()
	return w.publishShard(desired, content, &catalogv1.ShardRef{}, bare)
}

// publishShard is publish with a given shard.
func (w *world) publishShard(desired *catalogv1.Desired, content string, shard *catalogv1.ShardRef, bare bool) *catalogv1.Root {
	w.t.Helper()
	ctx := w.t.Context()
	_, _, err := w.store.PutDesired(ctx, desired)
	w.must(err)
	lease, err := w.store.AcquireLease(ctx, desired.Name, time.Minute)
	w.must(err)
	root := w.attempt(lease, content, shard, bare)
	_, err = w.store.Publish(ctx, lease, lease.Root(), root)
	w.must(errors.Join(err, lease.Release(ctx)))
	return w.root(desired.Name)
}

// attempt does the work of a job under its lease, up to the publication: it puts a shard and the manifest,
// and returns the root.
func (w *world) attempt(lease *catalog.Lease, content string, shard *catalogv1.ShardRef, bare bool) *catalogv1.Root {
	w.t.Helper()
	desired := lease.Desired()
	digest := sha256.Sum256([]byte(content))
	shard.Digest, shard.Key, shard.SizeBytes = digest[:], catalog.ShardKey(lease.Fence(), digest), uint64(len(content))
	w.put(shard.Key, []byte(content))
	root := &catalogv1.Root{
		Repo: desired.GetName(), Url: desired.GetUrl(), Generation: lease.NextGeneration(), Epoch: desired.GetEpoch(),
		Branches: []*catalogv1.Branch{{Name: "main", Commit: "c"}}, Shards: []*catalogv1.ShardRef{shard},
	}
	manifest := &catalogv1.Manifest{Root: root}
	if !bare {
		manifest.Desired = desired
	}
	data, err := proto.Marshal(manifest)
	w.must(err)
	sum := sha256.Sum256(data)
	root.ManifestKey, root.ManifestDigest = catalog.ManifestKey(lease.Fence(), root.Repo, root.Generation, sum), sum[:]
	w.put(root.ManifestKey, data)
	return root
}

func (w *world) root(name string) *catalogv1.Root {
	w.t.Helper()
	root, err := w.store.GetRoot(w.t.Context(), name)
	w.must(err)
	return root.Record
}

// restore runs the restorer and returns a line for each repo, sorted.
func (w *world) restore(r restore.Restorer) (lines []string, err error) {
	w.t.Helper()
	r.Store, r.Bucket = w.store, w.bucket
	err = r.Run(w.t.Context(), func(repo restore.Repo) error {
		lines = append(lines, fmt.Sprintf("%s %d/%d skipped=%v %d", repo.Name, repo.Generation, repo.Newest, repo.Skipped, len(repo.Problems)))
		return nil
	}, func(key string, err error) { lines = append(lines, fmt.Sprintf("%s: %v", key, err)) })
	slices.Sort(lines)
	return lines, err
}

// TestRoundTrip: after a restore into an empty etcd the same repos are served and
// desired. Generations and epochs continue above all earlier ones.
func TestRoundTrip(t *testing.T) {
	w := newWorld(t)
	a := &catalogv1.Desired{Name: "a", Url: "https://a", Branches: []string{"main", "gone"}}
	w.publish(a, "one", false)
	rootA, rootB := w.publish(a, "two", false), w.publish(&catalogv1.Desired{Name: "b", Url: "https://b"}, "three", true)
	w.etcd()
	lines, err := w.restore(restore.Restorer{Contents: true})
	w.must(err)
	if want := []string{"a 2/2 skipped=false 0", "b 1/1 skipped=false 0"}; !slices.Equal(lines, want) {
		t.Errorf("restored %q, want %q", lines, want)
	}
	if !proto.Equal(w.root("a"), rootA) || !proto.Equal(w.root("b"), rootB) {
		t.Errorf("roots %v and %v, want %v and %v", w.root("a"), w.root("b"), rootA, rootB)
	}
	for name, branches := range map[string]string{"a": "main gone", "b": "main"} {
		d, err := w.store.GetDesired(t.Context(), name)
		w.must(err)
		if strings.Join(d.Record.Branches, " ") != branches || d.Record.Url != "https://"+name || d.Record.Epoch != w.root(name).Epoch {
			t.Errorf("desired %v", d.Record)
		}
	}
	if next := w.publish(a, "four", false); next.Generation != 3 || next.Epoch <= rootA.Epoch+1000 {
		t.Errorf("the next root is %v", next)
	}
	if _, err := w.restore(restore.Restorer{}); !errors.Is(err, catalog.ErrInUse) {
		t.Errorf("restored into a catalog that is in use: %v", err)
	}
}

// TestIncompleteGenerations: a generation that lacks an object is not served, an
// older one is, and the last request is made again.
func TestIncompleteGenerations(t *testing.T) {
	w := newWorld(t)
	a, b := &catalogv1.Desired{Name: "a", Url: "u"}, &catalogv1.Desired{Name: "b", Url: "u"}
	first := w.publish(a, "one", false)
	missing, short, other := w.publish(a, "two", false), w.publish(a, "three", false), w.publish(b, "four", false)
	w.publish(&catalogv1.Desired{Name: "deleted", Url: "u"}, "five", false)
	w.must(w.bucket.Delete(t.Context(), missing.Shards[0].Key))
	w.put(short.Shards[0].Key, []byte("th"))
	w.put(other.Shards[0].Key, []byte("FOUR"))
	w.put(strings.Replace(first.ManifestKey, "-", "-0", 1), []byte("rubbish"))
	w.etcd()
	for _, dry := range []bool{true, false} {
		lines, err := w.restore(restore.Restorer{DryRun: dry, Skip: []string{"deleted", "delete"}})
		if !errors.Is(err, restore.ErrNotThere) || !strings.Contains(err.Error(), `"delete"`) || slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "skipped=") }) {
			t.Errorf("a misspelt repo is skipped: %q, %v", lines, err)
		}
		w.must(w.store.CheckEmpty(t.Context()))
	}
	dry, err := w.restore(restore.Restorer{DryRun: true, Contents: true, Skip: []string{"deleted"}})
	w.must(err)
	w.must(w.store.CheckEmpty(t.Context()))
	lines, err := w.restore(restore.Restorer{Contents: true, Skip: []string{"deleted"}})
	w.must(err)
	if !slices.Equal(dry, lines) {
		t.Errorf("a dry run says %q, another one %q", dry, lines)
	}
	want := []string{"a 1/3 skipped=false 2", "b 0/1 skipped=false 1", "deleted 0/1 skipped=true 0"}
	if len(lines) != 4 || !slices.Equal(lines[:3], want) || !strings.Contains(lines[3], "not a manifest") {
		t.Errorf("restored %q, want %q", lines, want)
	}
	if got := w.root("a"); !proto.Equal(got.Shards[0], first.Shards[0]) {
		t.Errorf("root %v", got)
	}
	for _, d := range []*catalogv1.Desired{a, b} {
		status, err := w.store.RepoStatus(t.Context(), d.Name)
		if err != nil || status.Epoch <= status.PublishedEpoch {
			t.Errorf("%s is not asked for: %v, %v", d.Name, status, err)
		}
	}
	if _, err := w.store.GetDesired(t.Context(), "deleted"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("a repo that was to be skipped: %v", err)
	}
	if next := w.publish(a, "six", false); next.Generation != 4 {
		t.Errorf("the next root is %v", next)
	}
}

// TestBucketThatIsAway: a bucket that is away is an error, and restores nothing.
func TestBucketThatIsAway(t *testing.T) {
	w := newWorld(t)
	w.publish(&catalogv1.Desired{Name: "a", Url: "u"}, "one", false)
	w.etcd()
	ctx, cancel := context.WithCancel(t.Context())
	r := restore.Restorer{Store: w.store, Bucket: w.bucket}
	err := r.Run(ctx, func(restore.Repo) error { cancel(); return ctx.Err() }, nil)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
