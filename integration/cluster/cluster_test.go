package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	dockernet "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
)

// layout gives the number of each role and server in a cluster, 0 meaning one, and their
// particular settings.
type layout struct {
	etcd, nats                   int
	indexers, searchers, routers int
	// replication of shards; 0 means 2.
	replication int
	// faultyBucket puts a proxy in front of the bucket: cluster.bucket.
	faultyBucket bool
	// proxiedSearchers puts a proxy in front of each searcher: cluster.toSearcher.
	proxiedSearchers bool
	// proxiedEtcd puts a proxy between the routers and etcd: cluster.toEtcd.
	proxiedEtcd bool
	// indexerArgs and searcherArgs are added to the arguments of every indexer and searcher.
	indexerArgs, searcherArgs []string
	// indexerTmpfs and searcherTmpfs put the caches in memory, with these mount options.
	indexerTmpfs, searcherTmpfs string
}

// cluster is Trawl and its servers, in containers on a network of their own.
type cluster struct {
	*suite
	proxies
	t       *testing.T
	rng     *rand.Rand
	name    string
	layout  layout
	network *testcontainers.DockerNetwork
	gateway string // this machine's address as the containers see it
	git     *gitServer
	objects objectStore

	mu    sync.Mutex
	nodes []*node // in order of their start

	etcd, nats                   []*node
	indexers, searchers, routers []*node
	clients                      []*routerClient
}

// newCluster starts a cluster and waits until all of it is ready. The test's end
// removes it.
func newCluster(t *testing.T, l layout) *cluster {
	t.Helper()
	start := time.Now()
	c := newNetwork(t)
	c.layout = l.withDefaults()
	c.all(c.startEtcd, c.startNATS, c.startObjects)
	c.startProxies()
	c.all(c.startIndexers, c.startSearchers)
	c.startRouters()
	for _, n := range append(append([]*node{}, c.searchers...), c.indexers...) {
		n.ready(t)
	}
	t.Logf("the cluster is ready after %.1f s", time.Since(start).Seconds())
	return c
}

// newNetwork starts only the network and the Git server of a cluster.
func newNetwork(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{suite: need(t), t: t, rng: testrun.Rand(t)}
	c.name = fmt.Sprintf("%s-%d", strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), time.Now().UnixNano())
	t.Cleanup(c.close)
	c.startNetwork()
	c.git = newGitServer(t, c.gateway)
	return c
}

func (l layout) withDefaults() layout {
	for _, n := range []*int{&l.etcd, &l.nats, &l.indexers, &l.searchers, &l.routers} {
		*n = max(*n, 1)
	}
	if l.replication == 0 {
		l.replication = 2
	}
	return l
}

// within returns the cluster for a subtest, to which failures are reported.
func (c *cluster) within(t *testing.T) *cluster {
	t.Helper()
	return &cluster{
		suite: c.suite, proxies: c.proxies, t: t, rng: c.rng, name: c.name, layout: c.layout, network: c.network,
		gateway: c.gateway, git: c.git, objects: c.objects,
		etcd: c.etcd, nats: c.nats, indexers: c.indexers, searchers: c.searchers, routers: c.routers, clients: c.clients,
	}
}

// must fails the test on an error.
func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// all runs the functions concurrently.
func (c *cluster) all(starts ...func(context.Context) error) {
	c.t.Helper()
	group, ctx := errgroup.WithContext(c.t.Context())
	for _, start := range starts {
		group.Go(func() error { return start(ctx) })
	}
	c.must(group.Wait())
}

func (c *cluster) startNetwork() {
	c.t.Helper()
	var err error
	c.network, err = network.New(c.t.Context(), network.WithLabels(map[string]string{label: c.name}))
	c.must(err)
	info, err := c.docker.NetworkInspect(c.t.Context(), c.network.ID, client.NetworkInspectOptions{})
	c.must(err)
	if len(info.Network.IPAM.Config) == 0 {
		c.t.Fatal("the network has no addresses")
	}
	c.gateway = info.Network.IPAM.Config[0].Gateway.String()
}

// listen is an address on this machine, with any port, that the containers can reach.
func (c *cluster) listen() string { return net.JoinHostPort(c.gateway, "0") }

// close removes everything, and keeps the logs when the test failed.
func (c *cluster) close() {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	if c.t.Failed() {
		c.writeLogs(ctx)
	}
	for _, client := range c.clients {
		client.Close()
	}
	var group errgroup.Group
	for _, n := range c.nodes {
		group.Go(func() error { return c.remove(ctx, n.ID) })
	}
	errs := []error{group.Wait(), c.closeProxies(), c.objects.close(ctx)}
	if c.network != nil {
		errs = append(errs, c.network.Remove(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		c.t.Errorf("clean up: %v", err)
	}
}

// startMany starts n containers concurrently and stores them in nodes.
func (c *cluster) startMany(ctx context.Context, nodes *[]*node, n int, of func(i int) spec) error {
	*nodes = make([]*node, n)
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		group.Go(func() (err error) {
			(*nodes)[i], err = c.start(ctx, of(i))
			return err
		})
	}
	return group.Wait()
}

// aliased is an endpoint under a name.
func aliased(name string) *dockernet.EndpointSettings {
	return &dockernet.EndpointSettings{Aliases: []string{name}}
}

// catalog returns a store that reads etcd as the roles do, and its client, which the end of
// the test closes.
func (c *cluster) catalog() (*catalog.Store, *clientv3.Client) {
	c.t.Helper()
	etcd, err := catalog.Connect(catalog.Options{Endpoints: []string{"http://" + c.etcd[0].address(c.t, "2379/tcp")}})
	c.must(err)
	c.t.Cleanup(func() { etcd.Close() })
	return catalog.New(etcd, ""), etcd
}
