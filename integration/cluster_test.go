package integration

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/integration/workload"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// cluster is Trawl as separate processes on one data folder.
type cluster struct {
	owner  *testing.T // its end stops the processes
	dir    string
	binary string // for processes started from now on; empty: the binary under test

	servers   *process // etcd and NATS
	indexer   *process
	searchers []*process
	router    *process

	routerHTTP string
	search     searchv1.SearchServiceClient
	ingest     ingestv1.IngestServiceClient

	etcd, nats string
	// bucketName is the folder of the bucket; empty: bucket.
	bucketName string
	// prefix separates clusters that share servers; empty: the defaults.
	prefix string
	// extra are further flags of each role, which override the others.
	extra map[string][]string
}

// newCluster starts a cluster with the given number of searchers.
func newCluster(t *testing.T, searchers int) *cluster {
	t.Helper()
	c := &cluster{owner: t, dir: t.TempDir()}
	c.startAll(t, searchers)
	return c
}

// startServers starts etcd and NATS on the existing data.
func (c *cluster) startServers(t *testing.T) {
	t.Helper()
	c.servers = c.start("servers", "up", "--roles", "none", "--data-dir", filepath.Join(c.dir, "servers"),
		"--etcd-listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	c.awaitServers(t)
}

// awaitServers waits until etcd and NATS say where they are.
func (c *cluster) awaitServers(t *testing.T) {
	t.Helper()
	type places struct{ etcd, nats string }
	found := await(t, c.servers, "where etcd and NATS are", func(line string) (places, bool) {
		var p places
		n, _ := fmt.Sscanf(line, "ready: etcd %s NATS %s", &p.etcd, &p.nats)
		p.etcd = strings.TrimSuffix(p.etcd, ",")
		return p, n == 2
	})
	c.etcd, c.nats = found.etcd, found.nats
}

// startAll starts every process on the existing data.
func (c *cluster) startAll(t *testing.T, searchers int) {
	t.Helper()
	c.startServers(t)
	c.startRoles(t, searchers)
}

// startRoles starts every role on the running servers.
func (c *cluster) startRoles(t *testing.T, searchers int) {
	t.Helper()
	c.searchers = nil
	for i := range searchers {
		c.searchers = append(c.searchers, c.startSearcher(t, i))
	}
	c.startIndexer(t)
	c.startRouter(t)
	for _, p := range c.searchers {
		c.ready(t, p)
	}
}

// start starts a process of the cluster.
func (c *cluster) start(name string, args ...string) *process {
	return startBinary(c.owner, cmp.Or(c.binary, trawlBinary), name, args...)
}

// role starts one role with the flags that all roles need.
func (c *cluster) role(t *testing.T, name, role string, args ...string) *process {
	t.Helper()
	args = append([]string{role, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--etcd-endpoints", c.etcd, "--drain-delay", "0s"}, args...)
	if c.prefix != "" {
		args = append(args, "--etcd-prefix", c.etcdPrefix())
		if role != "searcher" {
			args = append(args, "--nats-prefix", c.prefix)
		}
	}
	return c.start(name, append(args, c.extra[role]...)...)
}

func (c *cluster) etcdPrefix() string { return "/" + c.prefix + "/v1/" }

func (c *cluster) bucket() string {
	return "file://" + filepath.Join(c.dir, cmp.Or(c.bucketName, "bucket"))
}

// searcherCache is where searcher i keeps its shards.
func (c *cluster) searcherCache(i int) string {
	return filepath.Join(c.dir, fmt.Sprintf("searcher%d", i))
}

func (c *cluster) startSearcher(t *testing.T, i int, args ...string) *process {
	t.Helper()
	return c.role(t, fmt.Sprintf("searcher%d", i), "searcher", append([]string{"--bucket-url", c.bucket(), "--replication", "2",
		"--id", fmt.Sprintf("searcher%d", i), "--cache-dir", c.searcherCache(i)}, args...)...)
}

func (c *cluster) startIndexer(t *testing.T, args ...string) {
	t.Helper()
	args = append(args, c.policy()...)
	c.indexer = c.role(t, "indexer", "indexer", append(args, "--nats-url", c.nats, "--bucket-url", c.bucket(),
		"--cache-dir", filepath.Join(c.dir, "indexer"), "--reconcile-every", "2s", "--source-credentials", c.credentials(), "--push-pause", "1s")...)
}

func (c *cluster) startRouter(t *testing.T) {
	t.Helper()
	c.router = c.role(t, "router", "router", append(c.policy(), "--nats-url", c.nats, "--replication", "2", "--source-credentials", c.credentials(), "--push-pause", "1s")...)
	at := c.router.addresses(t)
	c.routerHTTP = at.HTTP
	conn, err := grpc.NewClient(at.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	c.owner.Cleanup(func() { conn.Close() })
	c.search, c.ingest = searchv1.NewSearchServiceClient(conn), ingestv1.NewIngestServiceClient(conn)
	c.ready(t, c.router)
}

// credentials is the folder with the secrets of sources.
func (c *cluster) credentials() string { return filepath.Join(c.dir, "credentials") }

// policy allows the repositories of the tests: folders below the cluster's folder,
// and http from this machine.
func (c *cluster) policy() []string {
	return []string{"--source-folders", c.dir, "--source-schemes", "https,ssh,http", "--source-private-networks", "127.0.0.0/8"}
}

// ready waits until a role says it is ready.
func (c *cluster) ready(t *testing.T, p *process) {
	t.Helper()
	testrun.Eventually(t, p.name+" is ready", func(ctx context.Context) error {
		code, text, err := readiness(ctx, p.addresses(t))
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d: %s", code, text)
		}
		return err
	})
}

// lacks waits until a process reports that it is not ready, with these words.
func (c *cluster) lacks(t *testing.T, p *process, words string) {
	t.Helper()
	testrun.Eventually(t, p.name+" says "+words, func(ctx context.Context) error {
		code, text, err := readiness(ctx, p.addresses(t))
		if err == nil && (code == http.StatusOK || !strings.Contains(text, words)) {
			err = fmt.Errorf("%d: %s", code, text)
		}
		return err
	})
}

// readiness asks a process whether it is ready.
func readiness(ctx context.Context, at serving) (code int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.HTTP+"/readyz", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// killAll ends every process at once.
func (c *cluster) killAll() {
	for _, p := range append([]*process{c.router, c.indexer, c.servers}, c.searchers...) {
		p.kill()
	}
}

// put requests that a repo be indexed and returns the acknowledged request.
func (c *cluster) put(t *testing.T, url, name string, branches ...string) *ingestv1.PutRepoResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	put, err := c.ingest.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: url, Name: name, Branches: branches})
	if err != nil {
		t.Fatalf("PutRepo(%s): %v", url, err)
	}
	return put
}

// settled follows a request until it is published or failed.
func (c *cluster) settled(t *testing.T, put *ingestv1.PutRepoResponse) *ingestv1.RepoStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := c.ingest.WatchRepo(ctx, &ingestv1.WatchRepoRequest{Name: put.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	var last *ingestv1.RepoStatus
	for {
		m, err := stream.Recv()
		if err != nil {
			t.Fatalf("watching %s: %v; its last status was %v", put.GetName(), err, last)
		}
		last = m.GetStatus()
		if last.GetPublishedEpoch() >= put.GetEpoch() || last.GetState() == ingestv1.State_STATE_FAILED && last.GetEpoch() >= put.GetEpoch() {
			return last
		}
	}
}

// index indexes a repository and waits until it is published.
func (c *cluster) index(t *testing.T, r *repository, name string, branches ...string) *ingestv1.RepoStatus {
	t.Helper()
	s := c.settled(t, c.put(t, r.path, name, branches...))
	if s.GetState() == ingestv1.State_STATE_FAILED {
		t.Fatalf("%s was not indexed: %s", name, s.GetReason())
	}
	return s
}

// query searches with a deadline long enough for a slow machine.
func (c *cluster) query(ctx context.Context, text string) (*searchv1.SearchResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.search.Search(ctx, &searchv1.SearchRequest{Query: text})
}

// expect searches and checks the whole answer: it is complete, its counts add up,
// and it has exactly the files want, each "repo:path".
func (c *cluster) expect(t *testing.T, text string, want ...string) *searchv1.SearchResponse {
	t.Helper()
	answer, err := c.query(t.Context(), text)
	if err != nil {
		t.Errorf("search %q: %v", text, err)
		return nil
	}
	if err := workload.Compare(answer, want); err != nil {
		t.Errorf("search %q: %v", text, err)
	}
	return answer
}

func files(answer *searchv1.SearchResponse) map[string]bool {
	set := map[string]bool{}
	for _, f := range answer.GetFiles() {
		set[f.GetRepo()+":"+string(f.GetPath())] = true
	}
	return set
}
