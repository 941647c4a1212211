package admission_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/services/router/internal/admission"
)

func newLimiter(t *testing.T, most int) *admission.Limiter {
	t.Helper()
	metrics, err := admission.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return admission.NewLimiter(most, metrics)
}

// fill admits queries of a class until one is refused.
func fill(t *testing.T, l *admission.Limiter, class admission.Class) (tickets []*admission.Ticket) {
	t.Helper()
	for {
		ticket, err := l.Admit(class)
		if err == nil {
			tickets = append(tickets, ticket)
			continue
		}
		if !searchapi.IsOverloaded(err) {
			t.Errorf("refused with %v", err)
		}
		return tickets
	}
}

func end(tickets []*admission.Ticket) {
	for _, ticket := range tickets {
		ticket.End()
	}
}

func TestBatchLeavesRoom(t *testing.T) {
	l := newLimiter(t, 40)
	batch := fill(t, l, admission.Batch)
	interactive := fill(t, l, admission.Interactive)
	if len(batch) != 20 || len(interactive) != 20 {
		t.Errorf("%d batch and %d interactive queries at once, of 40", len(batch), len(interactive))
	}
	end(interactive)
	if more := fill(t, l, admission.Batch); len(more) != 0 {
		t.Errorf("%d more batch queries", len(more))
	}
	end(batch)
	interactive = fill(t, l, admission.Interactive)
	if more := fill(t, l, admission.Batch); len(more) != 0 || len(interactive) != 40 {
		t.Errorf("%d interactive queries, and %d of batch beside them", len(interactive), len(more))
	}
}

// TestLimitFollowsOverload: it shrinks once for all queries that meet one
// overload, never to nothing, and grows again when queries end well.
func TestLimitFollowsOverload(t *testing.T) {
	l := newLimiter(t, 100)
	round := func(overloaded bool) int {
		tickets := fill(t, l, admission.Interactive)
		for _, ticket := range tickets {
			if overloaded {
				ticket.Overloaded()
			}
		}
		end(tickets)
		return len(tickets)
	}
	first := round(true)
	if second := round(false); second < first*7/10 || second >= first {
		t.Errorf("after one overload %d queries, before %d", second, first)
	}
	for range 100 {
		round(true)
	}
	if least := round(false); least != 2 {
		t.Errorf("in the end %d queries", least)
	}
	for range 400 {
		round(false)
	}
	if most := round(false); most != 100 {
		t.Errorf("grown to %d queries, at most 100 are allowed", most)
	}
}

// TestLatenessCountsUnderLoadOnly: a query that was late on a router with
// nothing else to do changes nothing.
func TestLatenessCountsUnderLoadOnly(t *testing.T) {
	l := newLimiter(t, 40)
	for range 10 {
		ticket, err := l.Admit(admission.Interactive)
		if err != nil {
			t.Fatal(err)
		}
		ticket.Late()
		ticket.End()
	}
	tickets := fill(t, l, admission.Interactive)
	if len(tickets) != 40 {
		t.Errorf("after late queries %d at once, of 40", len(tickets))
	}
	for _, ticket := range tickets {
		ticket.Late()
	}
	end(tickets)
	if busy := fill(t, l, admission.Interactive); len(busy) >= 40 || len(busy) < 30 {
		t.Errorf("after late queries under load %d at once, of 40", len(busy))
	}
}
