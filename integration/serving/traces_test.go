package serving_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/trawl-search/trawl/integration/cluster/faults"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// traced is a cluster whose roles send their traces to a collector. A proxy is in front of
// its first searcher.
type traced struct {
	*cluster

	collector *telemetrytest.Collector
	proxy     *faults.TCP
	client    searchv1.SearchServiceClient // makes no spans of its own
	asked     int
}

func startTraced(t *testing.T, otlp string) *traced {
	t.Helper()
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // milliseconds until spans are sent
	c := &traced{collector: telemetrytest.NewCollector(t)}
	if otlp == "" {
		otlp = c.collector.URL
	}
	tel, spans := telemetrytest.New(t)
	c.cluster = &cluster{t: t, replication: 2, otlp: otlp, tel: tel, spans: spans}
	var err error
	c.proxy, err = faults.NewTCP("127.0.0.1:0", func(context.Context) (string, error) { return c.searchers[0], nil })
	c.must(err)
	t.Cleanup(func() { c.must(c.proxy.Close()) })
	c.advertise = map[int]string{0: c.proxy.Addr()}
	startWith(t, c.cluster, 2)
	conn, err := grpc.NewClient(c.routerGRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	c.must(err)
	t.Cleanup(func() { c.must(conn.Close()) })
	c.client = searchv1.NewSearchServiceClient(conn)
	return c
}

const (
	clientSpan = "00f067aa0ba902b7"
	needle     = "needle-of-the-query"
	hiddenRepo = "host/repo-of-a-name"
)

// publishNeedles publishes a repo of eight shards.
func (c *traced) publishNeedles() {
	c.t.Helper()
	var shards []map[string]string
	for i := range 8 {
		shards = append(shards, map[string]string{fmt.Sprintf("path-%d.go", i): needle + "\n"})
	}
	c.publish(hiddenRepo, shards...)
	c.eventually("all is found", func() bool {
		resp, err := c.client.Search(c.t.Context(), &searchv1.SearchRequest{Query: needle})
		return err == nil && resp.Coverage.Complete && len(resp.Files) == 8
	})
}

// ask searches as a client with a trace of its own, and returns the trace's id.
func (c *traced) ask(sampled bool, options *searchv1.SearchOptions) (trace string, resp *searchv1.SearchResponse, err error) {
	c.t.Helper()
	c.asked++
	trace = fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e%04x", c.asked)
	flags := map[bool]string{true: "01", false: "00"}[sampled]
	ctx := metadata.AppendToOutgoingContext(c.t.Context(), "traceparent", "00-"+trace+"-"+clientSpan+"-"+flags)
	resp, err = c.client.Search(ctx, &searchv1.SearchRequest{Query: needle, Options: options})
	return trace, resp, err
}

// pathOf returns the service and name of each span from the root down to s.
func pathOf(trace map[string]telemetrytest.Span, s telemetrytest.Span) string {
	var path []string
	for ok := true; ok; s, ok = trace[hex.EncodeToString(s.ParentSpanId)] {
		path = append(path, strings.TrimPrefix(s.Service, "trawl-")+":"+s.Name)
		if hex.EncodeToString(s.ParentSpanId) == clientSpan {
			path = append(path, "client")
		}
	}
	slices.Reverse(path)
	return strings.Join(path, " > ")
}

const shardPath = "client > router:trawl.search.v1.SearchService/Search > router:fan out > router:ask searcher > " +
	"router:trawl.search.v1.SearchService/StreamSearch > searcher:trawl.search.v1.SearchService/StreamSearch > searcher:search shard"

// count counts the spans of a trace at a path.
func (c *traced) count(trace, path string) (n int) {
	spans := c.collector.Trace(trace)
	for _, s := range spans {
		if pathOf(spans, s) == path {
			n++
		}
	}
	return n
}

// TestTracesReachACollector: a query is one trace in an OTLP collector, from the client's own
// span through the router and the searchers to every shard. The trace reveals neither the
// query nor where it matched.
func TestTracesReachACollector(t *testing.T) {
	c := startTraced(t, "")
	c.publishNeedles()
	trace, _, err := c.ask(true, nil)
	c.must(err)
	c.eventually("a span of every shard is there", func() bool { return c.count(trace, shardPath) == 8 })
	for _, span := range c.collector.Spans() {
		for _, secret := range []string{needle, hiddenRepo, "path-"} {
			if strings.Contains(span.String()+fmt.Sprint(span.Attrs, span.Resource), secret) {
				t.Errorf("a span reveals %q: %v", secret, span)
			}
		}
	}
	unsampled, _, err := c.ask(false, nil)
	c.must(err)
	later, _, err := c.ask(true, nil)
	c.must(err)
	c.eventually("a later trace is there", func() bool { return c.count(later, shardPath) == 8 })
	if got := c.collector.Trace(unsampled); len(got) != 0 {
		t.Errorf("the client wanted no trace, and there are %v", got)
	}
}

// attempts counts a trace's calls to searchers by hedge, outcome and code.
func (c *traced) attempts(trace string) map[string]int {
	counts := make(map[string]int)
	for _, s := range c.collector.Trace(trace) {
		if s.Name == "ask searcher" {
			failed := s.Status.GetCode() == tracev1.Status_STATUS_CODE_ERROR
			counts[strings.TrimSpace(fmt.Sprint("hedge=", s.Attrs["trawl.hedge"], " ", s.Attrs["trawl.outcome"], " error=", failed, " ", s.Attrs["trawl.code"]))]++
		}
	}
	return counts
}

// TestTracesTellOfHedgesAndFailures: the trace shows the hedged call if a searcher does not
// answer, and the error if its connection breaks.
func TestTracesTellOfHedgesAndFailures(t *testing.T) {
	c := startTraced(t, "")
	c.publishNeedles()
	c.until("a hedge that answered instead of one that was abandoned", faults.TCPFault{Cut: true}, func(n map[string]int) bool {
		return n["hedge=true answered error=false"] > 0 && n["hedge=false abandoned error=false"] > 0
	})
	c.until("an attempt that failed", faults.TCPFault{Reset: true}, func(n map[string]int) bool {
		return n["hedge=false failed error=true Unavailable"] > 0
	})
	c.proxy.Set(faults.TCPFault{})
	for _, span := range c.collector.Spans() {
		if strings.Contains(span.String(), hiddenRepo) || strings.Contains(span.String(), needle) {
			t.Errorf("a span of a failure reveals too much: %v", span)
		}
	}
}

// until searches under a fault until shows accepts a trace. Routers avoid a searcher that has
// just failed, so a search without the fault comes before each.
func (c *traced) until(what string, fault faults.TCPFault, shows func(map[string]int) bool) {
	c.t.Helper()
	c.eventually(what, func() bool {
		c.proxy.Set(faults.TCPFault{})
		if _, _, err := c.ask(false, nil); err != nil {
			return false
		}
		c.proxy.Set(fault)
		trace, resp, err := c.ask(true, nil)
		if err != nil {
			return false
		}
		if !resp.Coverage.Complete || len(resp.Files) != 8 {
			c.t.Logf("incomplete: %v", resp.Coverage)
		}
		c.eventually("the trace is there", func() bool { return c.count(trace, "client > router:trawl.search.v1.SearchService/Search") == 1 })
		return shows(c.attempts(trace))
	})
}

// TestCollectorIsAway: roles start, answer and stop even if their collector does not listen,
// or listens and never answers.
func TestCollectorIsAway(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody ever answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, at := range map[string]string{"refuses": "127.0.0.1:1", "is silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			c := startTraced(t, "http://"+at)
			c.publishNeedles()
			for range 100 {
				_, resp, err := c.ask(true, nil)
				c.must(err)
				if !resp.Coverage.Complete {
					t.Errorf("incomplete: %v", resp.Coverage)
				}
			}
		})
	}
}
