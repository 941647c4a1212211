package catalog_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// shared is the etcd of all tests that do not stop it; each has its own prefix.
var shared *embedded.Etcd

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "catalog")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if shared, err = embedded.StartEtcd(context.Background(), etcdConfig(dir)); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := shared.Close(); err != nil {
		panic(err)
	}
	if err := goleak.Find(); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

func etcdConfig(dir string) embedded.Config {
	return embedded.Config{
		NoSync: true,
		Dir:    dir, Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: quiet(),
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// newStore makes a store below the test's name, and leaves nothing there: a test
// that runs again begins anew.
func newStore(t *testing.T) *catalog.Store {
	prefix := "/" + t.Name() + "/"
	t.Cleanup(func() {
		if _, err := shared.Client().Delete(context.Background(), prefix, clientv3.WithPrefix()); err != nil {
			t.Error(err)
		}
	})
	return catalog.New(shared.Client(), prefix)
}

func connect(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func putDesired(t *testing.T, s *catalog.Store, name string) uint64 {
	t.Helper()
	epoch, _, err := s.PutDesired(t.Context(), &catalogv1.Desired{Name: name, Url: "https://" + name})
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}

func acquire(t *testing.T, s *catalog.Store, repo string) *catalog.Lease {
	t.Helper()
	lease, err := s.AcquireLease(t.Context(), repo, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(t, lease) })
	return lease
}

// release gives a lease back; etcd may be gone already.
func release(t *testing.T, lease *catalog.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
	defer cancel()
	_ = lease.Release(ctx)
}

// nextRoot is what an honest job publishes under a lease.
func nextRoot(lease *catalog.Lease) *catalogv1.Root {
	return &catalogv1.Root{
		Repo: lease.Desired().Name, Generation: lease.NextGeneration(), Epoch: lease.Desired().Epoch,
		Shards: []*catalogv1.ShardRef{{Digest: fmt.Appendf(nil, "shard of %d", lease.Fence())}},
	}
}

// publish does one honest job: lease, publish, release.
func publish(t *testing.T, s *catalog.Store, repo string) int64 {
	t.Helper()
	lease := acquire(t, s, repo)
	revision, err := s.Publish(t.Context(), lease, lease.Root(), nextRoot(lease))
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return revision
}

// gate stands between a client and etcd, and can be shut: connections break and
// new ones are refused, as in a partition.
type gate struct {
	target string
	mu     sync.Mutex
	listen net.Listener
	addr   string
	conns  map[net.Conn]bool
	done   sync.WaitGroup
}

func newGate(t *testing.T, endpoint string) *gate {
	t.Helper()
	g := &gate{target: strings.TrimPrefix(endpoint, "unix://"), addr: testrun.Address(t), conns: map[net.Conn]bool{}}
	g.open(t)
	t.Cleanup(g.shut)
	return g
}

func (g *gate) endpoint() string { return "http://" + g.addr }

func (g *gate) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	g.listen = l
	g.done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			g.pass(conn)
		}
	})
}

func (g *gate) pass(client net.Conn) {
	server, err := net.Dial("unix", g.target)
	if err != nil {
		client.Close()
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns[client], g.conns[server] = true, true
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		g.done.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			way[0].Close()
			way[1].Close()
		})
	}
}

func (g *gate) shut() {
	g.listen.Close()
	g.mu.Lock()
	for conn := range g.conns {
		conn.Close()
	}
	clear(g.conns)
	g.mu.Unlock()
	g.done.Wait()
}
