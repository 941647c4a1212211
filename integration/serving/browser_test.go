package serving_test

import (
	"strings"
	"testing"

	"github.com/trawl-search/trawl/integration/hostile"
)

// TestWebPagesGetNothing: a router without access control refuses every request that a page of
// another site can make a browser send, and sends no header that admits other sites.
func TestWebPagesGetNothing(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/secret", map[string]string{"a.go": "needle"})
	for _, page := range hostile.Pages(c.routerGRPC, c.routerHTTP) {
		code, header, err := page.Send(t.Context())
		c.must(err)
		if code != page.Want {
			t.Errorf("%s: status %d, want %d", page.Name, code, page.Want)
		}
		for name := range header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: other sites are let in by %s", page.Name, name)
			}
		}
	}
}
