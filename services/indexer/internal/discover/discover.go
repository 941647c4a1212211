// Package discover keeps the desired repos in step with the sources. It lists the
// repos of each source's host, makes them desired, deletes those that left the source
// after a grace period, and requests those whose branches moved.
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
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/wait"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Host lists the repos of one source.
type Host interface {
	List(ctx context.Context, s *ingestv1.Source) ([]codehost.Repo, error)
	Close()
}

// Remote returns the commits of a repository's branches.
type Remote interface {
	Branches(ctx context.Context, url string, want []string) ([]docstore.Branch, error)
}

// Config bounds the load on hosts and indexers.
type Config struct {
	// PerSecond bounds how many repositories of one host are asked for their branches each second, unless Live
	// overrides it.
	PerSecond int
	// Live may be nil.
	Live *limits.Live
	// Apart is the minimum time between two requests for one repo.
	Apart time.Duration
}

// Discoverer polls every source at its interval. One runs in the leading indexer. Two
// at once do no harm, since each does only what is missing.
type Discoverer struct {
	Config
	Store  *catalog.Store
	Queue  queue.Publisher
	Remote Remote
	Policy origin.Policy
	// Bucket receives copies of the sources.
	Bucket bucket.Bucket
	// File is the path of a file that defines all sources, "" if there is none.
	File string
	// Open makes a client for one source; the Discoverer closes it.
	Open    func() (Host, error)
	Metrics *Metrics
	Log     *slog.Logger

	hosts hosts
	// refused is the last reason not to apply the file, "" if it was applied.
	refused string
}

// readEvery is the time between two reads of the list of sources.
const readEvery = 5 * time.Second

// Run polls the sources until ctx ends. Each source has a goroutine of its own, so that
// a slow or unreachable host delays no other.
func (d *Discoverer) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	type polled struct {
		revision int64
		stop     func()
	}
	known := map[string]polled{}
	kept := copies{Discoverer: d}
	defer d.Metrics.unstored.Set(0)
	for ctx.Err() == nil {
		d.applyFile(ctx)
		now, err := d.sources(ctx)
		if err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "cannot read the sources, trying again", "error", err)
		}
		if err == nil {
			kept.keep(ctx, now)
			for name, before := range known {
				if now[name].Revision != before.revision {
					before.stop()
					delete(known, name)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(now)) {
				if _, runs := known[name]; !runs {
					known[name] = polled{now[name].Revision, d.start(ctx, &running, now[name])}
				}
			}
		}
		wait.Sleep(ctx, readEvery)
	}
}

// sources reads all sources, by name.
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

// start follows one source. The returned function stops it and waits for its end.
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
