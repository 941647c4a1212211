package router

import (
	"context"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// TestSweepsKeepTheDirectory: a look at the same searchers, which closes the connections to those that left, costs no
// ranking of the searchers of all shards.
func TestSweepsKeepTheDirectory(t *testing.T) {
	ping := func(context.Context, fanout.Target) error { return nil }
	peers := fanout.NewPeers(fanout.Shares{}, ping, fanout.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	s := newSearchers(fanout.NewConns(nil), peers, 2, "")
	list := []*catalogv1.Searcher{{Id: "a"}, {Id: "b"}}
	s.update(list)
	first := s.directory.Load()
	if s.update(list); s.directory.Load() != first {
		t.Error("the same searchers got another directory")
	}
	if s.update(list[:1]); s.directory.Load() == first {
		t.Error("other searchers got no other directory")
	}
}
