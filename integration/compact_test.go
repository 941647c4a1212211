package integration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// eager makes an indexer merge whatever it can at once.
var eager = []string{
	"--compact-every", "300ms", "--compact-settle", "0s", "--compact-deltas", "1", "--compact-reclaim", "0s",
	"--gc-every", "1s", "--gc-hold", "5s",
}

// TestCompaction: thirty small repos are packed into shared shards, pushed to and
// deleted. Queries of all kinds find exactly the current content throughout. The
// content of deleted repos leaves the bucket, even when it was in a shared shard.
func TestCompaction(t *testing.T) {
	c := newCluster(t, 2)
	c.indexer.stop(t)
	c.startIndexer(t, eager...)
	p := &pond{cluster: c, store: c.catalog(t)}
	for i := range 30 {
		r := newRepository(t, c.dir, fmt.Sprintf("repo%02d", i))
		r.write("own.go", fmt.Sprintf("package own\n\n// heron of %02d\nfunc only%02d() {}\n", i, i))
		r.write("doc/same.md", "the same in each, as a license is\n")
		r.write("pond.py", fmt.Sprintf("def pond():\n    return %d\n", i))
		r.write("fish.txt", "fish one two three\n")
		r.commit("first")
		p.repos = append(p.repos, r)
	}
	for i := range p.repos {
		c.put(t, p.repos[i].path, nameOf(i))
	}
	for i := range p.repos {
		if s := c.settled(t, &ingestv1.PutRepoResponse{Name: nameOf(i), Epoch: 1}); s.GetState() == ingestv1.State_STATE_FAILED {
			t.Fatal(s)
		}
	}
	p.packed(t)
	p.check(t)
	for i := range 5 {
		r := p.repos[i]
		r.write("own.go", fmt.Sprintf("package own\n\n// heron of %02d\nfunc only%02d() { pushed() }\n", i, i))
		r.write("new.txt", "kingfisher\n")
		r.commit("second")
		c.index(t, r, nameOf(i))
		p.pushed++
		p.check(t)
	}
	p.packed(t)
	p.check(t)
	var gone []string
	for i := 20; i < 25; i++ {
		gone = append(gone, p.objects(t, nameOf(i))...)
		if _, err := c.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: nameOf(i)}); err != nil {
			t.Fatal(err)
		}
		p.deleted++
		p.check(t)
	}
	testrun.Eventually(t, "what had documents of deleted repos is gone", func(context.Context) error {
		for _, key := range gone {
			if _, err := os.Stat(filepath.Join(c.dir, "bucket", key)); err == nil {
				return fmt.Errorf("%s is there still", key)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	p.check(t)
}

func nameOf(i int) string { return fmt.Sprintf("example.org/team/repo%02d", i) }

func (c *cluster) catalog(t *testing.T) *catalog.Store {
	t.Helper()
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{c.etcd}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return catalog.New(client, "")
}

// pond is a cluster with repos. The first pushed ones have a second commit; the deleted
// ones start at index 20.
type pond struct {
	*cluster

	store           *catalog.Store
	repos           []*repository
	pushed, deleted int
}

// check runs queries of all kinds and wants exactly the files of the remaining repos.
func (p *pond) check(t *testing.T) {
	t.Helper()
	all := func(path string) (files []string) {
		for i := range p.repos {
			if i < 20 || i >= 20+p.deleted {
				files = append(files, nameOf(i)+":"+path)
			}
		}
		return files
	}
	var pushed, kingfishers []string
	for i := range p.pushed {
		pushed, kingfishers = append(pushed, nameOf(i)+":own.go"), append(kingfishers, nameOf(i)+":new.txt")
	}
	p.expect(t, `"heron of"`, all("own.go")...)
	p.expect(t, `only\d\d\(\)`, all("own.go")...)
	p.expect(t, "lang:python pond", all("pond.py")...)
	p.expect(t, "f:fish.txt$ two", all("fish.txt")...)
	p.expect(t, "b:main license", all("doc/same.md")...)
	p.expect(t, "pushed", pushed...)
	p.expect(t, "c:kingfisher", kingfishers...)
	p.expect(t, "r:repo07 -lang:python -f:md$ (fish or heron) -f:new", nameOf(7)+":own.go", nameOf(7)+":fish.txt")
}

// packed waits until the repos are in a few shards, some with many of them, and
// no repo has deltas.
func (p *pond) packed(t *testing.T) {
	t.Helper()
	testrun.Eventually(t, "the repos share shards", func(ctx context.Context) error {
		repos := map[string]int{}
		most := 0
		for root, err := range p.store.ListRoots(ctx) {
			if err != nil {
				return err
			}
			if n := len(root.Record.GetShards()); n > 2 {
				return fmt.Errorf("%s has %d shards", root.Record.GetRepo(), n)
			}
			for _, ref := range root.Record.GetShards() {
				repos[ref.GetKey()]++
				most = max(most, repos[ref.GetKey()])
			}
		}
		if len(repos) > 20 || most < 8 {
			return fmt.Errorf("%d shards, at most %d repos in one", len(repos), most)
		}
		return nil
	})
}

// objects are the shards that have documents of a repo.
func (p *pond) objects(t *testing.T, repo string) []string {
	t.Helper()
	keys, err := p.store.PacksOf(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	root, err := p.store.GetRoot(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range root.Record.GetShards() {
		keys = append(keys, ref.GetKey())
	}
	return keys
}
