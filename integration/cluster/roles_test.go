package cluster

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/trawl-search/trawl/internal/access"
)

// Leases are short, so that tests see them end.
const leaseTTL = "3s"

// serve returns the flags that all roles share.
func (c *cluster) serve(grpc, http, etcd string) []string {
	return []string{"--grpc", "0.0.0.0:" + grpc, "--http", "0.0.0.0:" + http, "--etcd-endpoints", etcd, "--drain-delay", "1s"}
}

// guarded returns the flags that make a role require tokens. It accepts them for longer than
// etcd is away in any test.
func guarded() []string { return []string{"--access-mode", "tokens", "--access-staleness", "2m"} }

// token makes the token of the test's clients.
func (c *cluster) token() access.Text {
	c.t.Helper()
	_, etcd := c.catalog()
	ctx, cancel := context.WithTimeout(c.t.Context(), queryTime)
	defer cancel()
	text, _, err := access.NewStore(etcd, "").Create(ctx, access.Spec{
		Name: c.name, Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeAdmin}, // tests name their repos freely
	})
	c.must(err)
	return text
}

// policy returns the flags that allow fetching from this machine.
func (c *cluster) policy() []string {
	gateway := netip.MustParseAddr(c.gateway)
	return []string{"--source-schemes", "http", "--source-private-networks", netip.PrefixFrom(gateway, gateway.BitLen()).String()}
}

func (c *cluster) startIndexers(ctx context.Context) error {
	return c.startMany(ctx, &c.indexers, c.layout.indexers, func(i int) spec {
		const cache = "/var/cache/trawl/indexer"
		s := spec{
			name: fmt.Sprintf("indexer%d", i), image: c.images.Indexer, env: c.objects.env("INDEXER"), ports: []string{"7440/tcp", "7441/tcp"},
			ready: wait.ForHTTP("/healthz").WithPort("7441/tcp"),
			args: concat([]string{"indexer"}, c.serve("7440", "7441", c.etcdEndpoints()), c.policy(), []string{
				"--nats-url", c.natsURL(), "--nats-replicas", fmt.Sprint(c.layout.nats), "--cache-dir", cache,
				"--lease-ttl", leaseTTL, "--reconcile-every", "2s", "--workers", "2",
			}, c.layout.indexerArgs),
		}
		s.keep(cache, c.layout.indexerTmpfs)
		return s
	})
}

// keep puts a role's cache on a volume, or in memory if mount options are given.
func (s *spec) keep(cache, tmpfs string) {
	if tmpfs == "" {
		s.volumes = []string{cache}
	} else {
		s.tmpfs = map[string]string{cache: tmpfs}
	}
}

func (c *cluster) startSearchers(ctx context.Context) error {
	return c.startMany(ctx, &c.searchers, c.layout.searchers, c.searcherSpec)
}

func (c *cluster) searcherSpec(i int) spec {
	const cache = "/var/cache/trawl/searcher"
	name := fmt.Sprintf("searcher%d", i)
	advertise := name + ":7440"
	if c.layout.proxiedSearchers {
		advertise = c.toSearcher[i].Addr()
	}
	s := spec{
		name: name, image: c.images.Searcher, env: c.objects.env("SEARCHER"), ports: []string{"7440/tcp", "7441/tcp"},
		ready: wait.ForHTTP("/healthz").WithPort("7441/tcp"),
		args: concat([]string{"searcher"}, c.serve("7440", "7441", c.etcdEndpoints()), []string{
			"--id", name, "--advertise", advertise, "--cache-dir", cache, "--lease-ttl", leaseTTL,
			"--replication", fmt.Sprint(c.layout.replication),
		}, guarded(), c.layout.searcherArgs),
	}
	s.keep(cache, c.layout.searcherTmpfs)
	return s
}

func (c *cluster) startRouters() {
	c.t.Helper()
	etcd := c.etcdEndpoints()
	if c.toEtcd != nil {
		etcd = "http://" + c.toEtcd.Addr()
	}
	c.must(c.startMany(c.t.Context(), &c.routers, c.layout.routers, func(i int) spec {
		return spec{
			name: fmt.Sprintf("router%d", i), image: c.images.Router, ports: []string{"7430/tcp", "7431/tcp"}, fixed: true,
			ready: wait.ForHTTP("/readyz").WithPort("7431/tcp"),
			args: concat([]string{"router"}, c.serve("7430", "7431", etcd), c.policy(), []string{
				"--nats-url", c.natsURL(), "--nats-replicas", fmt.Sprint(c.layout.nats),
				"--replication", fmt.Sprint(c.layout.replication),
			}, guarded()),
		}
	}))
	token := c.token()
	for _, n := range c.routers {
		c.clients = append(c.clients, newRouterClient(c.t, n, token))
	}
}

func concat(lists ...[]string) (all []string) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}
