package serving_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestReplicasInDifferentZones: searchers choose their shards independently, and yet each zone
// has all of them.
func TestReplicasInDifferentZones(t *testing.T) {
	const repos = 12
	tel, spans := telemetrytest.New(t)
	zones := map[int]string{0: "x", 1: "x", 2: "x", 3: "y", 4: "y"}
	c := startWith(t, &cluster{replication: 2, tel: tel, spans: spans, zones: zones}, len(zones))
	for i := range repos {
		c.publish(fmt.Sprint("host/r", i), map[string]string{"a": fmt.Sprintf("needle %d\n", i)})
	}
	c.eventually("each zone has each shard", func() bool { return c.cached(0, 1, 2) == repos && c.cached(3, 4) == repos })
	if resp := c.find("needle", &searchv1.SearchOptions{RequireComplete: true}); len(resp.Files) != repos {
		t.Errorf("found %v", paths(resp))
	}
}

// TestZonesAreTurnedOn: no answer is incomplete while searchers get their zones one after the
// other.
func TestZonesAreTurnedOn(t *testing.T) {
	const searchers = 4
	c := startCluster(t, 1, 2)
	stops := []func(){nil}
	for i := 1; i < searchers; i++ {
		stops = append(stops, c.startSearcher(i))
	}
	stop := c.keepFinding(12)
	c.zones = map[int]string{1: "x", 2: "y", 3: "y"}
	for i := 1; i < searchers; i++ { // s0 shares its telemetry with the router
		stops[i]()
		stops[i] = c.startSearcher(i)
	}
	stop()
}

// TestZoneIsLost: no answer is incomplete while the searchers of a zone end and come back, be it the router's own zone or another one.
func TestZoneIsLost(t *testing.T) {
	for _, own := range []string{"x", "y"} {
		tel, spans := telemetrytest.New(t)
		zones := map[int]string{0: "x", 1: "y", 2: "z", 3: "x", 4: "y", 5: "z"}
		c := startWith(t, &cluster{replication: 2, tel: tel, spans: spans, zones: zones, zone: own}, 1)
		stops := map[int]func(){}
		for i := 1; i < len(zones); i++ {
			stops[i] = c.startSearcher(i)
		}
		stop := c.keepFinding(24)
		for _, i := range []int{1, 4} {
			stops[i]()
		}
		time.Sleep(time.Second) // queries go on without the zone
		for _, i := range []int{1, 4} {
			c.startSearcher(i)
		}
		stop()
	}
}

// cached counts the shards in the caches of some searchers.
func (c *cluster) cached(searchers ...int) int {
	found := map[string]bool{}
	for _, i := range searchers {
		files, err := filepath.Glob(filepath.Join(c.cache(i), "*.trawl"))
		c.must(err)
		for _, name := range files {
			found[filepath.Base(name)] = true
		}
	}
	return len(found)
}
