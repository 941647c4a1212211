package serving_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/docstore"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// publishDelta publishes the repo's next generation: its present shards, the hidden documents
// of the first one left out, and a further shard with the files.
func (c *cluster) publishDelta(repo string, files map[string]string, hidden ...uint32) {
	c.t.Helper()
	_, _, err := c.store.PutDesired(c.t.Context(), &catalogv1.Desired{Name: repo, Url: "https://" + repo})
	c.must(err)
	lease, err := c.store.AcquireLease(c.t.Context(), repo, time.Minute)
	c.must(err)
	root := lease.Root().Record
	root.Generation, root.Epoch = lease.NextGeneration(), lease.Desired().Epoch
	root.Branches[0].Commit = fmt.Sprintf("%040d", root.Generation)
	root.Shards[0].Hidden = docstore.SetOf(hidden).Code()
	root.Shards = append(root.Shards, c.upload(lease.Fence(), root, files))
	_, err = c.store.Publish(c.t.Context(), lease, lease.Root(), root)
	c.must(err)
	c.must(lease.Release(c.t.Context()))
}

// TestDeltaIsServed: for a repo with a base and a delta every call answers what the root says:
// no hidden document, and the root's commit whichever shard a file is in.
func TestDeltaIsServed(t *testing.T) {
	c := startCluster(t, 2, 2)
	c.publish("host/other", map[string]string{"a": "needle other\n"})
	c.publish("host/one", map[string]string{"a.go": "needle old\n", "b.go": "needle stays\n", "c": "needle goes\n", "d": "needle old\n"})
	c.publishDelta("host/one", map[string]string{"a.go": "needle new\n"}, 0, 2) // a.go and c
	commit := fmt.Sprintf("%040d", 2)
	for _, mode := range []searchv1.Mode{searchv1.Mode_MODE_EXHAUSTIVE, searchv1.Mode_MODE_TOP_K} {
		resp := c.find("needle r:one", &searchv1.SearchOptions{Mode: mode})
		found := paths(resp)
		slices.Sort(found)
		if !slices.Equal(found, []string{"host/one:a.go", "host/one:b.go", "host/one:d"}) || resp.Statistics.FilesMatched != 3 || !resp.Coverage.Complete {
			t.Errorf("%v: %v, %v, %v", mode, found, resp.Statistics, resp.Coverage)
		}
		for _, f := range resp.Files {
			if f.Commit != commit {
				t.Errorf("%s is of commit %s", f.Path, f.Commit)
			}
		}
	}
	if old := paths(c.find("old", nil)); !slices.Equal(old, []string{"host/one:d"}) {
		t.Errorf("a content that is hidden once: %v", old)
	}
	list, err := c.search.List(t.Context(), &searchv1.ListRequest{Query: "goes or new"})
	c.must(err)
	if len(list.Repos) != 1 || list.Repos[0].Documents != 3 || list.Repos[0].Shards != 2 || list.Repos[0].Branches[0].Commit != commit {
		t.Errorf("list: %v", list)
	}
	for path, want := range map[string]string{"a.go": "needle new\n", "b.go": "needle stays\n"} {
		f, err := c.search.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "host/one", Path: []byte(path)})
		if err != nil || string(f.Content) != want || f.Commit != commit {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
	if f, err := c.search.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "host/one", Path: []byte("c")}); status.Code(err) != codes.NotFound {
		t.Errorf("a file that is gone: %v, %v", f, err)
	}
	stream, err := c.search.StreamSearch(t.Context(), &searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{Query: "f:a.go needle"}})
	c.must(err)
	first, err := stream.Recv()
	if err != nil || len(first.Files) != 1 || first.Files[0].Commit != commit {
		t.Errorf("stream: %v, %v", first, err)
	}
}
