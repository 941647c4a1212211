package router_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded/embeddedtest"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/router"
)

// smallQuota is that of an etcd that a few thousand requests would fill.
const smallQuota = 24 << 20

// TestIngestTokensLeaveSpace: callers with tokens for ingest put what they can, as large as it can be, until
// they are refused. Then etcd still takes what must go on: revocations, deletions, new tokens, leases and
// registrations of searchers.
func TestIngestTokensLeaveSpace(t *testing.T) {
	branches := func(each int) (all []string) {
		for size := 0; size < catalog.MaxDesiredBytes-1000; size += each + 3 {
			name := fmt.Sprint("b", size, "/")
			all = append(all, name+strings.Repeat(strings.Repeat("x", 99)+"/", each)[:each-len(name)-1]+"x") // no component is too long for a file
		}
		return all
	}
	meta := map[string]string{}
	for i := range 15 {
		meta[fmt.Sprint("k", i)] = strings.Repeat("v", 1000)
	}
	for what, test := range map[string]struct {
		allow   string
		request func(i int) *ingestv1.PutRepoRequest
		after   func(g *guarded, name string)
	}{
		"one repo again and again": {"example.com/o/one", func(int) *ingestv1.PutRepoRequest {
			return &ingestv1.PutRepoRequest{Url: "https://example.com/o/one", Branches: branches(1000)}
		}, nil},
		"many repos": {"example.com/**", func(i int) *ingestv1.PutRepoRequest {
			return &ingestv1.PutRepoRequest{Url: fmt.Sprint("https://example.com/o/", i), Facts: &ingestv1.RepoFacts{Meta: meta}}
		}, nil},
		"a repo deleted and put again": {"example.com/o/one", func(int) *ingestv1.PutRepoRequest {
			return &ingestv1.PutRepoRequest{Url: "https://example.com/o/one", Branches: branches(100)}
		}, func(g *guarded, name string) {
			_, err := g.ingest.DeleteRepo(g.t.Context(), &ingestv1.DeleteRepoRequest{Name: name})
			must(g.t, err)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			etcd := embeddedtest.StartSmall(t, smallQuota)
			tokens := access.NewStore(etcd.Client(), "")
			spec := access.Spec{Name: "test", Allow: []string{test.allow}, Scopes: []access.Scope{access.ScopeIngest}}
			token, record, err := tokens.Create(t.Context(), spec)
			must(t, err)
			// Requests in a minute are bounded, too. Here they count for nothing, as with many tokens.
			g := newOutage(t).routerAt(etcd.Endpoint(), token, func(cfg *router.Config) { cfg.ReposPerMinute = 1 << 20 })
			testrun.Until(t, "the router is ready", func() bool { return len(g.unmet()) == 0 })
			name, i := "", 0
			for err = nil; err == nil; i++ {
				var put *ingestv1.PutRepoResponse
				if put, err = g.ingest.PutRepo(t.Context(), test.request(i)); err == nil {
					if name = put.Name; test.after != nil {
						test.after(g, name)
					}
				}
				if i > smallQuota/catalog.MaxDesiredBytes {
					t.Fatal("nobody was refused")
				}
			}
			if !searchapi.IsOverloaded(err) || !strings.Contains(err.Error(), "space") {
				t.Fatalf("after %d requests: %v", i, err)
			}
			if used, quota := g.metric(`trawl_router_etcd_used_bytes{component="router"}`), g.metric(`trawl_router_etcd_quota_bytes{component="router"}`); quota != smallQuota || used < quota*8/10 {
				t.Errorf("used are %v of %v bytes", used, quota)
			}
			if test.after == nil {
				_, err := g.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: name})
				must(t, err)
			}
			_, _, err = tokens.Create(t.Context(), spec)
			must(t, err)
			must(t, tokens.Revoke(t.Context(), record.Id))
			worksOn(t, etcd)
		})
	}
}

// worksOn fails the test unless roles can go on with an etcd.
func worksOn(t *testing.T, etcd *embeddedtest.Etcd) {
	t.Helper()
	store := catalog.New(etcd.Client(), "")
	_, _, err := store.PutDesired(t.Context(), &catalogv1.Desired{Name: "example.com/p", Url: "https://example.com/p"})
	must(t, err)
	lease, err := store.AcquireLease(t.Context(), "example.com/p", time.Minute)
	must(t, err)
	must(t, lease.Release(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	registration := membership.Register(ctx, etcd.Client(), catalog.DefaultPrefix, &catalogv1.Searcher{Id: "s", Address: "a:1"}, 10*time.Second, slog.New(slog.DiscardHandler))
	testrun.Until(t, "a searcher is registered", registration.Registered)
	must(t, registration.Close(ctx))
	alarms, err := etcd.Client().AlarmList(t.Context())
	must(t, err)
	if len(alarms.Alarms) > 0 {
		t.Errorf("etcd has alarms: %v", alarms.Alarms)
	}
}
