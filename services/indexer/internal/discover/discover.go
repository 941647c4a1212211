// Package discover keeps the desired repos in step with the sources: it asks each
// source's host for its repos, makes them desired, deletes those that have left
// after a grace time, and has those indexed anew whose branches have moved.
package discover

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/queue"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Host lists the repos of one source.
type Host interface {
	List(ctx context.Context, s *ingestv1.Source) ([]codehost.Repo, error)
	Close()
}

// Remote tells the commits of a repository's branches.
type Remote interface {
	Branches(ctx context.Context, url string, want []string) ([]docstore.Branch, error)
}

// Queue wakes indexers.
type Queue interface {
	Publish(ctx context.Context, job queue.Job) error
}

// Config is what looking is bound by.
type Config struct {
	// PerHost is how many repositories of one host are asked for their branches at
	// once, PerSecond how many in a second.
	PerHost, PerSecond int
	// Apart is the least time between two requests for one repo.
	Apart time.Duration
}

// Discoverer looks at every source in its time. One runs in the indexer that
// leads; two at once do no harm, since each does only what is missing.
type Discoverer struct {
	Config
	Store  *catalog.Store
	Queue  Queue
	Remote Remote
	Policy origin.Policy
	// Bucket gets copies of the sources: see copies.
	Bucket bucket.Bucket
	// File has all sources, if it has a name: see applyFile.
	File string
	// Open makes a client for a source, which is closed after its use.
	Open    func() (Host, error)
	Metrics *Metrics
	Log     *slog.Logger

	hosts hosts
	// refused is why the file was not applied when it was last looked at.
	refused string
}

// readEvery is the time between two looks at which sources there are.
const readEvery = 5 * time.Second

// Run looks until the context ends. Each source has a goroutine of its own, so that
// a host that is slow or away holds up no other.
func (d *Discoverer) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	stops := map[string]func(){}
	known := map[string]int64{}
	kept := copies{Discoverer: d}
	defer d.Metrics.unstored.Set(0)
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		d.applyFile(ctx)
		now, err := d.sources(ctx)
		if err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "cannot read the sources, trying again", "error", err)
		}
		if err == nil {
			kept.keep(ctx, now)
			for name := range known {
				if now[name].Revision != known[name] {
					stops[name]()
					delete(known, name)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(now)) {
				if _, runs := known[name]; !runs {
					known[name] = now[name].Revision
					stops[name] = d.start(ctx, &running, now[name])
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (d *Discoverer) sources(ctx context.Context) (map[string]catalog.Source, error) {
	all := map[string]catalog.Source{}
	for s, err := range d.Store.ListSources(ctx) {
		if err != nil {
			return nil, err
		}
		all[s.Record.GetSpec().GetName()] = s
	}
	return all, nil
}

// start follows one source; the returned function ends it and waits.
func (d *Discoverer) start(ctx context.Context, running *sync.WaitGroup, s catalog.Source) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	running.Go(func() {
		defer close(done)
		defer cancel()
		d.follow(ctx, s)
	})
	return func() { cancel(); <-done }
}
