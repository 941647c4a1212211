package router_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a router on embedded servers, without searchers.
type running struct {
	search   searchv1.SearchServiceClient
	ingest   ingestv1.IngestServiceClient
	store    *catalog.Store
	jobs     *queue.Queue
	httpAddr string
	etcdAway func()
	stop     func()
}

func start(t *testing.T) *running {
	t.Helper()
	dir := t.TempDir()
	servers, err := embedded.Start(t.Context(), embedded.Config{
		NoSync: true,
		Dir:    filepath.Join(dir, "servers"), Heartbeat: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	away := sync.OnceFunc(func() { servers.Close() })
	t.Cleanup(away)
	// A client of its own, which survives etcd.
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{servers.Etcd.Endpoint()}})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	jobs, err := queue.New(servers.Conn(), queue.Config{})
	must(t, err)
	r, stop := serve(t, router.Deps{Etcd: client, Queue: jobs}, func(cfg *router.Config) { cfg.Source.Folders = []string{dir} })
	conn, err := grpc.NewClient(r.GRPCAddr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { stop(); conn.Close() })
	return &running{
		search: searchv1.NewSearchServiceClient(conn), ingest: ingestv1.NewIngestServiceClient(conn),
		store: catalog.New(client, ""), jobs: jobs, httpAddr: r.HTTPAddr().String(), etcdAway: away, stop: stop,
	}
}

// serve runs a router on free ports until stop, with defaults that change changes.
func serve(t *testing.T, deps router.Deps, change func(*router.Config)) (r *router.Router, stop func()) {
	t.Helper()
	deps.Telemetry, _ = telemetrytest.New(t)
	var cfg router.Config
	cfg.SetDefaults()
	cfg.GRPC, cfg.HTTP, cfg.DrainDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	change(&cfg)
	r, err := router.New(cfg, deps)
	must(t, err)
	must(t, r.Listen(t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return r, sync.OnceFunc(func() { cancel(); serving.Wait() })
}

var must = testrun.Must

func wantField(t *testing.T, err error, code codes.Code, field string) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("got %v, want %v", err, code)
		return
	}
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok && bad.FieldViolations[0].Field == field {
			return
		}
	}
	t.Errorf("no detail names the field %s: %v", field, err)
}

func TestPutRepoRules(t *testing.T) {
	r := start(t)
	for name, c := range map[string]struct {
		req   *ingestv1.PutRepoRequest
		field string
	}{
		"leading dash":       {&ingestv1.PutRepoRequest{Url: "--upload-pack=x"}, "url"},
		"scheme":             {&ingestv1.PutRepoRequest{Url: "ftp://host/x"}, "url"},
		"helper":             {&ingestv1.PutRepoRequest{Url: "ext::sh -c id"}, "url"},
		"private address":    {&ingestv1.PutRepoRequest{Url: "https://169.254.169.254/x"}, "url"},
		"folder not allowed": {&ingestv1.PutRepoRequest{Url: "/etc"}, "url"},
		"empty":              {&ingestv1.PutRepoRequest{}, "url"},
		"name":               {&ingestv1.PutRepoRequest{Url: "https://github.com/a/b", Name: "a/../b"}, "name"},
		"branch":             {&ingestv1.PutRepoRequest{Url: "https://github.com/a/b", Branches: []string{"-x"}}, "branches"},
		"rank":               {&ingestv1.PutRepoRequest{Url: "https://github.com/a/b", Facts: &ingestv1.RepoFacts{Rank: 101}}, "facts.rank"},
		"fact":               {&ingestv1.PutRepoRequest{Url: "https://github.com/a/b", FactsMask: &fieldmaskpb.FieldMask{Paths: []string{"size"}}}, "facts_mask"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.ingest.PutRepo(t.Context(), c.req)
			wantField(t, err, codes.InvalidArgument, c.field)
		})
	}
}

func TestRepoLifeWithoutIndexer(t *testing.T) {
	r := start(t)
	put, err := r.ingest.PutRepo(t.Context(), &ingestv1.PutRepoRequest{Url: "https://github.com/org/name.git"})
	must(t, err)
	if put.Name != "github.com/org/name" || put.Epoch != 1 {
		t.Errorf("put: %v", put)
	}
	if put, err = r.ingest.PutRepo(t.Context(), &ingestv1.PutRepoRequest{Url: "https://github.com/org/name.git"}); err != nil || put.Epoch != 2 {
		t.Errorf("put again: %v, %v", put, err)
	}
	// It is in etcd, whatever became of the wake-up.
	desired, err := r.store.GetDesired(t.Context(), put.Name)
	if err != nil || desired.Record.Epoch != 2 {
		t.Errorf("desired: %v, %v", desired, err)
	}
	got, err := r.ingest.GetRepo(t.Context(), &ingestv1.GetRepoRequest{Name: put.Name})
	if err != nil || got.Status.State != ingestv1.State_STATE_QUEUED || got.Status.Epoch != 2 {
		t.Errorf("get: %v, %v", got, err)
	}
	_, err = r.ingest.PutRepo(t.Context(), &ingestv1.PutRepoRequest{Url: "https://github.com/org/other"})
	must(t, err)
	page, err := r.ingest.ListRepos(t.Context(), &ingestv1.ListReposRequest{PageSize: 1})
	if err != nil || len(page.Repos) != 1 || page.NextAfter != put.Name {
		t.Errorf("first page: %v, %v", page, err)
	}
	if page, err = r.ingest.ListRepos(t.Context(), &ingestv1.ListReposRequest{PageSize: 1, After: page.NextAfter}); err != nil || len(page.Repos) != 1 || page.NextAfter != "" {
		t.Errorf("second page: %v, %v", page, err)
	}
	_, err = r.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: put.Name})
	must(t, err)
	_, err = r.ingest.GetRepo(t.Context(), &ingestv1.GetRepoRequest{Name: put.Name})
	wantField(t, err, codes.NotFound, "name")
}

// TestWatchEndsWithTheRouter: a watch sees changes, and does not hold up a shutdown.
func TestWatchEndsWithTheRouter(t *testing.T) {
	r := start(t)
	_, err := r.ingest.PutRepo(t.Context(), &ingestv1.PutRepoRequest{Url: "https://github.com/a/b"})
	must(t, err)
	watch, err := r.ingest.WatchRepo(t.Context(), &ingestv1.WatchRepoRequest{Name: "github.com/a/b"})
	must(t, err)
	first, err := watch.Recv()
	if err != nil || first.Status.Epoch != 1 {
		t.Fatalf("first: %v, %v", first, err)
	}
	_, err = r.ingest.PutRepo(t.Context(), &ingestv1.PutRepoRequest{Url: "https://github.com/a/b"})
	must(t, err)
	if second, err := watch.Recv(); err != nil || second.Status.Epoch != 2 {
		t.Fatalf("second: %v, %v", second, err)
	}
	go r.stop()
	if _, err = watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("at the shutdown: %v", err)
	}
}

func TestNoSearcher(t *testing.T) {
	r := start(t)
	resp, err := r.search.Search(t.Context(), &searchv1.SearchRequest{Query: "x"})
	if err != nil || !resp.Coverage.Complete || resp.Coverage.Requested != 0 {
		t.Errorf("nothing published: %v, %v", resp, err)
	}
	if body := get(t, "http://"+r.httpAddr+"/readyz"); !strings.Contains(body, "searchers") {
		t.Errorf("readiness does not say that there is no searcher: %s", body)
	}
	if body := get(t, "http://"+r.httpAddr+"/metrics"); !strings.Contains(body, "trawl_router_query_seconds") {
		t.Error("no metric of queries")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return string(body)
}

// TestEtcdAway: a linearizable query says that etcd is away, one that may be a
// little behind is answered, and nothing is acknowledged that is not in etcd.
func TestEtcdAway(t *testing.T) {
	r := start(t)
	_, err := r.search.Search(t.Context(), &searchv1.SearchRequest{Query: "x"})
	must(t, err)
	r.etcdAway()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = r.search.Search(ctx, &searchv1.SearchRequest{Query: "x"})
	if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
		t.Errorf("linearizable: %v", err)
	}
	bounded := &searchv1.Consistency{Level: &searchv1.Consistency_Bounded{Bounded: durationpb.New(time.Hour)}}
	_, err = r.search.Search(t.Context(), &searchv1.SearchRequest{Query: "x", Options: &searchv1.SearchOptions{Consistency: bounded}})
	if err != nil {
		t.Errorf("bounded: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err = r.ingest.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: "https://github.com/a/b"}); err == nil {
		t.Error("acknowledged without etcd")
	}
}

func TestConfigIsChecked(t *testing.T) {
	var cfg router.Config
	cfg.SetDefaults()
	if err := cfg.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	cfg.Replication, cfg.MaxTimeout = 0, -1
	err := cfg.Validate()
	for _, key := range []string{"replication", "max-timeout"} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+key+" = ") {
			t.Errorf("%s: got %v", key, err)
		}
	}
}
