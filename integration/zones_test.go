package integration

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// zoned is a router in a zone, and what it answered.
type zoned struct {
	zone                 string
	router               *process
	search               searchv1.SearchServiceClient
	answers, bad, failed atomic.Uint64
}

// ask searches until ctx ends, and counts the answers.
func (z *zoned) ask(ctx context.Context, want int) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, patience)
		answer, err := z.search.Search(limited, &searchv1.SearchRequest{Query: "heron", Options: &searchv1.SearchOptions{MaxFiles: 100}})
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			z.failed.Add(1)
		case !answer.GetCoverage().GetComplete() || len(answer.GetFiles()) != want:
			z.bad.Add(1)
		}
		z.answers.Add(1)
	}
}

var zoneBytes = regexp.MustCompile(`(?m)^trawl_router_searcher_bytes_total\{.*zone="(\w+)"\} (\S+)$`)

// bytes returns how much a router sent to and got from the searchers of its own zone and of others.
func (z *zoned) bytes(t *testing.T) (own, other float64) {
	t.Helper()
	page, _, err := get(t.Context(), "http://"+z.router.addresses(t).HTTP+"/metrics")
	testrun.Must(t, err)
	for _, m := range zoneBytes.FindAllStringSubmatch(page, -1) {
		value, err := strconv.ParseFloat(m[2], 64)
		testrun.Must(t, err)
		if m[1] == "own" {
			own = value
		} else {
			other = value
		}
	}
	return own, other
}

// crossing is the share of the bytes between zones of what some routers have moved since before.
func crossing(t *testing.T, routers []*zoned, before map[string][2]float64) float64 {
	t.Helper()
	all, across := 0.0, 0.0
	for _, z := range routers {
		own, other := z.bytes(t)
		if own == 0 || other == 0 {
			t.Errorf("the router in %s has moved %.0f bytes within its zone and %.0f beyond", z.zone, own, other)
		}
		own, other = own-before[z.zone][0], other-before[z.zone][1]
		before[z.zone] = [2]float64{before[z.zone][0] + own, before[z.zone][1] + other}
		all, across = all+own+other, across+other
		t.Logf("the router in %s: %.0f kB within its zone, %.0f kB from others", z.zone, own/1000, other/1000)
	}
	return across / all
}

// TestZoneIsLostAtOnce: three zones have a router and two searchers each, and every shard has two replicas. No answer is
// incomplete while all processes of a zone are killed at once, nor afterwards, or while they come back. Each shard is
// in two of the three zones, so a third of the bytes cross zones if no searcher is slow or gets more than its share. How
// many do is logged, since it depends on the load of the machine; that a router asks its own zone first is what
// TestOwnZoneIsAskedFirst in services/router/internal/fanout shows.
func TestZoneIsLostAtOnce(t *testing.T) {
	zones := []string{"x", "y", "z"}
	const repos = 24
	c := &cluster{owner: t, dir: t.TempDir()}
	c.startServers(t)
	searcher := func(i int) *process { return c.startSearcher(t, i, "--zone", zones[i%len(zones)]) }
	for i := range 2 * len(zones) {
		c.searchers = append(c.searchers, searcher(i))
	}
	c.startIndexer(t)
	var routers []*zoned
	for _, zone := range zones {
		c.extra = map[string][]string{"router": {"--zone", zone}}
		c.startRouter(t)
		routers = append(routers, &zoned{zone: zone, router: c.router, search: c.search})
	}
	for _, p := range c.searchers {
		c.ready(t, p)
	}
	for i := range repos {
		r := newRepository(t, c.dir, fmt.Sprintf("repo%02d", i))
		r.write("pond.txt", strings.Repeat(fmt.Sprintf("a heron in pond %d\n", i), 200))
		r.commit("first")
		c.put(t, r.path, nameOf(i))
	}
	for _, z := range routers {
		testrun.Until(t, "all is found from "+z.zone, func() bool {
			answer, err := z.search.Search(t.Context(), &searchv1.SearchRequest{Query: "heron", Options: &searchv1.SearchOptions{MaxFiles: 100}})
			return err == nil && answer.GetCoverage().GetComplete() && len(answer.GetFiles()) == repos
		})
	}
	const lost = 1
	before := map[string][2]float64{}
	crossing(t, routers, before)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone, leave := context.WithCancel(ctx) // of callers in the lost zone
	var asking sync.WaitGroup
	for i, z := range routers {
		asking.Go(func() {
			if i == lost {
				z.ask(gone, repos)
			} else {
				z.ask(ctx, repos)
			}
		})
	}
	phase := func(what string, routers ...*zoned) {
		n := routers[0].answers.Load()
		testrun.Until(t, "a hundred answers "+what, func() bool { return routers[0].answers.Load() >= n+100 })
		time.Sleep(time.Second)
		t.Logf("%s: %.1f %% of the bytes cross zones", what, 100*crossing(t, routers, before))
	}
	phase("with all zones", routers...)
	leave()
	rest := []*zoned{routers[0], routers[2]}
	routers[lost].router.kill()
	for i := lost; i < len(c.searchers); i += len(zones) {
		c.searchers[i].kill()
	}
	phase("without a zone", rest...)
	for i := lost; i < len(c.searchers); i += len(zones) {
		c.searchers[i] = searcher(i)
		c.ready(t, c.searchers[i])
	}
	phase("with the zone again", rest...)
	cancel()
	asking.Wait()
	for _, z := range routers {
		t.Logf("the router in %s: %d answers", z.zone, z.answers.Load())
		if z.bad.Load()+z.failed.Load() > 0 {
			t.Errorf("the router in %s: %d incomplete, %d failed", z.zone, z.bad.Load(), z.failed.Load())
		}
	}
}
