package search

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/index/query"
)

// crashes is a quarantine with searchers that die.
type crashes struct {
	*testing.T
	*quarantine
}

// inQuarantine runs a test of a quarantine in simulated time.
func inQuarantine(t *testing.T, test func(crashes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		metrics := NewMetrics(prometheus.NewRegistry())
		test(crashes{t, newQuarantine(metrics, slog.New(slog.DiscardHandler))})
	})
}

func (c crashes) of(text string) fingerprint {
	tree, err := query.Parse(text, query.ParseOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return fingerprintOf(tree, text, 1)
}

// crash ends a searcher while it works on the queries.
func (c crashes) crash(searcher string, queries ...string) {
	var running []*call
	for _, text := range queries {
		running = append(running, c.begin(c.of(text), searcher))
	}
	time.Sleep(time.Second)
	for _, r := range running {
		r.end(c.Context(), true, false)
	}
	time.Sleep(10 * time.Second)
}

// survives runs a query on a searcher that answers it.
func (c crashes) survives(searcher, text string) {
	c.begin(c.of(text), searcher).end(c.Context(), false, true)
}

func (c crashes) want(text string, refused bool) {
	c.Helper()
	if err := c.check(c.of(text)); (err != nil) != refused {
		c.Errorf("%s: %v, want refused: %v", text, err, refused)
	}
}

// TestShapeIsQuarantined: varying texts and figures does not evade the quarantine.
func TestShapeIsQuarantined(t *testing.T) {
	inQuarantine(t, func(c crashes) {
		for i := range 3 {
			c.want(`foo{1,998}`, false)
			c.crash(fmt.Sprint(i), fmt.Sprintf(`%cop{1,%d} word%d`, 'f'+i, 998-i, i))
		}
		c.want(`foo{1,998}`, true)
		c.want(`xyzzy{1,950}`, true)
		c.want(`foo.*bar`, false)
		c.want(`(a|b){30}`, false)
		time.Sleep(quarantineHold)
		c.want(`foo{1,998}`, false)
	})
}

// TestInnocentNeighbours: queries that ran when searchers died of another one are not refused after
// one crash, nor after many if searchers survive them otherwise.
func TestInnocentNeighbours(t *testing.T) {
	inQuarantine(t, func(c crashes) {
		var neighbours []string
		for i := range 50 {
			neighbours = append(neighbours, fmt.Sprintf("word%d", i))
		}
		c.crash("a", append(neighbours, `foo{1,998}`)...)
		for _, n := range neighbours {
			c.want(n, false)
		}
		for i := range 20 {
			searcher := fmt.Sprint(i % 4)
			c.crash(searcher, "popular", `(x|y)z{1,900}`, fmt.Sprintf(`foo{1,%d}`, 990-i))
			c.survives(searcher, "popular")
			c.survives(searcher, `(x|y)\w{200}`)
		}
		c.want("popular", false)
		c.want(`(x|y)\w{200}`, false)
		c.want(`foo{1,998}`, true) // though it was never alone
	})
}

// TestNodesThatFail: a query that is alone on searchers that end for other reasons is not refused, if
// they answer it otherwise. One that no searcher answers is refused, whatever else of its shape they do
// answer.
func TestNodesThatFail(t *testing.T) {
	inQuarantine(t, func(c crashes) {
		for _, innocent := range []string{"innocent", `foo{1,998}`} {
			for i := range 20 {
				searcher := fmt.Sprint(i % 3)
				c.crash(searcher, innocent)
				c.survives(searcher, innocent)
			}
			c.want(innocent, false)
		}
		for i := range 3 {
			c.crash("a", fmt.Sprintf(`bar{1,%d}`, 990-i))
			c.survives("a", `foo{1,998}`)
			c.survives("b", fmt.Sprintf(`bar{1,%d}`, 990-i))
		}
		c.want(`foo{1,998}`, true)
	})
}

// TestNetworkThatBreaks: a connection to every searcher that breaks at once is one crash.
func TestNetworkThatBreaks(t *testing.T) {
	inQuarantine(t, func(c crashes) {
		var running []*call
		for i := range 10 {
			running = append(running, c.begin(c.of("innocent"), fmt.Sprint(i)))
		}
		time.Sleep(time.Second)
		for _, r := range running {
			r.end(c.Context(), true, false)
		}
		time.Sleep(time.Second)
		c.want("innocent", false)
		c.crash("a", "innocent")
		c.want("innocent", false)
		c.crash("b", "innocent")
		c.want("innocent", true)
	})
}

// TestSuspectsAreBounded: neither suspects nor crashes nor calls are kept without bound.
func TestSuspectsAreBounded(t *testing.T) {
	inQuarantine(t, func(c crashes) {
		for i := range 2 * maxSuspects {
			c.crash(fmt.Sprint(i), fmt.Sprintf("word%d", i))
		}
		if len(c.suspects) > maxSuspects || len(c.quarantine.crashes) > 1 || len(c.running) > 0 {
			t.Errorf("%d suspects, %d crashes and %d searchers are kept", len(c.suspects), len(c.quarantine.crashes), len(c.running))
		}
	})
}

// TestDeathsAreForgotten: three crashes put a query into quarantine if they come within the time for
// which a death counts, and only then.
func TestDeathsAreForgotten(t *testing.T) {
	for gap := time.Minute; gap < 2*quarantineMemory; gap += 2 * time.Minute {
		inQuarantine(t, func(c crashes) {
			began := time.Now()
			c.crash("a", "query")
			time.Sleep(gap)
			c.crash("b", "query")
			time.Sleep(gap)
			c.crash("c", "query")
			c.want("query", time.Since(began) < quarantineMemory)
		})
	}
}

// TestNothingEndsAQuarantine: answers that come after a query was put into quarantine do not end that,
// nor do many other suspects that can be forgotten.
func TestNothingEndsAQuarantine(t *testing.T) {
	inQuarantine(t, func(c crashes) {
		for _, searcher := range []string{"a", "b", "c"} {
			c.crash(searcher, "killer")
		}
		for _, searcher := range []string{"a", "b", "c"} {
			c.survives(searcher, "killer")
		}
		for i := range 2 * maxSuspects {
			other := fmt.Sprintf("word%d", i)
			c.begin(c.of(other), "a").end(c.Context(), true, false)
			c.survives("a", other)
			time.Sleep(time.Millisecond)
		}
		c.want("killer", true)
		time.Sleep(quarantineHold)
		c.want("killer", false)
	})
}
