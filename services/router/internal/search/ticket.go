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

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// classKey is the metadata by which callers say what class a query is of.
const classKey = "trawl-class"

// fairDeadline is the time within which any query can be ended: that one with
// less was late says nothing.
const fairDeadline = 50 * time.Millisecond

// turn is a query that was let in.
type turn struct {
	ticket *slot
	whole  context.Context //nolint:containedctx // it ends with the query
	start  time.Time
	// spent takes the share of its time that the query took.
	spent prometheus.Observer
	// explain is nil unless the query is explained.
	explain *explainer
	// refused is set when some searcher had no room for it.
	refused atomic.Bool
}

// admit lets a query in, of the class that its caller says or else of that
// given; end must follow. Its error is a status. Whole is the query's context,
// and start when its time began.
func (s *Service) admit(whole context.Context, method string, start time.Time, class queryClass) (*turn, error) {
	if said := metadata.ValueFromIncomingContext(whole, classKey); len(said) > 0 {
		switch said[0] {
		case interactive.String():
			class = interactive
		case batch.String():
			class = batch
		default:
			return nil, searchapi.FieldError(codes.InvalidArgument, classKey, fmt.Sprintf("%q is no class; interactive and batch are", said[0]))
		}
	}
	ticket, err := s.limiter.admit(class)
	if err != nil {
		return nil, err
	}
	return &turn{ticket: ticket, whole: whole, start: start, spent: s.metrics.spent.WithLabelValues(method)}, nil
}

// end makes room for the next query. One that this router itself could not end
// in time was one too many.
func (t *turn) end() {
	deadline, _ := t.whole.Deadline()
	if given := deadline.Sub(t.start); given >= fairDeadline {
		t.spent.Observe(time.Since(t.start).Seconds() / given.Seconds())
		if errors.Is(t.whole.Err(), context.DeadlineExceeded) {
			t.ticket.markLate()
		}
	}
	t.ticket.end()
}

// judge looks at what became of the shards: what searchers refused, and others
// did not do instead, was one query too many. It gives the error of a caller
// who must have all of them then, and nil when they were not refused.
func (t *turn) judge(c *searchv1.Coverage) error {
	if c.Complete || !t.refused.Load() {
		return nil
	}
	t.ticket.markOverloaded()
	return searchapi.Overloaded(fmt.Sprintf("searchers are overloaded: of %d shards %d were not searched", c.Requested, c.Failed+c.NotReached),
		t.ticket.retryAfter())
}
