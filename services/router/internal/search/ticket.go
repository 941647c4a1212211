package search

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// classKey is the metadata key with which callers choose the class of a query.
const classKey = "trawl-class"

// fairDeadline is the shortest deadline that every query can meet. A query with
// less time that ends late says nothing about the load.
const fairDeadline = 50 * time.Millisecond

// ticket is the admission of one query.
type ticket struct {
	slot  *slot
	usage *usage
	whole context.Context //nolint:containedctx // it ends with the query
	start time.Time
	// spent observes the share of its time that the query took.
	spent prometheus.Observer
	// explain is nil unless the query is explained.
	explain *explainer
	// refused is set when a searcher had no room for the query.
	refused atomic.Bool
	// left is set at the end of the query: whether the caller left before.
	left atomic.Pointer[bool]
}

// admit lets a query in. The caller's metadata chooses its class; class is the
// default. The caller must call end. The error is a status. Whole is the context of
// the whole query, which started at start.
func (s *Service) admit(whole context.Context, method string, start time.Time, class queryClass) (*ticket, error) {
	if chosen := metadata.ValueFromIncomingContext(whole, classKey); len(chosen) > 0 {
		switch chosen[0] {
		case interactive.String():
			class = interactive
		case batch.String():
			class = batch
		default:
			return nil, searchapi.FieldError(codes.InvalidArgument, classKey, fmt.Sprintf("unknown class %q: want interactive or batch", chosen[0]))
		}
	}
	slot, err := s.enter(whole, class)
	if err != nil {
		return nil, err
	}
	return &ticket{slot: slot, usage: s.usage, whole: whole, start: start, spent: s.metrics.spent.WithLabelValues(method)}, nil
}

// letIn waits for the revision that a caller names, and admits a request that began at start. Asking is the context for
// asking searchers. End must be called. The error is a status.
func (s *Service) letIn(ctx context.Context, method string, start time.Time, class queryClass, want *searchv1.Consistency, atLeast int64) (asking context.Context, t *ticket, end func(), err error) {
	whole, asking, cancel := s.cfg.Budget.split(ctx)
	if err = s.layouts.Reach(asking, want, atLeast); err == nil || status.Code(err) == codes.DeadlineExceeded { // which plan decides about
		t, err = s.admit(whole, method, start, class)
	}
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	return asking, t, func() { t.end(); cancel() }, nil
}

// callerOf is the ID of the caller; empty if it is not known.
func callerOf(ctx context.Context) string {
	p, err := access.From(ctx)
	if err != nil {
		return ""
	}
	return p.ID()
}

// enter takes a slot, unless the caller has used up an allowance.
func (s *Service) enter(ctx context.Context, class queryClass) (*slot, error) {
	caller := callerOf(ctx)
	if err := s.usage.check(class, caller); err != nil {
		return nil, err
	}
	return s.limiter.admit(class, caller)
}

// Enter admits a call that asks no searcher, as a batch query: one that reads all repos from etcd, say. The
// error is a status that says when to retry. When the call is over, leave must be called; it charges the
// caller for a processor as long as the call took.
func (s *Service) Enter(ctx context.Context) (leave func(), err error) {
	slot, err := s.enter(ctx, batch)
	if err != nil {
		return nil, err
	}
	return func() {
		take(s.usage.processor, slot.caller, int(time.Since(slot.began).Microseconds()))
		slot.end()
	}, nil
}

// end gives the slot back. A query that missed a fair deadline in this router
// counts as overload.
func (t *ticket) end() {
	left := t.callerLeft()
	t.left.Store(&left)
	deadline, _ := t.whole.Deadline()
	if given := deadline.Sub(t.start); given >= fairDeadline {
		t.spent.Observe(time.Since(t.start).Seconds() / given.Seconds())
		if errors.Is(t.whole.Err(), context.DeadlineExceeded) {
			t.slot.markLate()
		}
	}
	t.slot.end()
}

// callerLeft reports whether the caller left before the query ended. Calls can outlive the
// query, whose end cancels the context too.
func (t *ticket) callerLeft() bool {
	canceled := errors.Is(t.whole.Err(), context.Canceled) // before left is read, which end sets before that
	if left := t.left.Load(); left != nil {
		return *left
	}
	return canceled
}

// checkOverload counts an overload if a searcher refused the query and no replica
// answered in its place. It returns the error for a caller that must have all
// shards, or nil without an overload.
func (t *ticket) checkOverload(c *searchv1.Coverage) error {
	if c.Complete || !t.refused.Load() {
		return nil
	}
	t.slot.markOverloaded()
	return searchapi.Overloaded("searchers are overloaded: "+searchapi.MissingShards(c), t.slot.retryAfter())
}
