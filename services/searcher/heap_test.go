package searcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher"
)

// TestHeapOfASearcher bounds the heap of a whole searcher for each repo with a shard of its own,
// after searches of all of them: the open shard, its entry in the store, and the root in the view
// of the catalog. etcd is another process, since its heap is not the searcher's. To leave out what
// a searcher takes without any repo, the test compares a searcher of one repo with one of many
// more. The limit is twice the 4,500 to 4,700 bytes that were measured, and more for buffers of
// connections, which are live or not by chance: nine were seen, of 64 KiB, a thousand bytes for each repo.
func TestHeapOfASearcher(t *testing.T) {
	const (
		repos = 512
		limit = 11000
	)
	c := newHeapCluster(t)
	c.publish(0, 1)
	c.heapOfSearcher(1) // allocates what a process allocates once
	base := c.heapOfSearcher(1)
	c.publish(1, 1+repos)
	perRepo := (c.heapOfSearcher(1+repos) - base) / repos
	t.Logf("%d bytes for each of %d repos", perRepo, repos)
	if perRepo > limit {
		t.Errorf("a searcher keeps %d bytes on the heap for each repo, over %d", perRepo, limit)
	}
}

// heapCluster is etcd and a bucket of published shards.
type heapCluster struct {
	t      *testing.T
	dir    string
	etcd   *clientv3.Client
	bucket bucket.Bucket
	plan   searchv1.Plan
}

func newHeapCluster(t *testing.T) *heapCluster {
	t.Helper()
	c := &heapCluster{t: t, dir: t.TempDir()}
	c.etcd = startEtcd(t, c.dir)
	folder, err := bucket.OpenFolder(filepath.Join(c.dir, "bucket"), 1<<20)
	must(t, err)
	t.Cleanup(func() { folder.Close() })
	c.bucket = folder
	return c
}

// etcdDirEnv and etcdAddressEnv make the test's program an etcd server.
const (
	etcdDirEnv     = "TRAWL_TEST_ETCD_DIR"
	etcdAddressEnv = "TRAWL_TEST_ETCD_ADDRESS"
)

// runEtcd serves until its parent closes stdin.
func runEtcd(dir string) {
	servers, err := embedded.Start(context.Background(), embedded.Config{
		NoSync: true,
		Dir:    dir, EtcdListen: os.Getenv(etcdAddressEnv), Heartbeat: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // returns when the parent closes it
	servers.Close()
}

func startEtcd(t *testing.T, dir string) *clientv3.Client {
	t.Helper()
	address := testrun.Address(t)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(context.Background(), self)
	cmd.Env = append(os.Environ(), etcdDirEnv+"="+filepath.Join(dir, "etcd"), etcdAddressEnv+"="+address)
	cmd.Stderr = os.Stderr
	hold, err := cmd.StdinPipe()
	must(t, err)
	wait, err := testrun.Start(cmd)
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(hold.Close(), wait())) })
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{"http://" + address}})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// publish indexes and publishes the repos with these numbers.
func (c *heapCluster) publish(from, to int) {
	c.t.Helper()
	store := catalog.New(c.etcd, "")
	for i := from; i < to; i++ {
		name := fmt.Sprintf("git.example/team/repo-%04d", i)
		_, _, err := store.PutDesired(c.t.Context(), &catalogv1.Desired{Name: name, Url: "https://" + name})
		must(c.t, err)
		lease, err := store.AcquireLease(c.t.Context(), name, time.Minute)
		must(c.t, err)
		ref := c.put(lease.Fence(), name)
		_, err = store.Publish(c.t.Context(), lease, lease.Root(), &catalogv1.Root{
			Repo: name, Generation: lease.NextGeneration(), Epoch: lease.Desired().GetEpoch(), Url: "https://" + name,
			Branches: []*catalogv1.Branch{{Name: "main", Commit: "0123456789abcdef0123456789abcdef01234567"}},
			Shards:   []*catalogv1.ShardRef{ref},
		})
		must(c.t, errors.Join(err, lease.Release(c.t.Context())))
		c.plan.Shards = append(c.plan.Shards, &searchv1.PlannedShard{Digest: ref.Digest, Repos: &searchv1.PlannedShard_All{All: true}})
	}
}

// put builds a repo's shard, of a few files, and puts it into the bucket.
func (c *heapCluster) put(fence int64, name string) *catalogv1.ShardRef {
	c.t.Helper()
	var file bytes.Buffer
	b, err := build.NewBuilder(&file, build.Options{})
	must(c.t, err)
	must(c.t, b.AddRepo(docstore.Repo{Name: name, Branches: []docstore.Branch{{Name: "main", Commit: "0123456789abcdef0123456789abcdef01234567"}}}))
	for k := range 20 {
		text := fmt.Sprintf("package p%d\n\n// %s\nfunc f%d() int { return %d }\n", k, name, k, k)
		must(c.t, b.Add(build.Document{
			Path: fmt.Appendf(nil, "dir/file%02d.go", k), Content: []byte(text), Branches: []uint32{0}, Language: "Go",
		}))
	}
	done, err := b.Close()
	must(c.t, err)
	ref := &catalogv1.ShardRef{
		Digest: done.SHA256[:], Key: catalog.ShardKey(fence, done.SHA256), SizeBytes: uint64(done.Size), FormatVersion: 1,
		Documents: done.Documents, ContentBytes: done.ContentBytes, Languages: []string{"Go"},
	}
	must(c.t, c.bucket.Put(c.t.Context(), ref.Key, &file, bucket.PutOptions{Size: done.Size}))
	return ref
}

// heapOfSearcher starts a searcher, makes it load and search all shards (want of them), and returns
// how much the live heap grew.
func (c *heapCluster) heapOfSearcher(want int) int64 {
	c.t.Helper()
	var cfg searcher.Config
	cfg.SetDefaults()
	cfg.GRPC, cfg.HTTP, cfg.DrainDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	cfg.ID, cfg.CacheDir = "s0", filepath.Join(c.dir, fmt.Sprint("cache-", want))
	tel, spans := telemetrytest.New(c.t)
	before := testrun.LiveHeap()
	s, err := searcher.New(cfg, searcher.Deps{Etcd: c.etcd, Bucket: c.bucket, Telemetry: tel})
	must(c.t, err)
	must(c.t, s.Listen(c.t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			c.t.Error(err)
		}
	})
	defer func() { cancel(); running.Wait() }()
	says(c.t, s.HTTPAddr().String(), "ready")
	for range 3 {
		c.search(s.GRPCAddr().String(), want)
	}
	spans.Reset()
	after := testrun.LiveHeap()
	runtime.KeepAlive(s)
	return after - before
}

// search asks for all shards, and checks that all were searched.
func (c *heapCluster) search(addr string, want int) {
	c.t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(c.t, err)
	defer conn.Close()
	coverage, err := ask(c.t.Context(), searchv1.NewSearchServiceClient(conn), &searchv1.SearchRequest{Query: "return file:go", Plan: &c.plan})
	must(c.t, err)
	if got := int(coverage.GetSearched()); got != want {
		c.t.Fatalf("%d shards were searched, not %d: %v", got, want, coverage)
	}
}
