package serving_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/local"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router"
	"github.com/trawl-search/trawl/services/searcher"
)

func TestMain(m *testing.M) {
	// The lexers of the web pages share a clock, which stops by itself some time after the last match.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// cluster is one router and some searchers.
type cluster struct {
	t       *testing.T
	dir     string
	servers *embedded.Embedded
	bucket  bucket.Bucket
	store   *catalog.Store
	tel     *telemetry.Telemetry
	spans   *tracetest.InMemoryExporter
	otlp    string // where the roles send their traces; empty: to spans

	replication int
	diskBudget  string         // of searchers started from now on; empty: the default
	maxResponse int            // of searchers started from now on; 0: the default
	advertise   map[int]string // addresses that searchers advertise instead of their own
	zones       map[int]string // of searchers started from now on
	zone        string         // of the router
	access      access.Config  // zero: off
	processors  float64        // that one caller may keep busy; 0: no limit
	calls       int            // of one caller at once; 0: the default
	// oneProcess: the router calls the searchers directly, as in a process of all roles.
	oneProcess bool
	locals     map[string]*server.Local // the searchers, by address
	routerHTTP string
	routerGRPC string
	searchers  []string // where their gRPC is
	conn       *grpc.ClientConn
	search     searchv1.SearchServiceClient
	ingest     ingestv1.IngestServiceClient
}

// startCluster starts a router and searchers named s0, s1 and so on, and waits
// until they are ready.
func startCluster(t *testing.T, searchers, replication int) *cluster {
	t.Helper()
	return startIn(t, false, searchers, replication)
}

// startIn is startCluster, as one process or as several.
func startIn(t *testing.T, oneProcess bool, searchers, replication int) *cluster {
	t.Helper()
	tel, spans := telemetrytest.New(t)
	return startWith(t, &cluster{oneProcess: oneProcess, replication: replication, tel: tel, spans: spans}, searchers)
}

// startWith starts a cluster with the settings in c.
func startWith(t *testing.T, c *cluster, searchers int) *cluster {
	t.Helper()
	c.t, c.dir = t, t.TempDir()
	var err error
	c.servers, err = embedded.Start(t.Context(), embedded.Config{
		NoSync: true,
		Dir:    filepath.Join(c.dir, "servers"), Heartbeat: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	c.must(err)
	t.Cleanup(func() { c.must(c.servers.Close()) })
	c.bucket, err = bucket.OpenFolder(filepath.Join(c.dir, "bucket"), 1<<30)
	c.must(err)
	t.Cleanup(func() { c.must(bucket.Close(c.bucket)) })
	c.store = catalog.New(c.servers.Client(), "")
	for i := range searchers {
		c.startSearcher(i)
	}
	c.startRouter()
	return c
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// run runs a role until the test ends or stop is called, and waits until it is ready.
func (c *cluster) run(name string, listen, run func(context.Context) error, httpAddr func() string) (stop func()) {
	c.t.Helper()
	stop = c.runUnready(name, listen, run)
	c.eventually(name+" is ready", func() bool { return ready(httpAddr()) })
	return stop
}

// runUnready is run without waiting until the role is ready.
func (c *cluster) runUnready(name string, listen, run func(context.Context) error) (stop func()) {
	c.t.Helper()
	c.must(listen(c.t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	c.t.Cleanup(stop)
	return stop
}

func ready(addr string) bool {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + "/readyz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// eventually waits until holds returns true.
func (c *cluster) eventually(what string, holds func() bool) {
	c.t.Helper()
	testrun.Until(c.t, what, holds)
}

func free(s *server.Config) {
	s.GRPC, s.HTTP, s.DrainDelay = "127.0.0.1:0", "127.0.0.1:0", 50*time.Millisecond
}

func (c *cluster) cache(i int) string { return filepath.Join(c.dir, fmt.Sprint("cache", i)) }

func (c *cluster) startSearcher(i int) (stop func()) {
	c.t.Helper()
	s, stop := c.startUnready(i)
	c.eventually(fmt.Sprint("s", i, " is ready"), func() bool { return ready(s.HTTPAddr().String()) })
	return stop
}

// startUnready is startSearcher without waiting until the searcher is ready.
func (c *cluster) startUnready(i int) (s *searcher.Searcher, stop func()) {
	c.t.Helper()
	var cfg searcher.Config
	cfg.SetDefaults()
	free(&cfg.Config)
	cfg.ID, cfg.CacheDir, cfg.Replication, cfg.Advertise = fmt.Sprint("s", i), c.cache(i), c.replication, c.advertise[i]
	cfg.Zone = c.zones[i]
	if c.access.Asked() {
		cfg.Access = c.access
	}
	if c.diskBudget != "" {
		cfg.DiskBudget = c.diskBudget
	}
	if c.maxResponse > 0 {
		cfg.Limits.ResponseBytes = c.maxResponse
	}
	// Each run has its own metrics, like a process of its own.
	tel := c.telemetry("searcher", func() *telemetry.Telemetry {
		if i == 0 {
			return c.tel
		}
		other, _ := telemetrytest.New(c.t)
		return other
	})
	s, err := searcher.New(cfg, searcher.Deps{Etcd: c.servers.Client(), Bucket: c.bucket, Telemetry: tel})
	c.must(err)
	stop = c.runUnready(cfg.ID, s.Listen, s.Run)
	c.searchers = append(c.searchers, s.GRPCAddr().String())
	if c.locals == nil {
		c.locals = make(map[string]*server.Local)
	}
	c.locals[s.Address()] = s.Local()
	return s, stop
}

func (c *cluster) startRouter() {
	c.t.Helper()
	jobs, err := queue.New(c.servers.Conn(), queue.Config{})
	c.must(err)
	var cfg router.Config
	cfg.SetDefaults()
	free(&cfg.Config)
	cfg.Replication, cfg.Zone = c.replication, c.zone
	cfg.CallerProcessors, cfg.CallerCalls = c.processors, cmp.Or(c.calls, cfg.CallerCalls)
	if c.access.Asked() {
		cfg.Access = c.access
	}
	r, err := router.New(cfg, router.Deps{
		Etcd: c.servers.Client(), Queue: jobs, Telemetry: c.telemetry("router", func() *telemetry.Telemetry { return c.tel }), Local: c.local,
	})
	c.must(err)
	c.run("router", r.Listen, r.Run, func() string { return r.HTTPAddr().String() })
	c.routerHTTP, c.routerGRPC = r.HTTPAddr().String(), r.GRPCAddr().String()
	c.conn = c.dial(c.routerGRPC)
	c.search, c.ingest = searchv1.NewSearchServiceClient(c.conn), ingestv1.NewIngestServiceClient(c.conn)
}

// local returns the searcher at an address in one process, nil otherwise.
func (c *cluster) local(address string) grpc.ClientConnInterface {
	if !c.oneProcess {
		return nil
	}
	if here, ok := c.locals[address]; ok {
		return here
	}
	return nil
}

// inOneAndInSeveral runs a test twice: with roles that call each other directly, and with
// roles that call each other over the network.
func inOneAndInSeveral(t *testing.T, test func(t *testing.T, oneProcess bool)) {
	t.Helper()
	t.Run("one process", func(t *testing.T) { test(t, true) })
	t.Run("several", func(t *testing.T) { test(t, false) })
}

// telemetry returns a role's telemetry. If the cluster has an OTLP endpoint, the role gets its
// own, which sends traces there; otherwise telemetry returns that of usual.
func (c *cluster) telemetry(role string, usual func() *telemetry.Telemetry) *telemetry.Telemetry {
	c.t.Helper()
	if c.otlp == "" {
		return usual()
	}
	var cfg telemetry.Config
	cfg.SetDefaults()
	cfg.OTLPEndpoint = c.otlp
	tel, err := telemetry.Start(c.t.Context(), cfg, telemetry.Identity{Service: "trawl-" + role}, telemetry.WithLogs(c.t.Output()))
	c.must(err)
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = tel.Shutdown(ctx) // without a collector the remaining spans are lost
	})
	return tel
}

// dial connects to a role until the test ends.
func (c *cluster) dial(address string, more ...grpc.DialOption) *grpc.ClientConn {
	c.t.Helper()
	var client server.ClientConfig
	client.SetDefaults()
	conn, err := server.Dial(address, client, local.NewCredentials(), c.tel, more...)
	c.must(err)
	c.t.Cleanup(func() { c.must(conn.Close()) })
	return conn
}

// publish builds a shard for each map of files and makes them the next
// generation of the repo, as an indexer does.
func (c *cluster) publish(repo string, shards ...map[string]string) (revision int64) {
	c.t.Helper()
	_, _, err := c.store.PutDesired(c.t.Context(), &catalogv1.Desired{Name: repo, Url: "https://" + repo})
	c.must(err)
	lease, err := c.store.AcquireLease(c.t.Context(), repo, time.Minute)
	c.must(err)
	root := &catalogv1.Root{
		Repo: repo, Id: zoektID(repo), Generation: lease.NextGeneration(), Epoch: lease.Desired().Epoch, Url: "https://" + repo,
		Branches: []*catalogv1.Branch{{Name: "main", Commit: fmt.Sprintf("%040d", lease.NextGeneration())}},
	}
	for _, files := range shards {
		root.Shards = append(root.Shards, c.upload(lease.Fence(), root, files))
	}
	revision, err = c.store.Publish(c.t.Context(), lease, lease.Root(), root)
	c.must(err)
	c.must(lease.Release(c.t.Context()))
	return revision
}

func (c *cluster) upload(fence int64, root *catalogv1.Root, files map[string]string) *catalogv1.ShardRef {
	c.t.Helper()
	var object bytes.Buffer
	b, err := build.NewBuilder(&object, build.Options{})
	c.must(err)
	c.must(b.AddRepo(docstore.Repo{
		Name: root.Repo, URL: root.Url, Generation: root.Generation,
		Branches: []docstore.Branch{{Name: "main", Commit: root.Branches[0].Commit}},
	}))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		c.must(b.Add(build.Document{Path: []byte(path), Content: []byte(files[path]), Branches: []uint32{0}, Language: languageOf(path)}))
	}
	result, err := b.Close()
	c.must(err)
	digest := searchapi.Digest(result.SHA256)
	key := catalog.ShardKey(fence, digest)
	c.must(c.bucket.Put(c.t.Context(), key, bytes.NewReader(object.Bytes()), bucket.PutOptions{Size: result.Size, SHA256: result.SHA256}))
	return &catalogv1.ShardRef{Repos: 1, Digest: digest[:], Key: key, SizeBytes: uint64(result.Size), Documents: result.Documents}
}

func languageOf(path string) string {
	if strings.HasSuffix(path, ".go") {
		return "Go"
	}
	return ""
}

// find searches and fails the test on an error.
func (c *cluster) find(query string, options *searchv1.SearchOptions) *searchv1.SearchResponse {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	resp, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: query, Options: options})
	c.must(err)
	return resp
}

// paths returns the repo:path of each file in the answer.
func paths(resp *searchv1.SearchResponse) (list []string) {
	for _, f := range resp.Files {
		list = append(list, f.Repo+":"+string(f.Path))
	}
	return list
}
