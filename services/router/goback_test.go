package router_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded/embeddedtest"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router"
)

// TestEtcdLosesChanges: a running router whose etcd comes back on a copy of its data, or on none, answers
// from what etcd has then: tokens, revocations and repos. It is counted.
func TestEtcdLosesChanges(t *testing.T) {
	for what, goBack := range map[string]func(etcd *embeddedtest.Etcd, copied string){
		"a copy":  func(etcd *embeddedtest.Etcd, copied string) { etcd.GoBack(copied) },
		"nothing": func(etcd *embeddedtest.Etcd, _ string) { etcd.LoseAll() },
	} {
		t.Run(what, func(t *testing.T) {
			etcd, nats := embeddedtest.Start(t), newOutage(t)
			create := func() (access.Text, string) {
				text, record, err := access.NewStore(etcd.Client(), "").Create(t.Context(), access.Spec{
					Name: "test", Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeSearch},
				})
				must(t, err)
				return text, record.Id
			}
			old, oldID := create()
			copied := etcd.Copy()
			lost, _ := create()
			store := catalog.New(etcd.Client(), "")
			for _, name := range []string{"x/a", "x/b"} {
				_, _, err := store.PutDesired(t.Context(), &catalogv1.Desired{Name: name, Url: "https://" + name})
				must(t, err)
			}
			g := nats.routerAt(etcd.Endpoint(), lost, func(cfg *router.Config) { cfg.Access.Grace = time.Hour })
			testrun.Until(t, "the router is ready", func() bool { return len(g.unmet()) == 0 })
			if _, err := g.ask(nil); err != nil {
				t.Fatal(err)
			}
			goBack(etcd, copied)
			if what == "a copy" {
				must(t, access.NewStore(etcd.Client(), "").Revoke(t.Context(), oldID))
			}
			made, _ := create()
			testrun.Until(t, "a token made since is admitted", func() bool { _, err := g.as(made).ask(nil); return err == nil })
			for _, text := range []access.Text{old, lost} {
				if _, err := g.as(text).ask(&searchv1.Consistency{}); status.Code(err) != codes.Unauthenticated {
					t.Errorf("a token that etcd does not have: %v", err)
				}
			}
			testrun.Until(t, "it is counted", func() bool { return g.metric(`trawl_router_etcd_went_back_total{component="router"}`) > 0 })
			testrun.Until(t, "the router is ready again", func() bool { return len(g.unmet()) == 0 })
		})
	}
}
