package router_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/local"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router"
)

// outage is an etcd that can be stopped and started again, and NATS.
type outage struct {
	t      *testing.T
	config embedded.Config
	etcd   *embedded.Etcd
	jobs   *queue.Queue
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	o := &outage{t: t, config: embedded.Config{
		NoSync: true,
		Dir:    filepath.Join(t.TempDir(), "servers"), Heartbeat: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}}
	nats, err := embedded.StartNATS(t.Context(), o.config)
	must(t, err)
	t.Cleanup(func() { nats.Close() })
	o.jobs, err = queue.New(nats.Conn(), queue.Config{})
	must(t, err)
	o.start()
	t.Cleanup(func() { o.etcd.Close() })
	return o
}

func (o *outage) start() {
	o.t.Helper()
	var err error
	o.etcd, err = embedded.StartEtcd(o.t.Context(), o.config)
	must(o.t, err)
}

// guarded is a router that asks for tokens, and its caller.
type guarded struct {
	t      *testing.T
	search searchv1.SearchServiceClient
	ingest ingestv1.IngestServiceClient
	grpc   string
	http   string
	token  access.Text
}

func (o *outage) router(grace time.Duration, token access.Text) *guarded {
	o.t.Helper()
	return o.routerAt(o.etcd.Endpoint(), token, func(cfg *router.Config) { cfg.Access.Grace = grace })
}

// routerAt starts a router with the etcd at an endpoint.
func (o *outage) routerAt(endpoint string, token access.Text, change func(*router.Config)) *guarded {
	t := o.t
	t.Helper()
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{endpoint}})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	r, stop := serve(t, router.Deps{Etcd: client, Queue: o.jobs}, func(cfg *router.Config) {
		cfg.Access = access.Config{Mode: access.Tokens, Staleness: 2 * time.Second}
		change(cfg)
	})
	t.Cleanup(stop)
	g := &guarded{t: t, grpc: r.GRPCAddr().String(), http: "http://" + r.HTTPAddr().String()}
	return g.as(token)
}

// as is the router with another caller.
func (g *guarded) as(token access.Text) *guarded {
	g.t.Helper()
	conn, err := grpc.NewClient(g.grpc, grpc.WithTransportCredentials(local.NewCredentials()), grpc.WithPerRPCCredentials(token))
	must(g.t, err)
	g.t.Cleanup(func() { conn.Close() })
	return &guarded{
		t: g.t, search: searchv1.NewSearchServiceClient(conn), ingest: ingestv1.NewIngestServiceClient(conn),
		grpc: g.grpc, http: g.http, token: token,
	}
}

// ask searches. asOf is the time as of which the caller is authorized, if the answer has it.
func (g *guarded) ask(consistency *searchv1.Consistency) (asOf string, err error) {
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	var trailer metadata.MD
	_, err = g.search.Search(ctx, &searchv1.SearchRequest{
		Query: "x", Options: &searchv1.SearchOptions{Consistency: consistency},
	}, grpc.Trailer(&trailer))
	return strings.Join(trailer[access.AuthorizedAsOf], ","), err
}

// unmet returns the unmet conditions of the router, except for that of searchers: there are none.
func (g *guarded) unmet() (names []string) {
	g.t.Helper()
	lines := bufio.NewScanner(strings.NewReader(get(g.t, g.http+"/readyz")))
	for lines.Scan() {
		if name, _, ok := strings.Cut(lines.Text(), ":"); ok && name != "searchers" {
			names = append(names, name)
		}
	}
	return names
}

// metric is the value of a series, by its name and labels but for the component.
func (g *guarded) metric(series string) float64 {
	g.t.Helper()
	lines := bufio.NewScanner(strings.NewReader(get(g.t, g.http+"/metrics")))
	for lines.Scan() {
		if name, value, ok := strings.Cut(strings.Replace(lines.Text(), `component="router",`, "", 1), " "); ok && name == series {
			v, err := strconv.ParseFloat(value, 64)
			must(g.t, err)
			return v
		}
	}
	g.t.Errorf("there is no series %s", series)
	return 0
}

// unavailable counts the calls of a method that were refused.
func (g *guarded) unavailable(method string) float64 {
	return g.metric(fmt.Sprintf(`trawl_router_query_seconds_count{method="%s",outcome="Unavailable"}`, method))
}

var lately = &searchv1.Consistency{Level: &searchv1.Consistency_Bounded{Bounded: durationpb.New(time.Hour)}}

// TestEtcdStops: two routers lose etcd, and one of them accepts tokens without it. The test checks
// what callers get, the metrics and readiness. When etcd is back, everything is as before, except
// for what was revoked meanwhile.
func TestEtcdStops(t *testing.T) {
	o := newOutage(t)
	tokens := access.NewStore(o.etcd.Client(), "")
	spec := access.Spec{Name: "test", Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeSearch, access.ScopeIngest}}
	token, record, err := tokens.Create(t.Context(), spec)
	must(t, err)
	strict, lenient := o.router(0, token), o.router(time.Hour, token)
	well := func(when string) {
		t.Helper()
		for _, g := range []*guarded{strict, lenient} {
			testrun.Until(t, when+": all conditions are met", func() bool { return len(g.unmet()) == 0 })
			// In its grace a router is ready before it is connected to etcd again.
			for _, consistency := range []*searchv1.Consistency{nil, lately} {
				testrun.Until(t, when+": answers are of now", func() bool {
					asOf, err := g.ask(consistency)
					return err == nil && asOf == ""
				})
			}
			if silence := g.metric(`trawl_router_etcd_silence_seconds{component="router"}`); silence > 30 {
				t.Errorf("%s: etcd was silent for %v s", when, silence)
			}
		}
	}
	well("before")
	must(t, o.etcd.Close())
	lost := time.Now()

	// A call waits at first, for an election would end soon, and is then refused at once.
	before := lenient.unavailable("search")
	if _, err := lenient.ask(nil); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "etcd") || !strings.Contains(err.Error(), "bounded") {
		t.Errorf("linearizable: %v", err)
	}
	if n := lenient.unavailable("search") - before; n != 1 {
		t.Errorf("%v refused searches are counted, of 1", n)
	}
	testrun.Until(t, "the answer says that the token is of before", func() bool {
		asOf, err := lenient.ask(lately)
		if err != nil {
			t.Fatalf("bounded, within the grace: %v", err)
		}
		at, err := time.Parse(time.RFC3339, asOf)
		return err == nil && at.Before(lost)
	})
	if _, err := lenient.ingest.GetRepo(t.Context(), &ingestv1.GetRepoRequest{Name: "r"}); status.Code(err) != codes.Unavailable {
		t.Errorf("not a search, within the grace: %v", err)
	}

	testrun.Until(t, "the router without a grace is not ready", func() bool { return fmt.Sprint(strict.unmet()) == "[access etcd]" })
	counted := strict.unavailable("search")
	_, err = strict.ask(lately)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("after the grace: %v", err)
	}
	strict.refusedOverHTTP()
	if n := strict.unavailable("search") - counted; n != 2 {
		t.Errorf("%v refused searches are counted, of 2", n)
	}
	stream, err := strict.search.StreamSearch(t.Context(), &searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{Query: "x"}})
	must(t, err)
	if _, err = stream.Recv(); status.Code(err) != codes.Unavailable || strict.unavailable("stream_search") != 1 {
		t.Errorf("a stream after the grace: %v, %v counted", err, strict.unavailable("stream_search"))
	}
	if unmet := lenient.unmet(); unmet != nil {
		t.Errorf("within the grace, a router lacks %v", unmet)
	}
	testrun.Until(t, "the silence is measured", func() bool {
		return strict.metric(`trawl_router_etcd_silence_seconds{component="router"}`) > 2
	})

	o.start()
	well("after")
	must(t, access.NewStore(o.etcd.Client(), "").Revoke(t.Context(), record.Id))
	for _, g := range []*guarded{strict, lenient} {
		testrun.Until(t, "the token is revoked", func() bool {
			_, err := g.ask(lately)
			return status.Code(err) == codes.Unauthenticated
		})
	}
}

// refusedOverHTTP calls the interface of zoekt.
func (g *guarded) refusedOverHTTP() {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.http+"/api/search", strings.NewReader(`{"Q":"x"}`))
	must(g.t, err)
	req.Header.Set("Authorization", "Bearer "+string(g.token))
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	must(g.t, err)
	must(g.t, resp.Body.Close())
	if resp.StatusCode != http.StatusServiceUnavailable {
		g.t.Errorf("over HTTP: %s", resp.Status)
	}
}
