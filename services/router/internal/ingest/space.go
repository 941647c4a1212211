package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/wait"
)

const (
	// maxShare is the part of etcd's space up to which repos are put. The rest is for what must go on
	// then: revocations, deletions, leases, registrations and publications.
	maxShare = 0.8
	// maxRepos is how many repos a caller may add who is not an administrator. Each takes at most
	// catalog.MaxDesiredBytes.
	maxRepos = 10_000
	// spacePause is the time between two questions to etcd.
	spacePause = 10 * time.Second
	// spaceBytes is how much is put between two questions.
	spaceBytes = 1 << 20
	// spaceRetry is when callers may come back.
	spaceRetry = time.Minute
	// countTimeout is how long a caller waits until it is known what callers have added, just after the start.
	countTimeout = 2 * time.Second
)

// errNotCounted means that etcd did not list what callers have added.
var errNotCounted = status.Error(codes.Unavailable, "this router has just started and does not know yet what callers have added: try again soon")

// Space knows how much of etcd's space is used, and by whom. It keeps a part free, and callers from
// using up the rest. It is safe for concurrent use.
type Space struct {
	ask         func(context.Context) (catalog.Space, error)
	puts        *catalog.Puts
	used, quota prometheus.Gauge
	log         *slog.Logger

	mu     sync.Mutex
	now    catalog.Space // the last answer
	asking bool
	put    int // bytes since the last question, whether or not it was answered
}

// NewSpace makes a space of which nothing is known until Run, and registers its metrics.
func NewSpace(store *catalog.Store, r prometheus.Registerer, log *slog.Logger) *Space {
	return &Space{
		ask: store.Space, puts: catalog.NewPuts(store, log), log: log,
		used: promauto.With(r).NewGauge(prometheus.GaugeOpts{
			Name: "trawl_router_etcd_used_bytes", Help: "Size of the database of the fullest member of etcd.",
		}),
		quota: promauto.With(r).NewGauge(prometheus.GaugeOpts{
			Name: "trawl_router_etcd_quota_bytes", Help: "Size of its database beyond which etcd refuses changes; 0 if etcd does not say.",
		}),
	}
}

// Run keeps asking etcd until ctx ends.
func (s *Space) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { s.puts.Run(ctx) })
	for ctx.Err() == nil {
		s.look(ctx)
		wait.Sleep(ctx, spacePause)
	}
}

// look asks etcd, unless somebody else does.
func (s *Space) look(ctx context.Context) {
	s.mu.Lock()
	if s.asking {
		s.mu.Unlock()
		return
	}
	s.asking, s.put = true, 0
	s.mu.Unlock()
	now, err := s.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
	if err != nil {
		if ctx.Err() == nil {
			s.log.WarnContext(ctx, "the size of etcd is unknown", "error", err)
		}
		return
	}
	s.now = now
	s.used.Set(float64(now.Used))
	s.quota.Set(float64(now.Quota))
}

// take counts bytes that are about to be put. It returns RESOURCE_EXHAUSTED if little space is left. The caller who puts
// the last of spaceBytes waits until etcd was asked, which takes seconds at most; the others go by the last answer.
func (s *Space) take(ctx context.Context, bytes int) error {
	s.mu.Lock()
	s.put += bytes
	due := s.put >= spaceBytes
	s.mu.Unlock()
	if due {
		s.look(context.WithoutCancel(ctx)) // others rely on the answer, too
	}
	s.mu.Lock()
	share := s.now.Share()
	s.mu.Unlock()
	if share < maxShare {
		return nil
	}
	return searchapi.Overloaded(fmt.Sprintf("etcd has used %.0f %% of its space, and the rest is kept for other changes: "+
		"ask an administrator to compact and defragment etcd, or to raise its quota", 100*share), spaceRetry)
}

// limited is the name under which the repos of a caller are counted; empty for administrators, who are not
// limited.
func limited(ctx context.Context) string {
	caller, err := access.From(ctx)
	if err != nil || caller.May(access.ScopeAdmin) {
		return "" // a call by nobody does not get this far
	}
	return caller.ID()
}

// add returns RESOURCE_EXHAUSTED if a caller may not add a repo to those that there are.
func (s *Space) add(ctx context.Context, caller string) error {
	if caller == "" {
		return nil
	}
	counting, cancel := context.WithTimeoutCause(ctx, countTimeout, errNotCounted)
	defer cancel()
	added, err := s.puts.Count(counting, caller)
	if errors.Is(err, errNotCounted) {
		return errNotCounted
	}
	if err != nil {
		return storeError(ctx, "put repo", err)
	}
	if added < maxRepos {
		return nil
	}
	return searchapi.Overloaded(fmt.Sprintf("your token has added %d repos, and deleted ones count for a month: "+
		"more need a token with the scope admin, or a source", maxRepos), spaceRetry)
}
