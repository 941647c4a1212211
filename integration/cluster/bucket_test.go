package cluster

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trawl-search/trawl/integration/cluster/faults"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// download reports whether a request downloads a shard.
func download(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/shards/")
}

// TestBucketFails: the bucket fails in every way while searchers download. A shard that
// cannot be downloaded unharmed is missing and named in answers, never wrong. It is served
// when the bucket works again.
func TestBucketFails(t *testing.T) {
	c := newCluster(t, layout{searchers: 2, faultyBucket: true})
	repos := c.newRepositories("sound", 2)
	c.index(repos...)
	c.expect(repos...)
	for _, tt := range []struct {
		name  string
		fault faults.S3Fault
	}{
		{"failing", faults.S3Fault{Status: http.StatusInternalServerError}},
		{"truncated", faults.S3Fault{Truncate: true}},
		{"shortened", faults.S3Fault{Shorten: true}},
		{"flipped", faults.S3Fault{Flip: true}},
		{"slow", faults.S3Fault{BytesPerSecond: 2000}}, // the shard takes many times the wait
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := c.within(t)
			r := c.newRepository(tt.name)
			r.commit(c.rng, 4, 500)
			repos = append(repos, r)
			c.failingDownload(t, tt.fault, r, repos)
		})
	}
	t.Run("uploads", func(t *testing.T) { repos = append(repos, c.within(t).failingUpload(t)) })
	t.Run("half of everything", func(t *testing.T) { c.within(t).faultsByChance(t, repos) })
}

func (c *cluster) failingDownload(t *testing.T, f faults.S3Fault, r *repository, repos []*repository) {
	before := c.bucket.Injected()
	c.bucket.Set(func(req *http.Request) faults.S3Fault {
		if download(req) {
			return f
		}
		return faults.S3Fault{}
	})
	c.index(r)
	stop := c.asking(2*time.Second, repos...)
	time.Sleep(3 * time.Second)
	l := stop()
	if l.complete > 0 || l.incomplete == 0 {
		t.Error("an answer is complete although a shard could not be downloaded")
	}
	if c.bucket.Injected() == before {
		t.Error("no download met the fault")
	}
	c.bucket.Set(nil)
	c.expect(repos...)
}

// failingUpload: an indexer retries as long as the bucket refuses uploads.
func (c *cluster) failingUpload(t *testing.T) *repository {
	r := c.newRepository("uploaded")
	r.commit(c.rng, 4, 500)
	before := c.bucket.Injected()
	c.bucket.Set(func(req *http.Request) faults.S3Fault {
		if req.Method == http.MethodPut {
			return faults.S3Fault{Status: http.StatusServiceUnavailable}
		}
		return faults.S3Fault{}
	})
	put := c.put(r)
	time.Sleep(3 * time.Second)
	if c.bucket.Injected() == before {
		t.Error("no upload met the fault")
	}
	c.bucket.Set(nil)
	if s := c.published(put); s.GetState() == ingestv1.State_STATE_FAILED {
		t.Errorf("the request failed for good: %v", s)
	}
	return r
}

// faultsByChance: from now on half of all requests fail, in random ways, and everything
// is found nevertheless.
func (c *cluster) faultsByChance(t *testing.T, repos []*repository) {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(c.rng.Uint64(), 0))
	kinds := []faults.S3Fault{{Status: 500}, {Status: 503}, {Truncate: true}, {Shorten: true}, {Flip: true}}
	c.bucket.Set(func(req *http.Request) faults.S3Fault {
		mu.Lock()
		defer mu.Unlock()
		if rng.IntN(2) == 0 {
			return faults.S3Fault{}
		}
		return kinds[rng.IntN(len(kinds))]
	})
	defer c.bucket.Set(nil)
	for _, r := range repos[:2] {
		r.commit(c.rng, 4, 200)
		c.index(r)
	}
	c.expect(repos...)
	t.Logf("%d requests met a fault", c.bucket.Injected())
}
