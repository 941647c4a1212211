package search_test

import (
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// quiet is a searcher that searches every shard and finds nothing.
type quiet struct {
	searchv1.UnimplementedSearchServiceServer
}

func (quiet) StreamSearch(req *searchv1.StreamSearchRequest, stream grpc.ServerStreamingServer[searchv1.StreamSearchResponse]) error {
	n := uint64(len(req.Search.Plan.Shards))
	return stream.Send(&searchv1.StreamSearchResponse{
		Statistics: &searchv1.Statistics{CountsExact: true}, Coverage: &searchv1.Coverage{Complete: true, Requested: n, Searched: n},
	})
}

// BenchmarkQuery measures what a router itself does for a query: 10,000 repos, on 100
// shards of 100 repos each and on a shard each, of a searcher in the same process that
// finds nothing. One repo is asked for, or all of them.
//
//	go test -run '^$' -bench Query ./services/router/internal/search
func BenchmarkQuery(b *testing.B) {
	for _, shards := range []int{100, 10_000} {
		c := startQuiet(b, 10_000, shards)
		for _, q := range []struct{ name, text string }{{"all repos", "nothing"}, {"one repo", "r:name-4711$ nothing"}} {
			b.Run(fmt.Sprintf("%d shards/%s", shards, q.name), func(b *testing.B) {
				b.ReportAllocs()
				before := processorTime(b)
				for b.Loop() {
					resp, err := c.Search(b.Context(), &searchv1.SearchRequest{Query: q.text})
					if err != nil || !resp.Coverage.Complete || resp.Coverage.Requested != uint64(shards) {
						b.Fatal(resp, err)
					}
				}
				b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// startQuiet is a service for that many repos, up to 10,000, on that many shards. Its searcher is a
// quiet one in the same process.
func startQuiet(tb testing.TB, repos, shards int) *cluster {
	tb.Helper()
	tel, err := telemetry.Start(tb.Context(), telemetry.Config{}, telemetry.Identity{Service: "bench"}, telemetry.WithLogs(io.Discard))
	if err != nil {
		tb.Fatal(err)
	}
	srv, err := server.New(server.Config{}, tel)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { srv.Close() })
	searchv1.RegisterSearchServiceServer(srv, quiet{})
	local := server.Intercept(srv.Local(), nil, nil)
	roots := make([]*catalogv1.Root, repos)
	for i := range roots {
		in := i % shards
		d := searchapi.Digest{byte(in), byte(in >> 8)}
		roots[i] = &catalogv1.Root{
			Repo: fmt.Sprintf("github.com/org/name-%d", i), Branches: []*catalogv1.Branch{{Name: "main", Commit: "c0"}},
			Shards: []*catalogv1.ShardRef{{Digest: d[:]}},
		}
	}
	layout, err := search.NewLayout(42, roots)
	if err != nil {
		tb.Fatal(err)
	}
	return start(tb, 0, func(c *cluster) {
		c.layout = layout
		c.conns = fanout.NewConns(func(string) (server.Conn, error) { return local, nil })
		c.directory = fanout.NewDirectory([]*catalogv1.Searcher{{Id: "a", Address: "here"}}, 1, "")
	})
}

// TestAReposNameAllocatesNothingPerRepo: a query for one repo of 10,000 allocates as often as for one
// of 2,000. Other goroutines allocate at the same time, so one allocation for every ten repos more is
// ignored.
func TestAReposNameAllocatesNothingPerRepo(t *testing.T) {
	if testrun.Race {
		t.Skip("expressions allocate what their pool has dropped")
	}
	allocations := func(repos int) float64 {
		c := startQuiet(t, repos, 100)
		return testing.AllocsPerRun(5, func() {
			resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "r:name-1711$ nothing"})
			if err != nil || !resp.Coverage.Complete || resp.Empty.GetRepos() != 1 {
				t.Fatal(resp, err)
			}
		})
	}
	if few, many := allocations(2000), allocations(10_000); many > few+800 {
		t.Errorf("%.0f allocations of 10,000 repos, %.0f of 2,000", many, few)
	}
}

func processorTime(b testing.TB) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
