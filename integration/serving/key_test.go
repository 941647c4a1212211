package serving_test

import (
	"crypto/rand"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestKeyOfPlansIsRotated: soon after the key that seals plans is replaced or deleted in etcd, the
// same processes answer queries again.
func TestKeyOfPlansIsRotated(t *testing.T) {
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{replication: 2, access: guarded(), tel: tel, spans: spans}, 2)
	c.publish("host/a", map[string]string{"a": "needle\n"})
	text, _ := c.token(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeSearch}})
	caller := c.as(text)
	rotations := map[string]func() (*clientv3.OpResponse, error){
		"it is replaced": func() (*clientv3.OpResponse, error) {
			secret := make([]byte, 32)
			_, _ = rand.Read(secret)
			resp, err := c.servers.Client().Do(t.Context(), clientv3.OpPut("/trawl/v1/access.key", string(secret)))
			return &resp, err
		},
		"it is deleted, and routers make another": func() (*clientv3.OpResponse, error) {
			resp, err := c.servers.Client().Do(t.Context(), clientv3.OpDelete("/trawl/v1/access.key"))
			return &resp, err
		},
	}
	for what, rotate := range rotations {
		_, err := rotate()
		c.must(err)
		c.eventually(what, func() bool {
			resp, err := caller.search.Search(t.Context(), &searchv1.SearchRequest{Query: "needle"})
			return err == nil && resp.Coverage.Complete && len(resp.Files) == 1
		})
	}
}
