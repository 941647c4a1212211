package serving_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestUnreadAnswersCountAsCalls: answers that a token does not read count as its calls in
// progress, over any number of connections, until these are canceled.
func TestUnreadAnswersCountAsCalls(t *testing.T) {
	const most = 6
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{replication: 1, access: guarded(), calls: most, tel: tel, spans: spans}, 1)
	c.publish("host/repo", map[string]string{"large.txt": strings.Repeat("a line of text\n", 30_000)})
	search := access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeSearch}}
	greedy, _ := c.token(search)
	honest, _ := c.token(search)
	caller, other := c.as(greedy), c.as(honest)
	file := &searchv1.GetFileRequest{Repo: "host/repo", Path: []byte("large.txt")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range most {
		conn := c.dial(c.routerGRPC, grpc.WithPerRPCCredentials(greedy), grpc.WithInitialWindowSize(64<<10))
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{}, searchv1.SearchService_GetFile_FullMethodName)
		c.must(err)
		c.must(stream.SendMsg(file))
		c.must(stream.CloseSend())
		_, err = stream.Header() // the answer is on its way
		c.must(err)
	}
	if _, err := caller.search.GetFile(t.Context(), file); !searchapi.IsOverloaded(err) || !strings.Contains(err.Error(), "caller-calls") {
		t.Errorf("a call beside %d answers that are not read: %v", most, err)
	}
	if _, err := other.search.GetFile(t.Context(), file); err != nil {
		t.Errorf("another caller: %v", err)
	}
	cancel()
	c.eventually("the calls end when they are canceled", func() bool {
		_, err := caller.search.GetFile(t.Context(), file)
		return err == nil
	})
}
