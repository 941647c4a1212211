package search

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Roots provides the layout from which a request must be answered. It is safe for
// concurrent use.
type Roots struct {
	view *catalog.View
	// last is the newest layout, so that each snapshot is grouped only once.
	last atomic.Pointer[snapshotLayouts]
}

// snapshotLayouts are the layout of a snapshot and its parts that principals may see.
type snapshotLayouts struct {
	from   *catalog.Snapshot
	layout *Layout

	mu sync.Mutex
	// visible are layouts by visibility key: principals with the same key see the same
	// repos.
	visible map[string]*visibleLayout
}

// visibleLayout is a layout that is made once.
type visibleLayout struct {
	once   sync.Once
	layout *Layout
	err    error
}

// maxVisible bounds the cached layouts of a snapshot, beside that of all repos.
const maxVisible = 256

// visibleTo is the layout of the repos that a principal may see.
func (g *snapshotLayouts) visibleTo(p access.Principal) (*Layout, error) {
	key := p.VisibilityKey()
	if key == "" {
		return g.layout, nil
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
	g.mu.Unlock()
	v.once.Do(func() { v.layout, v.err = g.layout.Only(p.Sees) })
	return v.layout, v.err
}

// NewRoots follows the view, which the caller closes.
func NewRoots(view *catalog.View) *Roots { return &Roots{view: view} }

// At is the layout of the repos that the caller may see. It waits until ctx ends for
// roots that meet the wanted consistency and are at least of the given revision. Its
// error is a status.
func (r *Roots) At(ctx context.Context, want *searchv1.Consistency, atLeast int64) (*Layout, error) {
	caller, err := access.From(ctx)
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	snapshot, err := r.snapshot(ctx, want, atLeast)
	if err != nil {
		return nil, err
	}
	g, err := r.group(snapshot)
	if err != nil {
		return nil, err
	}
	layout, err := g.visibleTo(caller)
	if err != nil {
		return nil, status.Errorf(codes.DataLoss, "select the visible repos of the roots: %v", err)
	}
	return layout, nil
}

func (r *Roots) group(snapshot *catalog.Snapshot) (*snapshotLayouts, error) {
	if g := r.last.Load(); g != nil && g.from == snapshot {
		return g, nil
	}
	entries := snapshot.Roots()
	roots := make([]*catalogv1.Root, len(entries))
	for i, e := range entries {
		roots[i] = e.Record
	}
	layout, err := NewLayout(snapshot.Revision, roots)
	if err != nil {
		return nil, status.Errorf(codes.DataLoss, "read the roots: %v", err)
	}
	g := &snapshotLayouts{from: snapshot, layout: layout, visible: make(map[string]*visibleLayout)}
	r.last.Store(g)
	return g, nil
}

func (r *Roots) snapshot(ctx context.Context, want *searchv1.Consistency, atLeast int64) (*catalog.Snapshot, error) {
	read := r.view.Current
	switch level := want.GetLevel().(type) {
	case *searchv1.Consistency_AtLeast:
		revision, err := catalog.DecodeToken(level.AtLeast)
		if err != nil {
			return nil, searchapi.FieldError(codes.InvalidArgument, "consistency.at_least", err.Error())
		}
		read = func(ctx context.Context) (*catalog.Snapshot, error) { return r.view.WaitFor(ctx, revision) }
	case *searchv1.Consistency_Bounded:
		read = func(ctx context.Context) (*catalog.Snapshot, error) {
			return r.view.Within(ctx, level.Bounded.AsDuration())
		}
	}
	snapshot, err := read(ctx)
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
	what := fmt.Sprintf("wait for roots that are recent enough: %v; use bounded consistency to answer without waiting", err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, what)
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, what)
	}
	return status.Error(codes.Unavailable, what)
}
