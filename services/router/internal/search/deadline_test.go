package search_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// serveGRPC serves the router's service, and gives a client of it.
func (c *cluster) serveGRPC(tb testing.TB) searchv1.SearchServiceClient {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	srv := grpc.NewServer(grpc.WaitForHandlers(true))
	searchv1.RegisterSearchServiceServer(srv, c.Service)
	var serving sync.WaitGroup
	serving.Go(func() { srv.Serve(ln) })
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close(); srv.Stop(); serving.Wait() })
	return searchv1.NewSearchServiceClient(conn)
}

// BenchmarkDeadline shows how much of its deadline a query takes, as its caller
// sees it, while one of three searchers never answers and its shard has no
// replica. Each iteration is one query; eight run at once.
//
//	go test -run '^$' -bench Deadline -benchtime 400x ./services/router/internal/search
func BenchmarkDeadline(b *testing.B) {
	for _, deadline := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, time.Second} {
		b.Run(fmt.Sprint(deadline), func(b *testing.B) {
			client := slowCluster(b).serveGRPC(b)
			var mu sync.Mutex
			var shares []float64
			var late int
			var asking sync.WaitGroup
			turns := make(chan struct{}, 8)
			for range b.N {
				turns <- struct{}{}
				asking.Go(func() {
					defer func() { <-turns }()
					start := time.Now()
					ctx, cancel := context.WithTimeout(b.Context(), deadline)
					defer cancel()
					_, err := client.Search(ctx, &searchv1.SearchRequest{Query: "q"})
					took := time.Since(start)
					mu.Lock()
					defer mu.Unlock()
					shares = append(shares, float64(took)/float64(deadline))
					if err != nil {
						late++
					}
				})
			}
			asking.Wait()
			slices.Sort(shares)
			for name, q := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99} {
				b.ReportMetric(shares[min(int(q*float64(len(shares))), len(shares)-1)], name+"/deadline")
			}
			b.ReportMetric(float64(late), "unanswered")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func slowCluster(tb testing.TB) *cluster {
	tb.Helper()
	return start(tb, 3, func(c *cluster) {
		c.places = make(map[searchapi.Digest][]int)
		for i, s := range c.searchers {
			c.places[d(i)] = []int{i}
			for n := range 50 {
				s.files[d(i)] = append(s.files[d(i)], file("r", fmt.Sprintf("%d/%d", i, n), float64(n)))
			}
		}
		c.searchers[1].hangs = true
	})
}
