package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestRestoreWithoutEtcd: etcd loses everything, trawl restore makes it anew from
// the bucket, and everything is found as before and goes on from there.
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

// answers are the files of all queries, with their commits and matches.
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
