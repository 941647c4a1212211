package searcher_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/bucket/buckettest"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(etcdDirEnv); dir != "" {
		runEtcd(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

var must = testrun.Must

// TestLife: a searcher that starts while etcd and the bucket are away reports that, and becomes
// ready with them. It registers the address it got, answers no caller without a plan, and leaves
// the registry when it ends.
func TestLife(t *testing.T) {
	dir := t.TempDir()
	etcd := testrun.Address(t)
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{"http://" + etcd}})
	must(t, err)
	defer client.Close()

	tel, _ := telemetrytest.New(t)
	var cfg searcher.Config
	cfg.SetDefaults()
	cfg.GRPC, cfg.HTTP, cfg.DrainDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	cfg.ID, cfg.CacheDir = "s0", filepath.Join(dir, "cache")
	var away atomic.Bool
	away.Store(true)
	store := &buckettest.Faulty{Bucket: bucket.NewMemory(1 << 20), Fault: func(context.Context, string, string) error {
		if away.Load() {
			return errors.New("there is no bucket b")
		}
		return nil
	}}
	s, err := searcher.New(cfg, searcher.Deps{Etcd: client, Bucket: store, Telemetry: tel})
	must(t, err)
	must(t, s.Listen(t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop := sync.OnceFunc(func() { cancel(); running.Wait() })
	defer stop()
	if body := says(t, s.HTTPAddr().String(), "etcd"); !strings.Contains(body, "registered") {
		t.Errorf("while etcd is away: %s", body)
	}

	servers := startServers(t, dir, etcd)
	defer servers.Close()
	says(t, s.HTTPAddr().String(), `bucket: list object "reachable/": there is no bucket b`)
	away.Store(false)
	says(t, s.HTTPAddr().String(), "ready\n")
	members := membership.NewMembers(t.Context(), servers.Client(), catalog.DefaultPrefix, slog.New(slog.DiscardHandler))
	defer members.Close()
	now, err := members.WaitListed(t.Context())
	must(t, err)
	if len(now.Searchers) != 1 || now.Searchers[0].Address != s.GRPCAddr().String() {
		t.Errorf("registered as %v", now.Searchers)
	}
	refusesCallers(t, s.GRPCAddr().String())
	stop()
	testrun.Until(t, "it is not registered any more", func() bool { return len(members.Snapshot().Searchers) == 0 })
}

func startServers(t *testing.T, dir, etcd string) *embedded.Embedded {
	t.Helper()
	servers, err := embedded.Start(t.Context(), embedded.Config{
		NoSync: true,
		Dir:    filepath.Join(dir, "servers"), EtcdListen: etcd, Heartbeat: 10 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	return servers
}

// says waits until /readyz holds the text.
func says(t *testing.T, addr, text string) (body string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	testrun.Eventually(t, "/readyz says "+text, func(context.Context) error {
		resp, err := client.Get("http://" + addr + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if body = string(got); err == nil && !strings.Contains(body, text) {
			err = errors.New(body)
		}
		return err
	})
	return body
}

func refusesCallers(t *testing.T, addr string) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer conn.Close()
	c := searchv1.NewSearchServiceClient(conn)
	if _, err := ask(t.Context(), c, &searchv1.SearchRequest{Query: "x"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a caller without a plan: %v", err)
	}
	bad := &searchv1.Plan{Shards: []*searchv1.PlannedShard{{Digest: []byte("short")}}}
	if _, err := ask(t.Context(), c, &searchv1.SearchRequest{Query: "x", Plan: bad}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a plan with half a digest: %v", err)
	}
	unknown := &searchv1.Plan{Shards: []*searchv1.PlannedShard{{Digest: make([]byte, 32), Repos: &searchv1.PlannedShard_All{All: true}}}}
	coverage, err := ask(t.Context(), c, &searchv1.SearchRequest{Query: "x", Plan: unknown})
	if err != nil || coverage.Failed != 1 || coverage.Uncovered[0].Reason != searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED {
		t.Errorf("a shard that is not held: %v, %v", coverage, err)
	}
}

// ask searches as a router does, and returns the coverage of the answer.
func ask(ctx context.Context, c searchv1.SearchServiceClient, req *searchv1.SearchRequest) (coverage *searchv1.Coverage, err error) {
	stream, err := c.StreamSearch(ctx, &searchv1.StreamSearchRequest{Search: req})
	if err != nil {
		return nil, err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return coverage, nil
		}
		if err != nil {
			return nil, err
		}
		coverage = m.Coverage
	}
}

func TestConfigIsChecked(t *testing.T) {
	var cfg searcher.Config
	cfg.SetDefaults()
	if err := cfg.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	cfg.ID, cfg.Replication = "", 0
	err := cfg.Validate()
	for _, key := range []string{"id", "replication"} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+key+" = ") {
			t.Errorf("%s: got %v", key, err)
		}
	}
}
