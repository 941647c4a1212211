package indexer

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/membership"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestWritesWhatSearchersRead has searchers that do not read what this indexer writes, from its
// start and later. Nothing is published while one is there.
func TestWritesWhatSearchersRead(t *testing.T) {
	for name, old := range map[string]*catalogv1.Searcher{
		"reads none":    {Id: "old"},
		"reads another": {Id: "old", ShardFormats: []uint32{format.Version - 1, format.Version + 1}, Version: "v0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := gitsourcetest.New(t)
			repo.Files("main", "a", "1")
			r := newRole(t, repo.Dir)
			searcher := func(s *catalogv1.Searcher) *membership.Registration {
				reg := membership.Register(t.Context(), r.servers.Client(), catalog.DefaultPrefix, s, time.Minute, slog.New(slog.DiscardHandler))
				t.Cleanup(func() { _ = reg.Close(t.Context()) })
				if err := reg.SetDraining(t.Context(), false); err != nil { // waits for the record
					t.Fatal(err)
				}
				return reg
			}
			searcher(&catalogv1.Searcher{Id: "new", ShardFormats: membership.ShardFormats()})
			for range 2 { // at the start, and while it works
				behind := searcher(old)
				if r.indexer == nil {
					r.run()
				}
				r.waitReady("upgrade the searchers old")
				before := r.generation("repo")
				epoch := r.put("repo", repo.Dir, true)
				time.Sleep(300 * time.Millisecond) // in which a worker would have published it
				if now := r.generation("repo"); now != before {
					t.Errorf("generation %d was published, which a searcher cannot read", now)
				}
				if err := behind.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.wait("repo", epoch, ingestv1.State_STATE_PUBLISHED)
				repo.Files("main", "a", "2")
			}
		})
	}
}

// generation is what is published of a repo, 0 if nothing is.
func (r *role) generation(name string) uint64 {
	r.t.Helper()
	root, err := r.store.GetRoot(r.t.Context(), name)
	if errors.Is(err, catalog.ErrNotFound) {
		return 0
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return root.Record.GetGeneration()
}
