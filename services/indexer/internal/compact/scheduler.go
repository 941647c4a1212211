package compact

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
)

const (
	// maxPlanned is how many compactions are planned at once: roots change, and
	// what is planned long before it is done is in vain.
	maxPlanned = 32
	// splitAfter attempts of which nothing came a compaction of several repos is
	// split, so that what makes it fail is alone in the end.
	splitAfter = 2
)

// Scheduler plans compactions. One runs in the indexer that leads; two at once do
// no harm, since what is planned twice is done once.
type Scheduler struct {
	Config
	Store   *catalog.Store
	Metrics *Metrics
	Log     *slog.Logger
}

// Run plans until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	if s.Every == 0 {
		return
	}
	defer s.Metrics.tell(&view{}, nil)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.Every*3/4 + rand.N(s.Every/2+1)):
		}
		if err := s.Pass(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "planning compactions failed, trying again", "error", err)
		}
	}
}

// Pass plans once. It is for one goroutine.
func (s *Scheduler) Pass(ctx context.Context, now time.Time) error {
	state, err := s.state(ctx, now)
	if err != nil {
		return err
	}
	if state.Planned, err = s.tidy(ctx, state); err != nil {
		return err
	}
	var times []time.Time
	for _, c := range state.Planned {
		times = append(times, c.Record.GetPlannedAt().AsTime())
	}
	s.Metrics.tell(newView(state), times)
	// One that is pressing has its place, whatever else is planned.
	for i, c := range s.Plan(state) {
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

// state reads what a plan is made from: packs after roots, since a pack is noted
// before a root names it.
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

// tidy takes away what cannot be done any more, splits what fails, and returns
// what stays planned.
func (s *Scheduler) tidy(ctx context.Context, state State) (stay []catalog.Compaction, err error) {
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
			s.Log.WarnContext(ctx, "a compaction fails; it is split", "reason", c.Record.GetReason(),
				"repos", len(c.Record.GetInputs()), "attempts", c.Record.GetAttempts(), "error", c.Record.GetError())
			err = s.Store.ReplaceCompaction(ctx, c, halves(c.Record)...)
			stay = append(stay, c) // its repos are as busy as before
		default:
			stay = append(stay, c)
		}
		if err != nil {
			return nil, err
		}
	}
	return stay, nil
}
