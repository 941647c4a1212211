package cluster

import (
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestIndexAndSearch: on real servers, indexed content is found through every router, updates
// replace it and deletions remove it.
func TestIndexAndSearch(t *testing.T) {
	c := newCluster(t, layout{indexers: 2, searchers: 3, routers: 2})
	repos := c.newRepositories("repo", 5)
	c.index(repos...)
	c.expect(repos...)

	updated := repos[c.rng.IntN(len(repos))]
	updated.commit(c.rng, 3, 20)
	c.index(updated)
	c.expect(repos...)
	c.finds(updated.token(1))
	c.finds(updated.token(2), updated)

	gone := repos[len(repos)-1]
	if _, err := c.clients[0].ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: gone.name}); err != nil {
		t.Fatal(err)
	}
	c.expect(repos[:len(repos)-1]...)
	c.finds(gone.token(gone.commits))
}

// finds expects every router to find a word in all files of the repos.
func (c *cluster) finds(word string, repos ...*repository) {
	c.t.Helper()
	for i, rc := range c.clients {
		answer, err := rc.query(c.t.Context(), word, queryTime, nil)
		if err == nil {
			err = complete(answer, repos)
		}
		if err != nil {
			c.t.Errorf("router%d, %s: %v", i, word, err)
		}
	}
}

// TestNothingIsLeftBehind: a run removes everything that a killed run left, even a paused
// container and its volume.
func TestNothingIsLeftBehind(t *testing.T) {
	s := need(t)
	c := &cluster{suite: s, t: t, name: "left", layout: layout{}.withDefaults(), rng: testrun.Rand(t)}
	c.startNetwork()
	c.must(c.startNATS(t.Context()))
	c.nats[0].pause(t)
	removed, err := s.sweep(t.Context())
	c.must(err)
	for _, what := range []string{"container ", "network "} {
		if !strings.Contains(strings.Join(removed, "\n"), what) {
			t.Errorf("no %swas found among %q", what, removed)
		}
	}
	labelled := client.Filters{}.Add("label", label)
	containers, err := s.docker.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: labelled})
	c.must(err)
	volumes, err := s.docker.VolumeList(t.Context(), client.VolumeListOptions{Filters: labelled})
	c.must(err)
	networks, err := s.docker.NetworkList(t.Context(), client.NetworkListOptions{Filters: labelled})
	c.must(err)
	if len(containers.Items)+len(volumes.Items)+len(networks.Items) > 0 {
		t.Errorf("left: %v %v %v", containers.Items, volumes.Items, networks.Items)
	}
}
