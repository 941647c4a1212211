// Package searcher is the role that holds shards and searches them. It takes
// the shards that rendezvous hashing places on it, and answers routers for
// exactly the shards they name.
package searcher

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/serve"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// component names the role in logs, metrics and traces.
const component = "searcher"

const (
	// loadRetry is the first pause after a shard could not be loaded.
	loadRetry = time.Second
	// reportPoll is the time between two checks whether the report of this disk has
	// changed.
	reportPoll = time.Second
	// leaveTimeout bounds each write to etcd at a shutdown: etcd may be away, and the
	// lease ends by itself.
	leaveTimeout = 2 * time.Second
)

// Deps are what a searcher works with. The caller of New closes them, after Run.
type Deps struct {
	Etcd *clientv3.Client
	// Prefix stands before every key in etcd; empty: catalog.DefaultPrefix.
	Prefix    string
	Bucket    bucket.Bucket
	Telemetry *telemetry.Telemetry
}

// Searcher is one searcher.
type Searcher struct {
	cfg     Config
	deps    Deps
	tel     *telemetry.Telemetry
	server  *server.Server
	store   *shardcache.Store
	metrics *serve.Metrics
	// key is nil if the searcher answers every caller that reaches its address.
	key *access.Key
}

// New makes a searcher and its cache folder. It does not listen or open connections
// yet.
func New(cfg Config, deps Deps) (*Searcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure searcher: %w", err)
	}
	s := &Searcher{cfg: cfg, deps: deps, tel: deps.Telemetry.For(component)}
	stored := shardcache.NewMetrics(s.tel.Metrics())
	s.metrics = serve.NewMetrics(s.tel.Metrics())
	if err := os.MkdirAll(cfg.CacheDir, 0o750); err != nil {
		return nil, fmt.Errorf("make the shard cache: %w", err)
	}
	budget, err := cfg.diskBudget()
	if err != nil {
		return nil, fmt.Errorf("size the shard cache: %w", err)
	}
	held := shardcache.Config{Dir: cfg.CacheDir, Budget: budget, Loads: loads, Grace: cfg.Grace, Retry: loadRetry}
	if s.store, err = shardcache.New(held, deps.Bucket, openShard, s.tel.Logger(), stored); err != nil {
		return nil, err
	}
	var gates []server.Option
	if cfg.Access.Asked() {
		s.key = access.NewKey(access.NewStore(deps.Etcd, deps.Prefix), s.tel.Logger())
		gates = append(gates, server.WithGate(access.Checker{Key: s.key}))
	}
	if s.server, err = server.New(cfg.Config, s.tel, gates...); err != nil {
		return nil, err
	}
	return s, nil
}

func openShard(path string) (shardcache.Shard, error) {
	sh, err := search.Open(path)
	if err != nil {
		return nil, err // not a nil *search.Shard in an interface
	}
	return sh, nil
}

// Listen binds the addresses, so that they are known before Run.
func (s *Searcher) Listen(ctx context.Context) error { return s.server.Listen(ctx) }

// GRPCAddr is the address that gRPC is bound to, or nil before Listen.
func (s *Searcher) GRPCAddr() net.Addr { return s.server.GRPCAddr() }

// HTTPAddr is the address that HTTP is bound to, or nil before Listen.
func (s *Searcher) HTTPAddr() net.Addr { return s.server.HTTPAddr() }

// Ready reports whether the searcher can do its work.
func (s *Searcher) Ready() bool { return s.server.Readiness().Ready() }

// Local calls this searcher from within its process.
func (s *Searcher) Local() *server.Local { return s.server.Local() }

// Address is the address under which routers call this searcher. It is known after Listen.
func (s *Searcher) Address() string {
	if s.cfg.Advertise != "" {
		return s.cfg.Advertise
	}
	return reachable(s.GRPCAddr().String())
}

// Run serves until ctx ends. Then it marks itself as draining, answers the calls that
// still arrive, and removes its record. Run does not fail while etcd or the bucket is
// away: the searcher is not ready then, and continues when they are back. A searcher
// runs once.
func (s *Searcher) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	// What calls need lives until the drain is over.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	log := s.tel.Logger()
	truth := catalog.New(s.deps.Etcd, s.deps.Prefix)
	view := catalog.NewShardView(life, truth, log)
	defer view.Close()
	members := membership.NewMembers(life, s.deps.Etcd, truth.Prefix(), log)
	defer members.Close()
	follower := shardcache.NewFollower(view, members, s.store, membership.Member{ID: s.cfg.ID, Zone: s.cfg.Zone}, s.cfg.Replication, log)
	s.serve(follower)

	ready := conditions{
		etcd:       s.server.Readiness().Condition("etcd"),
		registered: s.server.Readiness().Condition("registered"),
		shards:     s.server.Readiness().Condition("shards"),
		bucket:     s.server.Readiness().Condition("bucket"),
	}
	registration := membership.Register(life, s.deps.Etcd, truth.Prefix(), s.record(), s.cfg.LeaseTTL, log)
	var working sync.WaitGroup
	working.Go(func() { s.store.Run(life) })
	working.Go(func() { follower.Run(life) })
	working.Go(func() { ready.follow(life, follower, registration, s.deps.Bucket, s.store, log) })
	working.Go(func() { s.reportDisk(life, truth.Prefix(), follower) })
	s.followKey(life, &working)
	working.Go(func() { s.drain(ctx, life, truth.Prefix(), registration) })
	err := s.server.Run(ctx)
	s.deregister(registration)
	end()
	working.Wait()
	return err
}

// followKey follows the key that routers seal plans with.
func (s *Searcher) followKey(ctx context.Context, working *sync.WaitGroup) {
	if s.key == nil {
		return
	}
	ready := s.server.Readiness().Condition("access")
	ready.Unmet("the key of plans has not been read yet")
	working.Go(func() { s.key.Run(ctx) })
	working.Go(func() {
		if s.key.Wait(ctx) == nil {
			ready.Met()
		}
	})
}

func (s *Searcher) serve(follower *shardcache.Follower) {
	cfg := serve.Config{Parallel: runtime.GOMAXPROCS(0), LoadWait: loadWait, MaxAnswer: s.cfg.Limits.ResponseBytes}
	tracer := s.tel.Tracer("github.com/trawl-search/trawl/services/searcher")
	searchv1.RegisterSearchServiceServer(s.server, serve.New(cfg, s.store, follower, tracer, s.metrics, s.tel.Logger()))
}

// record is what routers and indexers read about this searcher.
func (s *Searcher) record() *catalogv1.Searcher {
	return &catalogv1.Searcher{
		Id: s.cfg.ID, Address: s.Address(), Zone: s.cfg.Zone, StartedAt: timestamppb.Now(),
		ShardFormats: membership.ShardFormats(), Version: s.tel.Version(),
	}
}

// reachable is the address that other hosts can call when this process listens on the
// given one. If it listens on all interfaces, that is the host's name.
func reachable(listening string) string {
	addr, err := netip.ParseAddrPort(listening)
	if err != nil || !addr.Addr().IsUnspecified() {
		return listening
	}
	host, err := os.Hostname()
	if err != nil {
		return listening
	}
	return net.JoinHostPort(host, strconv.Itoa(int(addr.Port())))
}

// deregister removes the record after the last call.
func (s *Searcher) deregister(r *membership.Registration) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		s.tel.Logger().WarnContext(ctx, "remove the record of this searcher", "error", err)
	}
}
