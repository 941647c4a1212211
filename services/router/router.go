// Package router is the role that callers talk to. It answers searches by asking the
// searchers that hold the shards, and maintains the desired set of repos. Routers hold
// no state of their own, so any number of them can run.
package router

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/trawl-search/trawl/docs/api"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/mcptools"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
	"github.com/trawl-search/trawl/services/router/internal/ingest"
	"github.com/trawl-search/trawl/services/router/internal/jsonapi"
	"github.com/trawl-search/trawl/services/router/internal/search"
	"github.com/trawl-search/trawl/services/router/internal/web"
	"github.com/trawl-search/trawl/services/router/internal/zoekt"
)

// component names the role in logs, metrics and traces.
const component = "router"

// Deps are the dependencies of a router. The caller closes them after Run.
type Deps struct {
	Etcd *clientv3.Client
	// Prefix stands before every key in etcd; empty: catalog.DefaultPrefix.
	Prefix    string
	Queue     *queue.Queue
	Telemetry *telemetry.Telemetry
	// Version is the version of this program that clients see; empty if it does not matter.
	Version string
	// Local returns the searcher of this process at an address, or nil if it is in
	// another process. A nil Local means that there is none in this process.
	Local func(address string) grpc.ClientConnInterface
}

// Router is one router.
type Router struct {
	cfg     Config
	deps    Deps
	tel     *telemetry.Telemetry
	server  *server.Server
	metrics *search.Metrics

	fanoutMetrics  *fanout.Metrics
	webhookMetrics *ingest.WebhookMetrics
	// silence is how long etcd has not answered, in seconds.
	silence prometheus.Gauge
	// wentBack is how often etcd lacked what it had had.
	wentBack prometheus.Counter

	// tokens and key are nil if callers are not authenticated.
	tokens *access.Directory
	key    *access.Key
	guard  *access.Guard
	// live are the limits that override those of cfg.
	live *limits.Live
	// transport is what connections to searchers speak through.
	transport credentials.TransportCredentials
}

// New returns a router. It reads the files of TLS; it neither listens nor
// connects to anything.
func New(cfg Config, deps Deps) (*Router, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure router: %w", err)
	}
	r := &Router{cfg: cfg, deps: deps, tel: deps.Telemetry.For(component)}
	r.metrics = search.NewMetrics(r.tel.Metrics())
	r.fanoutMetrics = fanout.NewMetrics(r.tel.Metrics())
	r.webhookMetrics = ingest.NewWebhookMetrics(r.tel.Metrics())
	with := promauto.With(r.tel.Metrics())
	r.silence = with.NewGauge(prometheus.GaugeOpts{
		Name: "trawl_router_etcd_silence_seconds", Help: "Time since etcd last answered this router, which asks it every second.",
	})
	r.wentBack = with.NewCounter(prometheus.CounterOpts{
		Name: "trawl_router_etcd_went_back_total", Help: "Times that this router saw etcd without changes that it had had: on a copy of its data, or on none.",
	})
	r.live = limits.NewLive(limits.NewStore(deps.Etcd, deps.Prefix), r.tel.Logger())
	var err error
	if r.transport, err = server.Transport(cfg.Searcher.TLS, r.tel); err != nil {
		return nil, err
	}
	r.guard = r.newGuard()
	r.guard.OnUnavailable(r.countUnavailable)
	if r.server, err = server.New(cfg.Config, r.tel, server.WithHeaderGate(r.guard)); err != nil {
		return nil, err
	}
	return r, nil
}

// newGuard makes what decides who may call.
func (r *Router) newGuard() *access.Guard {
	log, bounds := r.tel.Logger(), access.Limits{Calls: r.cfg.CallerCalls, Live: r.live, Hosts: r.cfg.Access.Hosts}
	if !r.cfg.Access.Asked() {
		return access.NewGuard(nil, bounds, r.tel.Metrics(), log)
	}
	store := access.NewStore(r.deps.Etcd, r.deps.Prefix)
	r.tokens, r.key = access.NewDirectory(store, r.cfg.Access.Staleness, r.cfg.Access.Grace, log), access.NewKey(store, log)
	return access.NewGuard(r.tokens, bounds, r.tel.Metrics(), log)
}

// limits are what the admin service needs to list and to change limits.
func (r *Router) limits() ingest.Limits {
	return ingest.Limits{
		Store: limits.NewStore(r.deps.Etcd, r.deps.Prefix), Tokens: access.NewStore(r.deps.Etcd, r.deps.Prefix),
		Settings: map[limits.Name]string{
			limits.CallerShare:      fmt.Sprint(r.cfg.CallerShare),
			limits.CallerCalls:      fmt.Sprint(r.cfg.CallerCalls),
			limits.CallerProcessors: fmt.Sprint(r.cfg.CallerProcessors),
			limits.ReposPerMinute:   fmt.Sprint(r.cfg.ReposPerMinute),
		},
	}
}

// Listen binds the addresses, so that they are known before Run.
func (r *Router) Listen(ctx context.Context) error { return r.server.Listen(ctx) }

// GRPCAddr is the address that gRPC is bound to, or nil before Listen.
func (r *Router) GRPCAddr() net.Addr { return r.server.GRPCAddr() }

// HTTPAddr is the address that HTTP is bound to, or nil before Listen.
func (r *Router) HTTPAddr() net.Addr { return r.server.HTTPAddr() }

// Ready reports whether the router can do its work.
func (r *Router) Ready() bool { return r.server.Readiness().Ready() }

// Run serves until ctx ends, and then drains. It does not fail while etcd or the queue
// is unavailable: readiness reports that, and Run recovers by itself. A router runs
// once.
func (r *Router) Run(ctx context.Context) error {
	// Calls need these until the drain is over.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	log := r.tel.Logger()
	store := catalog.New(r.deps.Etcd, r.deps.Prefix)
	view := catalog.NewView(life, store, log)
	defer view.Close()
	members := membership.NewMembers(life, r.deps.Etcd, store.Prefix(), log)
	defer members.Close()
	var searchers *searchers
	conns := fanout.NewConns(func(address string) (server.Conn, error) { return r.dial(address, searchers.near(address)) })
	defer func() {
		if err := conns.Close(); err != nil {
			log.WarnContext(life, "close connections to searchers", "error", err)
		}
	}()
	peers := fanout.NewPeers(fanout.Shares{Hedges: hedgeShare, Retries: retryShare}, conns.Ping, r.fanoutMetrics, log)
	searchers = newSearchers(conns, peers, r.cfg.Replication, r.cfg.Zone)

	tracer := r.tel.Tracer("github.com/trawl-search/trawl/services/router")
	searches := search.New(r.searchConfig(peers, store), search.NewRoots(view), searchers, tracer, r.metrics, log)
	searchv1.RegisterSearchServiceServer(r.server, searches)
	r.serveZoekt(searches)
	r.serveMCP(searches)
	if err := r.serveJSON(); err != nil {
		return err
	}
	sources := catalog.NewSourceView(life, store, log)
	defer sources.Close()
	secrets := codehost.Secrets{Folder: r.cfg.Source.Credentials}
	r.server.HandleSigned(ingest.WebhookPattern, ingest.NewWebhooks(store, sources, r.deps.Queue, secrets, r.cfg.PushPause, r.webhookMetrics, log))
	puts := ingest.Config{
		Policy: r.cfg.Source.Policy, PerMinute: r.cfg.ReposPerMinute, Live: r.live, Admit: searches.Enter, NearestRepos: searches.NearestRepos,
	}
	space := ingest.NewSpace(store, r.tel.Metrics(), log)
	repos := ingest.New(store, r.deps.Queue, puts, space, r.server.Draining(), log)
	ingestv1.RegisterIngestServiceServer(r.server, repos)
	pages := r.servePages(searches, repos, sources)
	defer pages.Close()
	ingestv1.RegisterSourceServiceServer(r.server, ingest.NewSources(store, r.cfg.Source.Policy))
	adminv1.RegisterAdminServiceServer(r.server, ingest.NewAdmin(r.deps.Etcd, repos, r.cfg.Replication, r.limits()))

	etcd, live := r.server.Readiness().Condition("etcd"), r.server.Readiness().Condition("searchers")
	var following sync.WaitGroup
	following.Go(func() { view.KeepContact(life) })
	following.Go(func() { space.Run(life) })
	following.Go(func() { r.live.Run(life) })
	following.Go(func() { r.followEtcd(life, view, etcd) })
	following.Go(func() { searchers.follow(life, members, live) })
	r.followAccess(life, &following)
	err := r.server.Run(ctx)
	end()
	following.Wait()
	return err
}

// followAccess follows the tokens of callers in etcd.
func (r *Router) followAccess(ctx context.Context, following *sync.WaitGroup) {
	if r.tokens == nil {
		return
	}
	ready := r.server.Readiness().Condition("access")
	following.Go(func() { r.tokens.Run(ctx) })
	following.Go(func() { r.key.Run(ctx) })
	following.Go(func() { r.checkAccess(ctx, ready) })
}

// The paths of zoekt's JSON interface.
const (
	zoektSearch = "/api/search"
	zoektList   = "/api/list"
)

// serveZoekt serves zoekt's interfaces: gRPC, and JSON over HTTP.
func (r *Router) serveZoekt(searches *search.Service) {
	open := func(keep func(repo string, id uint32) bool) zoekt.Answers { return searches.Session(keep) }
	limits := zoekt.Limits{WallTime: r.cfg.MaxTimeout, Files: searchapi.MaxFiles, Bytes: searchapi.MaxBytes}
	webserverv1.RegisterWebserverServiceServer(r.server, zoekt.NewService(open, limits))
	api := zoekt.New(open, limits, r.tel.Logger())
	r.server.Handle(zoektSearch, api.Search())
	r.server.Handle(zoektList, api.List())
}

// serveMCP serves the tools for coding agents over HTTP. The calls of one tool call see the
// same state of the index.
func (r *Router) serveMCP(searches *search.Service) {
	if len(r.cfg.MCP.Tools) == 0 {
		return
	}
	open := func() mcptools.API { return searches.Session(nil) }
	tools := mcptools.New(open, r.cfg.MCP, r.deps.Version, r.tel.Logger())
	r.server.Handle(mcptools.Path, tools.Handler(r.cfg.MaxTimeout))
}

// serveJSON serves the services that callers use as JSON over HTTP, by calls of these services.
func (r *Router) serveJSON() error {
	limits := jsonapi.Limits{WallTime: r.cfg.MaxTimeout, BodyBytes: int64(r.cfg.Limits.RequestBytes)}
	calls, err := jsonapi.New(r.server.Local(), limits, r.tel.Logger())
	if err != nil {
		return err
	}
	r.server.Handle(jsonapi.Path, calls)
	r.server.Handle(api.Path, http.HandlerFunc(api.Serve))
	return nil
}

// servePages serves the pages for people. The calls of one page see the same state of the
// index.
func (r *Router) servePages(searches *search.Service, repos *ingest.Service, sources *catalog.SourceView) *web.Pages {
	cfg := web.Config{
		Open: func() web.Answers { return searches.Session(nil) }, Statuses: repos, Sources: sources.All, WallTime: r.cfg.defaultTimeout(), Log: r.tel.Logger(),
	}
	if r.cfg.Access.Asked() {
		cfg.Admit = r.guard.Admit
	}
	pages := web.New(cfg)
	guarded, open := pages.Routes()
	for pattern, handler := range guarded {
		r.guard.Page(pattern)
		r.server.Handle(pattern, handler)
	}
	r.server.Handle("/", pages.Nowhere())
	for pattern, handler := range open {
		r.server.HandleSigned(pattern, handler)
	}
	return pages
}

// dial connects to a searcher, by function calls if it is in this process. Plans are
// sealed in either case. Near says that it is in the router's zone.
func (r *Router) dial(address string, near bool) (server.Conn, error) {
	var unary grpc.UnaryClientInterceptor
	var stream grpc.StreamClientInterceptor
	options := []grpc.DialOption{grpc.WithStatsHandler(r.fanoutMetrics.Traffic(near))}
	if r.key != nil {
		sealer := access.Sealer{Key: r.key}
		unary, stream = sealer.Unary, sealer.Stream
		options = append(options, grpc.WithChainUnaryInterceptor(unary), grpc.WithChainStreamInterceptor(stream))
	}
	if r.deps.Local != nil {
		if local := r.deps.Local(address); local != nil {
			return server.Intercept(local, unary, stream), nil
		}
	}
	return server.Dial(address, r.cfg.Searcher, r.transport, r.tel, options...)
}

func (r *Router) searchConfig(peers *fanout.Peers, store *catalog.Store) search.Config {
	return search.Config{
		Budget: search.Budget{Default: r.cfg.defaultTimeout(), Most: r.cfg.MaxTimeout},
		Limits: search.Limits{MaxFiles: searchapi.MaxFiles, MaxBytes: searchapi.MaxBytes, QueryBytes: queryBytes},
		Policy: fanout.Policy{CoverWait: coverWait, Pause: coverPause, Replicas: r.cfg.Replication},
		Status: store.RepoStatus, Names: store.DesiredNames, Peers: peers, MaxQueries: r.cfg.MaxQueries, CallerShare: r.cfg.CallerShare,
		CallerProcessors: r.cfg.CallerProcessors, Live: r.live,
	}
}
