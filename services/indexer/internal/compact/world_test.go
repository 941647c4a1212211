package compact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/gc"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

const (
	hold     = 20 * time.Second
	leaseTTL = 5 * time.Second
)

// files are the documents of a repo, by path.
type files map[string]string

// world is a catalog and a bucket in memory, for a bubble of synctest, and what
// was published of each repo: its files by epoch.
type world struct {
	t      *testing.T
	etcd   *etcdtest.Server
	bucket *bucket.Memory
	truth  *catalog.Store
	cfg    Config

	mu     sync.Mutex
	wanted map[string]map[uint64]files
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, etcd: etcdtest.New(), bucket: bucket.NewMemory(1 << 28), wanted: map[string]map[uint64]files{}}
	w.truth = w.store(nil)
	w.cfg.SetDefaults()
	w.cfg.Settle, w.cfg.Deltas, w.cfg.Rate = 0, 2, 1<<30
	return w
}

// store is the catalog as one process reaches it; step is called before and after
// every operation, and fails it.
func (w *world) store(step func() error) *catalog.Store {
	var between func(context.Context) error
	if step != nil {
		between = func(context.Context) error { return step() }
	}
	return catalog.New(w.etcd.Client(between), "")
}

func (w *world) worker(step func() error) *Worker {
	return &Worker{
		Config: w.cfg, Store: w.store(step), Bucket: stepping{w.bucket, step}, TempDir: w.t.TempDir(), LeaseTTL: leaseTTL,
		Waiting: func(context.Context) bool { return false }, Jobs: &Jobs{}, Version: "test", Metrics: w.metrics(), Log: slog.New(slog.DiscardHandler),
	}
}

func (w *world) scheduler(step func() error) *Scheduler {
	return &Scheduler{Config: w.cfg, Store: w.store(step), Metrics: w.metrics(), Log: slog.New(slog.DiscardHandler)}
}

func (w *world) metrics() *Metrics {
	m := NewMetrics(prometheus.NewRegistry())
	return m
}

// stepping is a bucket that calls step before and after what it does.
type stepping struct {
	bucket.Bucket

	step func() error
}

func (b stepping) around(do func() error) error {
	if b.step == nil {
		return do()
	}
	if err := b.step(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return b.step()
}

func (b stepping) Put(ctx context.Context, key string, r io.Reader, opts bucket.PutOptions) error {
	return b.around(func() error { return b.Bucket.Put(ctx, key, r, opts) })
}

func (b stepping) Get(ctx context.Context, key string) (r io.ReadCloser, info bucket.Info, err error) {
	err = b.around(func() error { r, info, err = b.Bucket.Get(ctx, key); return err })
	return r, info, err
}

func (b stepping) GetRange(ctx context.Context, key string, off, n int64) (r io.ReadCloser, err error) {
	err = b.around(func() error { r, err = b.Bucket.GetRange(ctx, key, off, n); return err })
	return r, err
}

// push requests the files of a repo and publishes them, with delta next to the existing shards. It
// returns the error that stopped it.
func (w *world) push(ctx context.Context, store *catalog.Store, b bucket.Bucket, repo string, next files, delta bool) error {
	if _, _, err := store.PutDesired(ctx, &catalogv1.Desired{Name: repo, Url: "https://" + repo}); err != nil {
		return err
	}
	lease, err := store.AcquireLease(context.WithoutCancel(ctx), repo, leaseTTL)
	if err != nil {
		return err
	}
	defer lease.Release(context.WithoutCancel(ctx))
	w.mu.Lock()
	if w.wanted[repo] == nil {
		w.wanted[repo] = map[uint64]files{}
	}
	w.wanted[repo][lease.Desired().GetEpoch()] = next
	w.mu.Unlock()
	root := &catalogv1.Root{
		Repo: repo, Generation: lease.NextGeneration(), Epoch: lease.Desired().GetEpoch(), PublishedAt: timestamppb.Now(),
		Branches: []*catalogv1.Branch{{Name: "main", Commit: fmt.Sprintf("%040x", lease.Fence())}}, Url: "https://" + repo,
	}
	changed := next
	if old := lease.Root(); old != nil && delta {
		changed = w.hide(root, old.Record, next)
	} else {
		delta = false
	}
	ref, err := w.build(ctx, b, lease.Fence(), root, changed)
	if err != nil {
		return err
	}
	ref.Delta = delta
	root.Shards = append(root.Shards, ref)
	if err := shardio.PutManifest(ctx, b, lease.Fence(), &catalogv1.Manifest{Root: root, Desired: lease.Desired()}); err != nil {
		return err
	}
	_, err = store.Publish(context.WithoutCancel(ctx), lease, lease.Root(), root)
	return err
}

func (w *world) build(ctx context.Context, b bucket.Bucket, fence int64, root *catalogv1.Root, docs files) (*catalogv1.ShardRef, error) {
	var data bytes.Buffer
	builder, err := build.NewBuilder(&data, build.Options{})
	if err != nil {
		return nil, err
	}
	record := docstore.Repo{Name: root.Repo, URL: root.Url, Generation: root.Generation, Branches: []docstore.Branch{{Name: "main", Commit: root.Branches[0].Commit}}}
	err = builder.AddRepo(record)
	for _, path := range slices.Sorted(maps.Keys(docs)) {
		err = errors.Join(err, builder.Add(build.Document{Path: []byte(path), Content: []byte(docs[path]), Branches: []uint32{0}, Language: "Go"}))
	}
	built, closed := builder.Close()
	if err := errors.Join(err, closed); err != nil {
		return nil, err
	}
	ref := &catalogv1.ShardRef{
		Digest: built.SHA256[:], Key: catalog.ShardKey(fence, built.SHA256), SizeBytes: uint64(built.Size), FormatVersion: format.Version,
		Documents: built.Documents, ContentBytes: built.ContentBytes, Languages: built.Languages,
		LiveDocuments: built.Documents, LiveContentBytes: built.ContentBytes, LiveSkippedDocuments: built.Skipped,
	}
	return ref, b.Put(ctx, ref.Key, &data, bucket.PutOptions{Size: built.Size, SHA256: built.SHA256})
}

// hide keeps the shards of a root, hides the documents that differ in next, and returns the rest of
// next.
func (w *world) hide(root, old *catalogv1.Root, next files) files {
	changed := maps.Clone(next)
	for _, ref := range old.Shards {
		ref = proto.CloneOf(ref)
		set, err := docstore.ParseSet(ref.Hidden)
		if err != nil {
			w.t.Error(err)
		}
		var hidden []uint32
		w.each(ref, old.Repo, func(number uint32, path, content string) {
			switch {
			case set.Has(number):
			case next[path] == content:
				delete(changed, path)
			default:
				hidden = append(hidden, number)
				ref.LiveDocuments--
				ref.LiveContentBytes -= min(ref.LiveContentBytes, uint64(len(content)))
			}
		})
		ref.Hidden = set.With(hidden...).Code()
		root.Shards = append(root.Shards, ref)
	}
	return changed
}

// each visits all documents of a repo in a shard, with their numbers.
func (w *world) each(ref *catalogv1.ShardRef, repo string, visit func(number uint32, path, content string)) {
	r, _, err := w.bucket.Get(context.Background(), ref.Key)
	if err != nil {
		w.t.Errorf("a shard that is served: %v", err)
		return
	}
	data, err := io.ReadAll(r)
	if err != nil || sha256.Sum256(data) != [32]byte(ref.Digest) {
		w.t.Errorf("%s: %d bytes, %v", ref.Key, len(data), err)
		return
	}
	f, err := format.NewSparse(ref.Key, data, func(int64, int64) error { return nil }, nil)
	if err != nil {
		w.t.Error(err)
		return
	}
	docs, err := docstore.OpenDocs(f)
	if err != nil {
		w.t.Error(err)
		return
	}
	s, err := search.OpenFile(f)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer s.Close()
	i, found, err := docs.FindRepo(repo)
	if err != nil || !found || int(ref.RepoNumber) != i {
		w.t.Errorf("%s has %s as number %d, %v, not %d: %v", ref.Key, repo, i, found, ref.RepoNumber, err)
		return
	}
	first, n, err := docs.RepoDocs(i)
	if err != nil {
		w.t.Error(err)
	}
	for number := range n {
		path, err := docs.AppendPath(nil, first+number)
		if err != nil {
			w.t.Error(err)
		}
		file, err := s.File(context.Background(), repo, path, "", search.Options{}, search.Part{})
		if err != nil {
			w.t.Error(err)
			continue
		}
		visit(number, string(path), string(file.Content))
	}
}

// read returns the files that a root serves.
func (w *world) read(root *catalogv1.Root) files {
	got := files{}
	for _, ref := range root.GetShards() {
		set, err := docstore.ParseSet(ref.GetHidden())
		if err != nil {
			w.t.Error(err)
		}
		w.each(ref, root.GetRepo(), func(number uint32, path, content string) {
			if set.Has(number) {
				return
			}
			if _, twice := got[path]; twice {
				w.t.Errorf("%s has %s twice", root.GetRepo(), path)
			}
			got[path] = content
		})
	}
	return got
}

// check reads all that is served, and compares it with what was published.
func (w *world) check(when string) {
	w.t.Helper()
	for root, err := range w.truth.ListRoots(context.Background()) {
		if err != nil {
			w.t.Fatal(err)
		}
		w.mu.Lock()
		want := w.wanted[root.Record.GetRepo()][root.Record.GetEpoch()]
		w.mu.Unlock()
		if got := w.read(root.Record); !maps.Equal(got, want) {
			w.t.Errorf("%s: generation %d of %s has %v, want %v", when, root.Record.GetGeneration(), root.Record.GetRepo(), got, want)
		}
		for _, key := range []string{root.Record.GetManifestKey()} {
			if _, err := w.bucket.Stat(context.Background(), key); err != nil {
				w.t.Errorf("%s: %v", when, err)
			}
		}
	}
}

// settle plans and compacts until nothing is due.
func (w *world) settle() {
	w.t.Helper()
	time.Sleep(leaseTTL + time.Second)
	s, x := w.scheduler(nil), w.worker(nil)
	for range 50 {
		if err := s.Pass(context.Background(), time.Now()); err != nil {
			w.t.Fatal(err)
		}
		if all, err := w.truth.ListCompactions(context.Background()); err != nil || len(all) == 0 {
			if err != nil {
				w.t.Fatal(err)
			}
			return
		}
		time.Sleep(maxRetry) // failed attempts wait
		for did := true; did; {
			var err error
			if did, err = x.Next(context.Background()); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.t.Error("there is always something to compact")
}

// clean collects garbage, and fails the test unless exactly the served objects remain.
func (w *world) clean() {
	w.t.Helper()
	c := gc.Collector{
		Store: w.truth, Bucket: w.bucket, Log: slog.New(slog.DiscardHandler),
		Config: gc.Config{Hold: hold, Limit: 1_000_000, Memory: time.Hour},
	}
	for range 2 {
		if _, err := c.Pass(context.Background()); err != nil {
			w.t.Error(err)
		}
		time.Sleep(hold + time.Second)
	}
	if _, err := c.Pass(context.Background()); err != nil {
		w.t.Error(err)
	}
	var want, got []string
	for root, err := range w.truth.ListRoots(context.Background()) {
		if err != nil {
			w.t.Fatal(err)
		}
		want = append(want, root.Record.GetManifestKey())
		for _, ref := range root.Record.GetShards() {
			want = append(want, ref.GetKey())
		}
	}
	slices.Sort(want)
	for info, err := range w.bucket.List(context.Background(), "") {
		if err != nil {
			w.t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if want = slices.Compact(want); !slices.Equal(got, want) {
		w.t.Errorf("left are %d objects:\n%s\nserved are %d:\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
	}
}

// publish is push without failures.
func (w *world) publish(repo string, next files, delta bool) {
	w.t.Helper()
	if err := w.push(context.Background(), w.truth, w.bucket, repo, next, delta); err != nil {
		w.t.Fatal(err)
	}
}

// fill publishes repos, some with deltas: enough for a pack and for a merge.
func (w *world) fill(n int) {
	w.t.Helper()
	for i := range n {
		repo := fmt.Sprintf("example.com/repo-%02d", i)
		docs := files{"a.go": "package " + repo, "b.go": "the same everywhere", "dir/c.go": strings.Repeat("line of "+repo+"\n", 1+i*10)}
		w.publish(repo, docs, false)
		for d := range i % 4 {
			docs = maps.Clone(docs)
			docs["a.go"] = fmt.Sprintf("package of %s, change %d", repo, d)
			docs[fmt.Sprintf("new-%d.go", d)] = "new"
			delete(docs, "b.go")
			w.publish(repo, docs, true)
		}
	}
}

var errDead = errors.New("the process is dead")
