package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trawl-search/trawl/integration/cluster/faults"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestPausedIndexerPublishesOnce: an indexer hangs at the worst moment, when everything but
// the manifest is uploaded. Meanwhile its lease ends, another indexer does the job, and the
// first one's uploads are collected. When it goes on, its publication is refused, and what it
// still uploads is garbage.
func TestPausedIndexerPublishesOnce(t *testing.T) {
	c := newCluster(t, layout{indexers: 2, faultyBucket: true, indexerArgs: []string{"--gc-hold", hold.String()}})
	r := c.newRepository("repo")
	r.commit(c.rng, 5, 20)
	caught, release := c.holdFirstManifest()

	put := c.put(r)
	zombie := c.at(<-caught)
	zombie.pause(t)
	if s := c.published(put); s.GetGeneration() != 1 {
		t.Fatalf("published as %v", s)
	}
	store, _ := c.catalog()
	before, err := store.GetRoot(t.Context(), r.name)
	c.must(err)
	g := c.collector(func() error { return nil })
	if c.collect(g) == 0 {
		t.Error("what the zombie uploaded is no garbage")
	}

	zombie.unpause(t)
	close(release)
	testrun.Eventually(t, "the zombie gives up", func(ctx context.Context) error {
		if !strings.Contains(zombie.logged(ctx), "job not done") {
			return errors.New("it does not say that its job is not done")
		}
		return nil
	})
	after, err := store.GetRoot(t.Context(), r.name)
	c.must(err)
	if after.Revision != before.Revision || after.Record.GetGeneration() != 1 {
		t.Errorf("the root was written again: generation %d at %d, then %d at %d",
			before.Record.GetGeneration(), before.Revision, after.Record.GetGeneration(), after.Revision)
	}
	testrun.Eventually(t, "what the zombie uploads is collected", func(context.Context) error {
		c.collect(g)
		if found := c.findings(g); len(found) > 0 { // an upload that it gave up may arrive late
			return fmt.Errorf("after the zombie: %v", found)
		}
		return nil
	})
	c.expect(r)
	r.commit(c.rng, 3, 20)
	if s := c.published(c.put(r)); s.GetGeneration() != 2 {
		t.Errorf("the next request was published as %v", s)
	}
	c.expect(r)
}

// holdFirstManifest holds back the first upload of a manifest, and the later ones of the same
// indexer, until release is closed. It sends the indexer's address to caught.
func (c *cluster) holdFirstManifest() (caught <-chan netip.Addr, release chan struct{}) {
	found := make(chan netip.Addr, 1)
	release = make(chan struct{})
	var first atomic.Pointer[netip.Addr]
	c.bucket.Set(func(r *http.Request) faults.S3Fault {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
			return faults.S3Fault{}
		}
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return faults.S3Fault{}
		}
		if first.CompareAndSwap(nil, &addr) {
			found <- addr
		}
		if *first.Load() != addr {
			return faults.S3Fault{}
		}
		return faults.S3Fault{Wait: release}
	})
	return found, release
}

// at returns the indexer with an address.
func (c *cluster) at(addr netip.Addr) *node {
	c.t.Helper()
	for _, n := range c.indexers {
		if n.ip(c.t) == addr {
			return n
		}
	}
	c.t.Fatalf("no indexer has the address %v", addr)
	return nil
}

// TestIndexerDies: in the middle of many jobs one indexer is killed and another one is cut off
// from the network. The remaining indexer publishes all requests.
func TestIndexerDies(t *testing.T) {
	c := newCluster(t, layout{indexers: 3})
	repos := c.newRepositories("repo", 8)
	var puts []*ingestv1.PutRepoResponse
	for _, r := range repos {
		puts = append(puts, c.put(r))
	}
	c.indexers[0].kill(t)
	c.indexers[1].disconnect(t)
	for _, put := range puts {
		c.published(put)
	}
	c.expect(repos...)
	c.indexers[1].connect(t)
	c.indexers[1].ready(t)
}
