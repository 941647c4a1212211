package serving_test

import (
	"fmt"
	"testing"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestUsageIsCharged: the costs that searchers report reach the router, over the network and
// within one process, and are charged to the token.
func TestUsageIsCharged(t *testing.T) {
	for _, oneProcess := range []bool{false, true} {
		t.Run(fmt.Sprintf("one process=%v", oneProcess), func(t *testing.T) {
			tel, spans := telemetrytest.New(t)
			// The limit of 60 microseconds a minute is less than some searches take.
			c := startWith(t, &cluster{replication: 1, access: guarded(), processors: 1e-6, oneProcess: oneProcess, tel: tel, spans: spans}, 1)
			c.publish("host/repo", map[string]string{"a.go": "needle"})
			text, _ := c.token(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeSearch}})
			caller := c.as(text)
			for range 100 {
				_, err := caller.search.Search(t.Context(), &searchv1.SearchRequest{Query: "content:needle"})
				if searchapi.IsOverloaded(err) {
					return
				}
				c.must(err)
			}
			t.Error("100 queries cost nothing")
		})
	}
}
