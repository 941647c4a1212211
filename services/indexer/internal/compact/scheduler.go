package compact

import (
	"context"
	"log/slog"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/wait"
)

const (
	// maxPlanned bounds the planned compactions. Roots change, so a plan that waits
	// for long is in vain.
	maxPlanned = 32
	// splitAfter is the number of failed attempts after which a compaction of several
	// repos is split in halves, until the repo that makes it fail is alone.
	splitAfter = 2
)

// Scheduler plans compactions. One runs in the leading indexer. Two at once do no
// harm, since a compaction that is planned twice is done once.
type Scheduler struct {
	Config
	// Live overrides Deltas, Settle and Reclaim; nil: nothing does.
	Live    *limits.Live
	Store   *catalog.Store
	Metrics *Metrics
	Log     *slog.Logger
}

// Run plans until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	if s.Every == 0 {
		return
	}
	defer s.Metrics.setPlanned(&view{}, nil)
	for changed := s.Live.Changed(); s.sleep(ctx, changed); {
		changed = s.Live.Changed()
		if err := s.Pass(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "planning compactions failed, trying again", "error", err)
		}
	}
}

// sleep waits until it is time for the next plan, or a limit has changed since. It reports whether ctx goes on.
func (s *Scheduler) sleep(ctx context.Context, changed <-chan struct{}) bool {
	select {
	case <-time.After(wait.Jitter(s.Every, 4)):
	case <-changed:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Pass plans once. It is for one goroutine.
func (s *Scheduler) Pass(ctx context.Context, now time.Time) error {
	state, err := s.state(ctx, now)
	if err != nil {
		return err
	}
	if state.Planned, err = s.replaceOutdated(ctx, state); err != nil {
		return err
	}
	var times []time.Time
	for _, c := range state.Planned {
		times = append(times, c.Record.GetPlannedAt().AsTime())
	}
	s.Metrics.setPlanned(newView(state), times)
	// A pressing compaction has a place however many others are planned.
	policy := s.InForce(s.Live)
	for i, c := range policy.Plan(state) {
		if i+len(state.Planned) >= maxPlanned && !c.GetPressing() || i >= maxPlanned {
			break
		}
		if err := s.Store.PlanCompaction(ctx, c); err != nil {
			return err
		}
		s.Log.InfoContext(ctx, "compaction planned", "reason", c.GetReason(), "repos", len(c.GetInputs()))
	}
	return nil
}

// state reads what a plan is made from. It reads packs after roots, since a pack is
// recorded before a root names it.
func (s *Scheduler) state(ctx context.Context, now time.Time) (State, error) {
	state := State{Now: now}
	for root, err := range s.Store.ListRoots(ctx) {
		if err != nil {
			return state, err
		}
		state.Roots = append(state.Roots, root)
	}
	for pack, err := range s.Store.ListPacks(ctx) {
		if err != nil {
			return state, err
		}
		state.Packs = append(state.Packs, pack)
	}
	var err error
	if state.Lives, err = s.Store.Lives(ctx); err != nil {
		return state, err
	}
	state.Planned, err = s.Store.ListCompactions(ctx)
	return state, err
}

// replaceOutdated removes plans that cannot be carried out any more, splits those
// that fail, and returns those that stay.
func (s *Scheduler) replaceOutdated(ctx context.Context, state State) (stay []catalog.Compaction, err error) {
	revisions := map[string]int64{}
	for _, root := range state.Roots {
		revisions[root.Record.GetRepo()] = root.Revision
	}
	for _, c := range state.Planned {
		switch {
		case c.Claimed:
			stay = append(stay, c)
		case stale(c, revisions):
			err = s.Store.ReplaceCompaction(ctx, c)
		case c.Record.GetAttempts() >= splitAfter && len(c.Record.GetInputs()) > 1:
			s.Log.WarnContext(ctx, "splitting a compaction that fails", "reason", c.Record.GetReason(),
				"repos", len(c.Record.GetInputs()), "attempts", c.Record.GetAttempts(), "error", c.Record.GetError())
			err = s.Store.ReplaceCompaction(ctx, c, halves(c.Record)...)
			stay = append(stay, c) // its halves have the same repos
		default:
			stay = append(stay, c)
		}
		if err != nil {
			return nil, err
		}
	}
	return stay, nil
}
