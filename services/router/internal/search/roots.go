package search

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Roots provides the layout from which a request must be answered. It is safe for
// concurrent use.
type Roots struct {
	view *catalog.View
	// last is the newest layout, so that each snapshot is grouped only once.
	last atomic.Pointer[snapshotLayouts]
	// grouping has room for the one call that groups a new snapshot, while others wait for its layout.
	grouping chan struct{}
}

// snapshotLayouts are the layout of a snapshot and its parts that principals may see.
type snapshotLayouts struct {
	from   *catalog.Snapshot
	layout *Layout

	mu sync.Mutex
	// visible are layouts by visibility key: principals with the same key see the same
	// repos.
	visible map[string]*visibleLayout
	// before are those of earlier snapshots, from which the next ones are made.
	before map[string]earlier
}

// visibleLayout is a layout that is made once. It is nil until then.
type visibleLayout struct {
	once   sync.Once
	layout atomic.Pointer[Layout]
}

// earlier is a layout of an earlier snapshot, and when that was replaced.
type earlier struct {
	layout *Layout
	until  time.Time
}

// maxVisible bounds the cached layouts of a snapshot, besides that of all repos. keepVisible is how long a layout of an
// earlier snapshot is kept.
const (
	maxVisible  = 256
	keepVisible = time.Minute
)

// visibleTo is the layout of the repos that a principal may see.
func (g *snapshotLayouts) visibleTo(p access.Principal) *Layout {
	key := p.VisibilityKey()
	if key == "" {
		return g.layout
	}
	g.mu.Lock()
	v := g.visible[key]
	if v == nil {
		if len(g.visible) >= maxVisible {
			clear(g.visible)
		}
		v = &visibleLayout{}
		g.visible[key] = v
	}
	before := g.before[key].layout
	g.mu.Unlock()
	v.once.Do(func() {
		if before != nil {
			v.layout.Store(before.nextOf(g.layout, named(p.Sees)))
		} else {
			v.layout.Store(g.layout.Only(p.Sees))
		}
	})
	return v.layout.Load()
}

// earlier are the layouts from which those of the next snapshot are made.
func (g *snapshotLayouts) earlier() map[string]earlier {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, kept := time.Now(), make(map[string]earlier)
	for key, v := range g.visible {
		if layout := v.layout.Load(); layout != nil {
			kept[key] = earlier{layout, now}
		}
	}
	for key, e := range g.before {
		if _, newer := kept[key]; !newer && len(kept) < maxVisible && now.Sub(e.until) < keepVisible {
			kept[key] = e
		}
	}
	return kept
}

// NewRoots follows the view, which the caller closes.
func NewRoots(view *catalog.View) *Roots { return &Roots{view: view, grouping: make(chan struct{}, 1)} }

// At is the layout of the repos that the caller may see. It waits until ctx ends for
// roots that meet the wanted consistency and are at least of the given revision. Its
// error is a status. If these do not come in time, it also returns the layout that Layouts describes.
func (r *Roots) At(ctx context.Context, want *searchv1.Consistency, atLeast int64) (*Layout, error) {
	caller, err := access.From(ctx)
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	snapshot, err := r.snapshot(ctx, want, atLeast)
	if err == nil {
		var g *snapshotLayouts
		if g, err = r.group(ctx, snapshot); err == nil {
			return g.visibleTo(caller), nil
		}
	}
	if last := r.last.Load(); last != nil && status.Code(err) == codes.DeadlineExceeded {
		return last.visibleTo(caller).outdated(), err
	}
	return nil, err
}

func (r *Roots) group(ctx context.Context, snapshot *catalog.Snapshot) (*snapshotLayouts, error) {
	if g := r.last.Load(); g != nil && g.from == snapshot {
		return g, nil
	}
	select {
	case r.grouping <- struct{}{}:
		defer func() { <-r.grouping }()
	case <-ctx.Done():
		return nil, rootsError(ctx.Err())
	}
	if g := r.last.Load(); g != nil && g.from == snapshot {
		return g, nil
	}
	last := r.last.Load()
	switch {
	case last == nil:
		last = &snapshotLayouts{layout: newLayout()}
	case r.view.Snapshot() == last.from:
		return last, nil // it has become newer than the snapshot meanwhile
	}
	layout, err := last.layout.Next(snapshot.Revision, snapshot.Chunks())
	if err != nil {
		return nil, searchapi.Withhold(codes.DataLoss, "the roots cannot be read", err)
	}
	g := &snapshotLayouts{from: snapshot, layout: layout, visible: make(map[string]*visibleLayout), before: last.earlier()}
	r.last.Store(g)
	return g, nil
}

// Reach waits until ctx ends for the revision that the caller names by its consistency or
// its page token. It returns at once if the caller names none, and fails at once if etcd
// has not reached that revision. The error is a status.
func (r *Roots) Reach(ctx context.Context, want *searchv1.Consistency, atLeast int64) error {
	_, err := r.reach(ctx, want, atLeast)
	return err
}

// reach returns a snapshot of the revision that Reach waits for, or of any revision if
// the caller names none.
func (r *Roots) reach(ctx context.Context, want *searchv1.Consistency, atLeast int64) (*catalog.Snapshot, error) {
	field, revision := "page_token", atLeast
	if level, ok := want.GetLevel().(*searchv1.Consistency_AtLeast); ok {
		named, err := catalog.DecodeToken(level.AtLeast)
		if err != nil {
			return nil, searchapi.FieldError(codes.InvalidArgument, "consistency.at_least", err.Error())
		}
		if named > revision {
			field, revision = "consistency.at_least", named
		}
	}
	if revision == 0 {
		return r.view.Snapshot(), nil
	}
	snapshot, err := r.view.Reach(ctx, revision)
	switch {
	case errors.Is(err, catalog.ErrFuture):
		return nil, searchapi.FieldError(codes.FailedPrecondition, field,
			"no such revision: the token is of another installation, or from before a restore; ask again without it")
	case err != nil:
		return nil, rootsError(err)
	}
	return snapshot, nil
}

func (r *Roots) snapshot(ctx context.Context, want *searchv1.Consistency, atLeast int64) (*catalog.Snapshot, error) {
	snapshot, err := r.reach(ctx, want, atLeast)
	if err != nil {
		return nil, err
	}
	switch level := want.GetLevel().(type) {
	case *searchv1.Consistency_AtLeast:
		if snapshot.Revision == 0 {
			snapshot, err = r.view.WaitFor(ctx, 1) // the first listing
		}
	case *searchv1.Consistency_Bounded:
		snapshot, err = r.view.Within(ctx, level.Bounded.AsDuration())
	default:
		snapshot, err = r.view.Current(ctx)
	}
	if err == nil && snapshot.Revision < atLeast {
		snapshot, err = r.view.WaitFor(ctx, atLeast)
	}
	if err != nil {
		return nil, rootsError(err)
	}
	return snapshot, nil
}

// rootsError separates a deadline from an etcd that cannot be read.
func rootsError(err error) error {
	const after = "; use bounded consistency to answer without waiting"
	switch {
	case errors.Is(err, catalog.ErrAway):
		return searchapi.Withhold(codes.Unavailable, "etcd does not answer this router, and only etcd knows which roots are current: "+
			"use bounded consistency, with a bound longer than the outage, to be answered from the roots that the router has", err)
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded: // which may pass a moment earlier in etcd
		return searchapi.Withhold(codes.DeadlineExceeded, "roots that are recent enough did not come before the deadline"+after, err)
	case errors.Is(err, context.Canceled):
		return searchapi.Withhold(codes.Canceled, "the call was canceled while it waited for roots that are recent enough", err)
	}
	return searchapi.Withhold(codes.Unavailable, "etcd does not say which roots are recent enough"+after, err)
}
