package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/integration/workload"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestRestoreWithoutEtcd: etcd loses everything, and trawl restore rebuilds its content from
// the bucket. Queries then find what they found before, and indexing goes on from there.
func TestRestoreWithoutEtcd(t *testing.T) {
	c := newCluster(t, 2)
	alpha, beta, gamma := threeRepositories(t, c.dir)
	c.index(t, alpha, "example.org/alpha")
	c.index(t, beta, "example.org/beta", "main", "release")
	alpha.write("more.txt", "heron of the second generation\n")
	alpha.commit("second")
	c.index(t, alpha, "example.org/alpha")
	queries := []string{"c:heron", "b:release heron", "second generation", "r:alpha", `lang:python re\w+Only`}
	before := answers(t, c, queries)

	c.killAll()
	if err := os.RemoveAll(filepath.Join(c.dir, "servers")); err != nil {
		t.Fatal(err)
	}
	c.startAll(t, 2)
	c.expect(t, "c:heron") // nothing is served
	flags := []string{"restore", "--etcd-endpoints", c.etcd, "--bucket-url", c.bucket()}
	out, errs, exit := command(t, flags...)
	if exit != 0 || !strings.Contains(out, "example.org/alpha  generation 2\n") || !strings.Contains(out, "2 repos can be searched") {
		t.Fatalf("exit %d: %s%s", exit, out, errs)
	}
	if after := answers(t, c, queries); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if _, errs, exit := command(t, flags...); exit != 1 || !strings.Contains(errs, "not empty") {
		t.Errorf("restored twice: exit %d: %s", exit, errs)
	}
	alpha.write("more.txt", "heron of the third generation\n")
	alpha.commit("third")
	if s := c.index(t, alpha, "example.org/alpha"); s.GetGeneration() != 3 {
		t.Errorf("the next generation is %d", s.GetGeneration())
	}
	c.index(t, gamma, "example.org/gamma")
	c.expect(t, "third generation", "example.org/alpha:more.txt")
}

// TestRestoreSources: trawl restore brings back the sources too. Their repos go on being
// polled, and a source removed before the loss stays removed, with its repos.
func TestRestoreSources(t *testing.T) {
	c := newCluster(t, 2)
	alpha, beta, _ := threeRepositories(t, c.dir)
	host := startHost(t, alpha)
	gone := fmt.Sprintf("  - {name: gone, kind: git, url: 'file://%s', every: 1s, grace: 0s}\n", beta.path)
	listed := func(what string, want ...string) {
		t.Helper()
		testrun.Eventually(t, what, func(context.Context) error {
			out, errs, _ := command(t, "sources", "--addr", c.router.addresses(t).GRPC)
			lines := strings.Split(strings.TrimSpace(out), "\n")[1:]
			for i, line := range lines {
				if i >= len(want) || !strings.HasPrefix(line, want[i]) || !strings.HasSuffix(line, "yes") {
					return fmt.Errorf("sources: %s%s", out, errs)
				}
			}
			if len(lines) != len(want) {
				return fmt.Errorf("sources: %s%s", out, errs)
			}
			return nil
		})
	}
	atHost, asFile := strings.TrimPrefix(host.URL, "http://")+"/alpha", "localhost"+beta.path
	repos := func(want ...string) {
		t.Helper()
		testrun.Eventually(t, "the repositories are there, and no other", func(context.Context) error {
			out, _, _ := command(t, "repos", "--addr", c.router.addresses(t).GRPC)
			for _, name := range want {
				if !strings.Contains(out, name) {
					return fmt.Errorf("repos: %s", out)
				}
			}
			if strings.Count(out, "published") != len(want) || len(strings.Split(strings.TrimSpace(out), "\n")) != 1+len(want) {
				return fmt.Errorf("repos: %s", out)
			}
			return nil
		})
	}
	c.applyFile(t, host.source("1s")+gone, 2)
	repos(atHost, asFile)
	listed("both are in the bucket", "acme", "gone")
	c.applyFile(t, host.source("1s"), 1)
	repos(atHost)
	listed("one is removed", "acme")

	c.killAll()
	if err := os.RemoveAll(filepath.Join(c.dir, "servers")); err != nil {
		t.Fatal(err)
	}
	c.startAll(t, 2)
	c.expect(t, "c:heron") // nothing is served
	out, errs, exit := command(t, "restore", "--etcd-endpoints", c.etcd, "--bucket-url", c.bucket())
	if exit != 0 || !strings.Contains(out, "source acme  applied\nsource gone  removed\n") {
		t.Fatalf("exit %d: %s%s", exit, out, errs)
	}
	repos(atHost) // the removed source's repo came back and went again
	listed("they are as they were", "acme")
	alpha.write("polled.txt", "kestrel\n")
	alpha.commit("after the loss")
	testrun.Eventually(t, "a push is found", func(ctx context.Context) error {
		answer, err := c.query(ctx, "kestrel")
		if err != nil {
			return err
		}
		return workload.Compare(answer, []string{atHost + ":polled.txt"})
	})
	if out, errs, exit := command(t, "gc", "--audit", "--contents", "--etcd-endpoints", c.etcd, "--bucket-url", c.bucket()); exit != 0 || strings.Contains(out, "  sources/") {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
}

// answers returns the files that the queries find, with their commits and matches.
func answers(t *testing.T, c *cluster, queries []string) string {
	t.Helper()
	var all strings.Builder
	for _, q := range queries {
		answer, err := c.search.Search(t.Context(), &searchv1.SearchRequest{Query: q, Options: &searchv1.SearchOptions{RequireComplete: true}})
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		for _, f := range answer.GetFiles() {
			all.WriteString(q + "\t" + f.String() + "\n")
		}
	}
	return all.String()
}
