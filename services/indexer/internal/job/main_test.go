package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// servers are shared by all tests; each has its own prefix in etcd.
var servers *embedded.Embedded

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "trawl-job-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	servers, err = embedded.Start(context.Background(), embedded.Config{
		NoSync: true,
		Dir:    dir, Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	code := m.Run()
	if err := servers.Close(); err != nil {
		fmt.Println(err)
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Println(err)
		code = 1
	}
	return code
}

// env is a worker on real servers, with everything in memory or temporary.
type env struct {
	*Worker
	t      *testing.T
	bucket *watchedBucket
}

const repoName = "example.com/org/repo"

// newEnv makes a worker that may read repositories below root. Steps, unless it is nil, is called
// for every operation on etcd and the bucket.
func newEnv(t *testing.T, root string, steps func(point string)) *env {
	t.Helper()
	q, err := queue.New(servers.Conn(), queue.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a repeated test starts anew
		if _, err := servers.Client().Delete(context.Background(), "/"+t.Name()+"/", clientv3.WithPrefix()); err != nil {
			t.Error(err)
		}
	})
	w := &watchedBucket{Bucket: bucket.NewMemory(1 << 30), steps: steps}
	e := &env{t: t, bucket: w}
	e.Worker = &Worker{
		Config: Config{Timeout: time.Minute, LeaseTTL: time.Minute, Attempts: 3, Version: "test"},
		Store:  catalog.New(etcdClient(t, steps), "/"+t.Name()+"/"),
		Queue:  q, Bucket: w, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Waiting: func(context.Context) bool { return false },
		Tracer:  noop.NewTracerProvider().Tracer(""),
	}
	var cfg gitsource.FetchConfig
	cfg.SetDefaults()
	cfg.Folders = []string{root}
	if e.Fetcher, err = gitsource.NewFetcher(t.TempDir(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Fetcher.Close() })
	if e.Mirrors, err = OpenMirrors(t.TempDir(), 1<<30); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Mirrors.Close() })
	e.Metrics = NewMetrics(prometheus.NewRegistry())
	return e
}

// etcdClient makes a client whose operations are reported.
func etcdClient(t *testing.T, steps func(string)) *clientv3.Client {
	t.Helper()
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{servers.Etcd.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if steps != nil {
		client.KV = watchedKV{client.KV, steps}
	}
	return client
}

// want makes a repo desired and returns the job for it.
func (e *env) want(url string, branches ...string) *queue.Delivery {
	e.t.Helper()
	return e.wantWith(&catalogv1.Desired{Name: repoName, Url: url, Branches: branches})
}

func (e *env) wantWith(d *catalogv1.Desired) *queue.Delivery {
	e.t.Helper()
	epoch, _, err := e.Store.PutDesired(e.t.Context(), d)
	if err != nil {
		e.t.Fatal(err)
	}
	return &queue.Delivery{Job: queue.Job{Repo: d.GetName(), Epoch: epoch}, NumDelivered: 1}
}

// waited is how many publications of new or known repos were timed.
func (e *env) waited(repo string) uint64 {
	e.t.Helper()
	m := &dto.Metric{}
	if err := e.Metrics.waited.WithLabelValues(repo).(prometheus.Histogram).Write(m); err != nil {
		e.t.Fatal(err)
	}
	return m.GetHistogram().GetSampleCount()
}

// done does a job that must succeed and returns the root.
func (e *env) done(d *queue.Delivery) *catalogv1.Root {
	e.t.Helper()
	if err := e.Handle(e.t.Context(), d); err != nil {
		e.t.Fatal(err)
	}
	return e.root()
}

func (e *env) root() *catalogv1.Root {
	e.t.Helper()
	root, err := e.Store.GetRoot(e.t.Context(), repoName)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return root.Record
}

func (e *env) status() *catalogv1.Status {
	e.t.Helper()
	status, err := e.Store.GetStatus(e.t.Context(), repoName)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		e.t.Fatal(err)
	}
	return status.Record
}

// found lists the documents of a root that a query finds, as path@branches.
func (e *env) found(root *catalogv1.Root, text string) []string {
	e.t.Helper()
	q, err := query.Parse(text, query.ParseOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	ready, err := search.Prepare(q)
	if err != nil {
		e.t.Fatal(err)
	}
	var found []string
	for _, ref := range root.GetShards() {
		name := filepath.Join(e.t.TempDir(), "shard")
		r, _, err := e.bucket.Get(e.t.Context(), ref.GetKey())
		if err != nil {
			e.t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil || len(data) != int(ref.GetSizeBytes()) {
			e.t.Fatalf("%d bytes of %d: %v", len(data), ref.GetSizeBytes(), err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			e.t.Fatal(err)
		}
		s, err := search.Open(name)
		if err != nil {
			e.t.Fatal(err)
		}
		result, err := s.Search(e.t.Context(), ready, search.Options{
			MaxFiles: 1000, MaxMatchesPerFile: 10, Overlays: e.overlay(root, ref),
		})
		if err != nil || result.Incomplete != nil {
			e.t.Fatal(err, result.Incomplete)
		}
		for _, f := range result.Files {
			found = append(found, string(f.Path)+"@"+strings.Join(f.Branches, ","))
		}
		s.Close()
	}
	slices.Sort(found)
	return found
}

// watchedBucket counts and reports what is put.
type watchedBucket struct {
	bucket.Bucket
	steps func(string)

	mu   sync.Mutex
	puts []string
	fail error // of Put
	hold func(ctx context.Context, key string)
}

func (b *watchedBucket) Put(ctx context.Context, key string, r io.Reader, opts bucket.PutOptions) error {
	b.mu.Lock()
	b.puts = append(b.puts, key)
	fail, hold := b.fail, b.hold
	b.mu.Unlock()
	if hold != nil {
		hold(ctx, key)
	}
	if fail != nil {
		return fail
	}
	if b.steps == nil {
		return b.Bucket.Put(ctx, key, r, opts)
	}
	b.steps("before put")
	err := b.Bucket.Put(ctx, key, r, opts)
	b.steps("after put")
	return err
}

func (b *watchedBucket) keys(prefix string) []string {
	var keys []string
	for info, err := range b.List(context.Background(), prefix) {
		if err == nil {
			keys = append(keys, info.Key)
		}
	}
	return keys
}

// watchedKV reports operations on etcd.
type watchedKV struct {
	clientv3.KV
	steps func(string)
}

func (k watchedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	k.steps("before get")
	resp, err := k.KV.Get(ctx, key, opts...)
	k.steps("after get")
	return resp, err
}

func (k watchedKV) Txn(ctx context.Context) clientv3.Txn { return &watchedTxn{k.KV.Txn(ctx), k.steps} }

type watchedTxn struct {
	clientv3.Txn
	steps func(string)
}

func (t *watchedTxn) If(cs ...clientv3.Cmp) clientv3.Txn   { t.Txn = t.Txn.If(cs...); return t }
func (t *watchedTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }
func (t *watchedTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *watchedTxn) Commit() (*clientv3.TxnResponse, error) {
	t.steps("before txn")
	resp, err := t.Txn.Commit()
	t.steps("after txn")
	return resp, err
}

// smallShards makes several shards of little content.
var smallShards = build.Options{MaxSourceBytes: 100}
