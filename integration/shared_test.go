package integration

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestSharedServers: two clusters share one etcd and one NATS, and one's prefix begins with
// the other's. They see nothing of each other, and no key lies outside the prefixes.
func TestSharedServers(t *testing.T) {
	a := &cluster{owner: t, dir: t.TempDir(), prefix: "team"}
	a.startServers(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{a.etcd}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	keys := watchKeys(t, client)
	b := &cluster{owner: t, dir: t.TempDir(), prefix: "team-b", etcd: a.etcd, nats: a.nats}
	both := map[string]*cluster{"alpha": a, "beta": b}
	for name, c := range both {
		c.startRoles(t, 1)
		c.index(t, onlyFile(t, c.dir, name), "example.org/"+name)
	}
	for name, c := range both {
		c.expect(t, "c:heron", "example.org/"+name+":a.txt")
		list, err := c.ingest.ListRepos(t.Context(), &ingestv1.ListReposRequest{})
		if err != nil || len(list.GetRepos()) != 1 || list.GetRepos()[0].GetName() != "example.org/"+name {
			t.Errorf("repos of %s: %v, %v", name, list, err)
		}
	}
	checkTokensApart(t, a, b)
	checkBucketOfOne(t, a, b)

	// One cluster moves to another prefix, and the other goes on.
	for _, p := range append(a.searchers, a.indexer, a.router) {
		p.kill()
	}
	if err := os.Remove(filepath.Join(a.dir, "bucket", "owner")); err != nil {
		t.Fatal(err)
	}
	a.prefix = "moved"
	out, errs, exit := command(t, "restore", "--etcd-endpoints", a.etcd, "--etcd-prefix", a.etcdPrefix(), "--bucket-url", a.bucket())
	if exit != 0 || !strings.Contains(out, "1 repo can be searched") {
		t.Errorf("restore: exit %d: %s%s", exit, out, errs)
	}
	a.startRoles(t, 1)
	a.expect(t, "c:heron", "example.org/alpha:a.txt")
	b.expect(t, "c:heron", "example.org/beta:a.txt")

	checkStreams(t, a.nats, "MOVED_DEAD", "MOVED_JOBS", "TEAM-B_DEAD", "TEAM-B_JOBS", "TEAM_DEAD", "TEAM_JOBS")
	kinds := map[string]bool{}
	for _, key := range keys() {
		parts := strings.Split(key, "/")
		if len(parts) < 4 || parts[0] != "" || !slices.Contains([]string{"team", "team-b", "moved"}, parts[1]) || parts[2] != "v1" {
			t.Errorf("key %q is outside of the prefixes", key)
			continue
		}
		kinds[parts[3]] = true
	}
	for _, kind := range []string{"desired", "roots", "leases", "elections", "searchers", "disks", "access", "access.key"} {
		if !kinds[kind] {
			t.Errorf("no key of the kind %q was seen: %v", kind, kinds)
		}
	}
}

// onlyFile is a repository with one file.
func onlyFile(t *testing.T, dir, name string) *repository {
	t.Helper()
	r := newRepository(t, dir, name)
	r.write("a.txt", "a heron of "+name+"\n")
	r.commit("first")
	return r
}

// watchKeys collects the keys of everything that is written to etcd from now on.
func watchKeys(t *testing.T, client *clientv3.Client) (seen func() []string) {
	t.Helper()
	now, err := client.Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	if err != nil || len(now.Kvs) > 0 {
		t.Fatalf("etcd is not empty: %v, %v", now, err)
	}
	var mu sync.Mutex
	keys := map[string]bool{}
	var watching sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	events := client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(now.Header.Revision+1))
	watching.Go(func() {
		for answer := range events {
			if err := answer.Err(); err != nil && ctx.Err() == nil {
				t.Errorf("watch etcd: %v", err)
			}
			mu.Lock()
			for _, e := range answer.Events {
				keys[string(e.Kv.Key)] = true
			}
			mu.Unlock()
		}
	})
	t.Cleanup(func() { cancel(); watching.Wait() })
	return func() (list []string) {
		mu.Lock()
		defer mu.Unlock()
		for key := range keys {
			list = append(list, key)
		}
		return list
	}
}

// checkTokensApart makes a token of one cluster, which the other neither lists nor accepts.
func checkTokensApart(t *testing.T, a, b *cluster) {
	t.Helper()
	tokens := func(c *cluster, args ...string) string {
		t.Helper()
		out, errs, exit := command(t, slices.Concat([]string{"tokens"}, args, []string{"--etcd-endpoints", c.etcd, "--etcd-prefix", c.etcdPrefix()})...)
		if exit != 0 {
			t.Fatalf("tokens %v: exit %d: %s%s", args, exit, out, errs)
		}
		return out
	}
	file := filepath.Join(a.dir, "token")
	if err := os.WriteFile(file, []byte(tokens(a, "create", "--name", "mine", "--allow", "**", "--scopes", "search,ingest")), 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(tokens(a, "list"), "mine") || strings.Contains(tokens(b, "list"), "mine") {
		t.Errorf("tokens of a: %s\nof b: %s", tokens(a, "list"), tokens(b, "list"))
	}
	for c, want := range map[*cluster]int{a: 0, b: 1} {
		router := c.role(t, "router with tokens", "router", "--nats-url", c.nats, "--access-mode", "tokens")
		c.ready(t, router)
		if out, errs, exit := command(t, "repos", "--addr", router.addresses(t).GRPC, "--token-file", file); exit != want {
			t.Errorf("cluster %s with the token of %s: exit %d, want %d: %s%s", c.prefix, a.prefix, exit, want, out, errs)
		}
		router.stop(t)
	}
}

// checkBucketOfOne: b refuses to use the bucket of a.
func checkBucketOfOne(t *testing.T, a, b *cluster) {
	t.Helper()
	for _, args := range [][]string{{"gc"}, {"gc", "--audit"}, {"restore", "--dry-run"}} {
		out, errs, exit := command(t, append(args, "--etcd-endpoints", b.etcd, "--etcd-prefix", b.etcdPrefix(), "--bucket-url", a.bucket())...)
		if exit != 1 || !strings.Contains(errs, "belongs to another Trawl") {
			t.Errorf("%v: exit %d: %s%s", args, exit, out, errs)
		}
	}
	if out, errs, exit := command(t, "gc", "--audit", "--etcd-endpoints", a.etcd, "--etcd-prefix", a.etcdPrefix(), "--bucket-url", a.bucket()); exit != 0 || strings.Contains(out, "unknown") {
		t.Errorf("audit by its owner: exit %d: %s%s", exit, out, errs)
	}
	lost := b.role(t, "indexer with the wrong bucket", "indexer", "--nats-url", b.nats, "--bucket-url", a.bucket(), "--cache-dir", filepath.Join(b.dir, "lost"))
	b.lacks(t, lost, "belongs to another Trawl")
	lost.stop(t)
}

// checkStreams compares the names of all streams.
func checkStreams(t *testing.T, url string, want ...string) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	lister := js.StreamNames(t.Context())
	var names []string
	for name := range lister.Name() {
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, want) || lister.Err() != nil {
		t.Errorf("streams %q, %v, want %q", names, lister.Err(), want)
	}
}
