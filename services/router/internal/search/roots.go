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

// Roots gives the layout of the roots that a request must be answered from. It
// is safe for concurrent use.
type Roots struct {
	view *catalog.View
	// last is the newest layout that was made, so that each snapshot is
	// grouped once and not for every query.
	last atomic.Pointer[grouped]
}

// grouped is the layout of a snapshot, and of what principals see of it.
type grouped struct {
	from   *catalog.Snapshot
	layout *Layout

	mu sync.Mutex
	// seen are layouts by the sight of principals.
	seen map[string]*seen
}

// seen is a layout that is made once.
type seen struct {
	once   sync.Once
	layout *Layout
	err    error
}

// maxSights bounds the layouts that are kept beside that of all repos.
const maxSights = 256

// by is what a principal sees of the layout.
func (g *grouped) by(p access.Principal) (*Layout, error) {
	sight := p.Sight()
	if sight == "" {
		return g.layout, nil
	}
	g.mu.Lock()
	s := g.seen[sight]
	if s == nil {
		if len(g.seen) >= maxSights {
			clear(g.seen)
		}
		s = &seen{}
		g.seen[sight] = s
	}
	g.mu.Unlock()
	s.once.Do(func() { s.layout, s.err = g.layout.Only(p.Sees) })
	return s.layout, s.err
}

// NewRoots follows the view, which the caller closes.
func NewRoots(view *catalog.View) *Roots { return &Roots{view: view} }

// At is the layout of what the caller may see, as recent as the request wants it,
// and at least as recent as the revision given. It waits for that until ctx ends.
// Its error is a status.
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
	layout, err := g.by(caller)
	if err != nil {
		return nil, status.Errorf(codes.DataLoss, "choose repos from the roots: %v", err)
	}
	return layout, nil
}

func (r *Roots) group(snapshot *catalog.Snapshot) (*grouped, error) {
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
	g := &grouped{from: snapshot, layout: layout, seen: make(map[string]*seen)}
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

// rootsError keeps a deadline apart from an etcd that cannot be read.
func rootsError(err error) error {
	what := fmt.Sprintf("wait for roots that are recent enough: %v; bounded consistency answers without waiting", err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, what)
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, what)
	}
	return status.Error(codes.Unavailable, what)
}
