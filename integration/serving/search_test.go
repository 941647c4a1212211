package serving_test

import (
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestSearchListAndFile(t *testing.T) { inOneAndInSeveral(t, testSearchListAndFile) }

func testSearchListAndFile(t *testing.T, oneProcess bool) {
	c := startIn(t, oneProcess, 2, 2)
	c.publish("host/one", map[string]string{"a.go": "package one // needle\n", "b.txt": "hay\n"}, map[string]string{"c.go": "needle needle\n"})
	c.publish("host/two", map[string]string{"a.md": "a needle elsewhere\n"})

	resp := c.find("needle", &searchv1.SearchOptions{RequireComplete: true})
	got := paths(resp)
	slices.Sort(got)
	if strings.Join(got, " ") != "host/one:a.go host/one:c.go host/two:a.md" || resp.Statistics.Matches != 4 || resp.Coverage.Searched != 3 {
		t.Errorf("found %v, %v, %v", got, resp.Statistics, resp.Coverage)
	}
	if resp = c.find("needle r:two", nil); resp.Coverage.Pruned != 2 || resp.Coverage.Searched != 1 || len(resp.Files) != 1 {
		t.Errorf("pruned: %v", resp.Coverage)
	}
	if resp = c.find("needle (type:repo hay)", nil); len(resp.Files) != 2 || !resp.Coverage.Complete {
		t.Errorf("needle in repos with hay: %v, %v", paths(resp), resp.Coverage)
	}
	if resp = c.find("needle -(type:repo hay)", nil); len(resp.Files) != 1 || !resp.Coverage.Complete {
		t.Errorf("needle in repos without hay: %v, %v", paths(resp), resp.Coverage)
	}
	list, err := c.search.List(t.Context(), &searchv1.ListRequest{Query: "hay"})
	c.must(err)
	if len(list.Repos) != 1 || list.Repos[0].Documents != 3 || list.Repos[0].Shards != 2 || list.Repos[0].IndexBytes == 0 {
		t.Errorf("repos with hay: %v", list.Repos)
	}
	file, err := c.search.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "host/one", Path: []byte("c.go")})
	c.must(err)
	if string(file.Content) != "needle needle\n" || file.Language != "Go" {
		t.Errorf("file: %v", file)
	}
	if _, err = c.search.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "host/one", Path: []byte("d.go")}); status.Code(err) != codes.NotFound {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err = c.search.Search(t.Context(), &searchv1.SearchRequest{Options: &searchv1.SearchOptions{ContextLines: 99}}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a limit that is passed: %v", err)
	}
}

// TestSpansReachFromClientToShard: one trace holds the client's call, the router's plan and
// fan-out, the call to the searcher, and for each shard the search and the display of its
// files.
func TestSpansReachFromClientToShard(t *testing.T) {
	inOneAndInSeveral(t, testSpansReachFromClientToShard)
}

func testSpansReachFromClientToShard(t *testing.T, oneProcess bool) {
	c := startIn(t, oneProcess, 1, 1)
	c.publish("host/one", map[string]string{"a": "needle\n"}, map[string]string{"b": "needle\n"})
	c.find("needle", &searchv1.SearchOptions{RequireComplete: true})
	c.spans.Reset()
	ctx, root := c.tel.Tracer("test").Start(t.Context(), "client")
	_, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: "needle"})
	root.End()
	c.must(err)

	const rpc = "trawl.search.v1.SearchService/Search"
	const streamed = "trawl.search.v1.SearchService/StreamSearch"
	want := []string{"client", rpc, rpc, "fan out", "ask searcher", streamed, streamed, "search shard"}
	if oneProcess { // a direct call has no client and server spans
		want = slices.Delete(want, 5, 7)
	}
	c.eventually("all spans have ended", func() bool {
		got := chains(c.spans.GetSpans(), root.SpanContext().TraceID().String())
		shown := append(slices.Clone(want[:len(want)-1]), "show files")
		return got[strings.Join(want, " > ")] == 2 && got[strings.Join(shown, " > ")] == 2
	})
	short := []string{"client", rpc, rpc, "plan"}
	if got := chains(c.spans.GetSpans(), root.SpanContext().TraceID().String()); got[strings.Join(short, " > ")] != 1 {
		t.Errorf("no plan in %v", got)
	}
}

// chains counts the spans of a trace by their names from the root down.
func chains(spans tracetest.SpanStubs, trace string) map[string]int {
	byID := make(map[string]tracetest.SpanStub)
	for _, s := range spans {
		if s.SpanContext.TraceID().String() == trace {
			byID[s.SpanContext.SpanID().String()] = s
		}
	}
	counts := make(map[string]int)
	for _, s := range byID {
		names := []string{s.Name}
		for at, ok := byID[s.Parent.SpanID().String()]; ok; at, ok = byID[at.Parent.SpanID().String()] {
			names = append(names, at.Name)
		}
		slices.Reverse(names)
		counts[strings.Join(names, " > ")]++
	}
	return counts
}
