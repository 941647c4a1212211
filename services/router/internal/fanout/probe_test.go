package fanout

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestOneLostPing: a searcher that answered a call shortly before a ping that it misses is still asked. Its breaker opens
// at once if it had been quiet, or if it misses the next ping too without having answered anything in between.
func TestOneLostPing(t *testing.T) {
	const calls = 400 * time.Millisecond
	for _, c := range []struct {
		name  string
		steps string // a: it answers a call. m: it misses a ping. p: it answers one. w: two seconds pass.
		open  bool
	}{
		{"one lost ping", "am", false},
		{"one lost ping between calls", "amama", false},
		{"lost pings with an answer between", "amamam", false},
		{"lost pings with an answered one between", "ampm", false},
		{"two lost pings", "amm", true},
		{"a quiet searcher", "awm", true},
		{"a new searcher", "m", true},
		{"it dies after an answer", "amamm", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			target, missed := Target{ID: "s"}, false
			p := NewPeers(Shares{}, func(ctx context.Context, _ Target) error {
				if !missed {
					return nil
				}
				<-ctx.Done()
				return errors.New("silent")
			}, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
			for _, step := range c.steps {
				switch step {
				case 'a':
					time.Sleep(calls)
					p.record(target, time.Now().Add(-calls), nil, false)
				case 'w':
					time.Sleep(2 * time.Second)
				default:
					time.Sleep(time.Millisecond)
					missed = step == 'm'
					p.probe(t.Context(), target)
				}
			}
			if p.healthy(target) == c.open {
				t.Errorf("%s: the breaker is open: %t", c.name, !c.open)
			}
		})
	}
}

// TestNoStateOfThoseThatLeft: a searcher that leaves while it is pinged has no breaker in the metrics afterwards.
func TestNoStateOfThoseThatLeft(t *testing.T) {
	registry := prometheus.NewRegistry()
	var p *Peers
	p = NewPeers(Shares{}, func(context.Context, Target) error {
		p.Keep(nil)
		return errors.New("silent")
	}, NewMetrics(registry), slog.New(slog.DiscardHandler))
	p.probe(t.Context(), Target{ID: "s"})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "trawl_router_searcher_breaker" {
			t.Errorf("states of searchers that left: %v", f.GetMetric())
		}
	}
}
