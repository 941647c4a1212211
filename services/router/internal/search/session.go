package search

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Session returns the service for a group of calls. All of them are answered from the
// roots of the first one, and from the repos for whose name and id keep holds; nil keeps all. The
// session is safe for concurrent use and needs no closing. It must not outlive the
// answer that it serves: searchers drop the shards of old generations after a while.
func (s *Service) Session(keep func(repo string, id uint32) bool) *Service {
	own := *s
	own.layouts = &session{from: s.layouts, keep: keep}
	return &own
}

// Looking begins to look at all repos for a caller who has not used up its allowance, without a searcher. Done charges the caller for
// a processor since.
func (s *Service) Looking(ctx context.Context) (done func(), err error) {
	caller, began := callerOf(ctx), time.Now()
	if err := s.usage.check(interactive, caller); err != nil {
		return nil, err
	}
	return func() { take(s.usage.processor, caller, int(time.Since(began).Microseconds())) }, nil
}

// RepoNames returns the names that contain a text, of all repos that a search sees, ascending. It asks no
// searcher. The caller is charged for the time until it has seen them.
func (s *Service) RepoNames(ctx context.Context, text string) (iter.Seq[string], error) {
	layout, err := s.layout(ctx)
	if err != nil {
		return nil, err
	}
	done, err := s.Looking(ctx)
	if err != nil {
		return nil, err
	}
	return func(yield func(string) bool) {
		defer done()
		layout.namesWith(text, false)(yield)
	}, nil
}

// Identified are the repos that a search sees and that have an id from the operator, ascending by name. They end with ctx. It asks no searcher.
func (s *Service) Identified(ctx context.Context) (iter.Seq2[uint32, string], error) {
	layout, err := s.layout(ctx)
	if err != nil {
		return nil, err
	}
	return func(yield func(uint32, string) bool) {
		for _, c := range layout.chunks {
			if ctx.Err() != nil {
				return
			}
			for r := range c.all() {
				if id := r.ID(); id != 0 && !yield(id, r.Repo) {
					return
				}
			}
		}
	}, nil
}

// NearestRepos are the names that differ least from one that does not exist, of the repos that a search sees. It asks no searcher.
func (s *Service) NearestRepos(ctx context.Context, name string) ([]string, error) {
	layout, err := s.layout(ctx)
	if err != nil {
		return nil, err
	}
	done, err := s.Looking(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return layout.nearest(name), nil
}

// Unindexed says of a repo that no search sees how far its indexing is, and what shows more. It is empty if the repo is not registered, the caller may
// not see it, or etcd does not answer within nearestTime.
func (s *Service) Unindexed(ctx context.Context, repo string) string {
	if s.cfg.Status == nil || !access.Sees(ctx, repo) {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, nearestTime)
	defer cancel()
	status, err := s.cfg.Status(ctx, repo)
	if err != nil || status.GetGeneration() > 0 { // it has a root, which is newer than what is searched, or left out of it
		return ""
	}
	shows := "shows more"
	if status.GetState() == ingestv1.State_STATE_FAILED {
		shows = "says why"
	}
	return fmt.Sprintf("%q is registered, but cannot be searched yet: its state is %s; trawl repos status %s %s", repo, searchapi.State(status.GetState()), repo, shows)
}

// RepoIDs returns a function for the ids that the operator gave the repos that a search sees; 0 where there is none. It asks no
// searcher.
func (s *Service) RepoIDs(ctx context.Context) (func(repo string) uint32, error) {
	layout, err := s.layout(ctx)
	if err != nil {
		return nil, err
	}
	return layout.id, nil
}

// Languages are the names of the languages that are indexed, those of the most repos first. Those of shards that also
// hold repos that the caller may not see are left out. No searcher is asked.
func (s *Service) Languages(ctx context.Context) ([]string, error) {
	layout, err := s.layout(ctx)
	if err != nil {
		return nil, err
	}
	repos, _ := layout.languages()
	return slices.SortedFunc(maps.Keys(repos), func(a, b string) int {
		return cmp.Or(cmp.Compare(repos[b], repos[a]), strings.Compare(a, b))
	}), nil
}

// Repos is how many repos the caller may see. A session counts the repos that its other
// calls search.
func (s *Service) Repos(ctx context.Context) (int, error) {
	layout, err := s.layout(ctx)
	if err != nil {
		return 0, err
	}
	return layout.repos, nil
}

// layout is what a search sees, for a call that asks no searcher.
func (s *Service) layout(ctx context.Context) (*Layout, error) {
	_, asking, cancel := s.cfg.Budget.split(ctx)
	defer cancel()
	return s.layouts.At(asking, nil, 0)
}

// session returns the same layout for every call.
type session struct {
	from Layouts
	keep func(repo string, id uint32) bool
	// layout is nil until a call has succeeded.
	layout atomic.Pointer[Layout]
}

// Reach implements Layouts. The layout of a session does not change, so there is nothing
// to wait for once there is one.
func (s *session) Reach(ctx context.Context, want *searchv1.Consistency, atLeast int64) error {
	if s.layout.Load() != nil {
		return nil
	}
	return s.from.Reach(ctx, want, atLeast)
}

// At implements Layouts. The first call that succeeds decides how recent the roots are.
func (s *session) At(ctx context.Context, want *searchv1.Consistency, atLeast int64) (*Layout, error) {
	if layout := s.layout.Load(); layout != nil {
		return layout, nil
	}
	layout, err := s.from.At(ctx, want, atLeast)
	if layout != nil && s.keep != nil {
		layout = (&Layout{restricted: true}).nextOf(layout, func(r catalog.Record) bool { return s.keep(r.Repo, r.ID()) })
	}
	switch {
	case layout == nil:
		return nil, err
	case err != nil:
		return layout.outdated(), err
	}
	s.layout.CompareAndSwap(nil, layout)
	return s.layout.Load(), nil
}
