package search

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/internal/searchapi"
)

func limiterOf(t *testing.T, most int) *limiter {
	t.Helper()
	metrics := NewMetrics(prometheus.NewRegistry())
	return newLimiter(most, 0.5, nil, metrics)
}

// fill admits queries of a class until one is refused.
func fill(t *testing.T, l *limiter, class queryClass) (tickets []*slot) {
	t.Helper()
	for {
		ticket, err := l.admit(class, "")
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

func end(tickets []*slot) {
	for _, ticket := range tickets {
		ticket.end()
	}
}

func TestBatchLeavesRoom(t *testing.T) {
	l := limiterOf(t, 40)
	programs := fill(t, l, batch)
	people := fill(t, l, interactive)
	if len(programs) != 20 || len(people) != 20 {
		t.Errorf("%d batch and %d interactive queries at once, of 40", len(programs), len(people))
	}
	end(people)
	if more := fill(t, l, batch); len(more) != 0 {
		t.Errorf("%d more batch queries", len(more))
	}
	end(programs)
	people = fill(t, l, interactive)
	if more := fill(t, l, batch); len(more) != 0 || len(people) != 40 {
		t.Errorf("%d interactive queries, and %d batch queries at the same time", len(people), len(more))
	}
}

// TestLimitFollowsOverload: it shrinks once for all queries that meet one
// overload, never to nothing, and grows again when queries end well.
func TestLimitFollowsOverload(t *testing.T) {
	l := limiterOf(t, 100)
	round := func(overloaded bool) int {
		tickets := fill(t, l, interactive)
		for _, ticket := range tickets {
			if overloaded {
				ticket.markOverloaded()
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
	l := limiterOf(t, 40)
	for range 10 {
		ticket, err := l.admit(interactive, "")
		if err != nil {
			t.Fatal(err)
		}
		ticket.markLate()
		ticket.end()
	}
	tickets := fill(t, l, interactive)
	if len(tickets) != 40 {
		t.Errorf("after late queries %d at once, of 40", len(tickets))
	}
	for _, ticket := range tickets {
		ticket.markLate()
	}
	end(tickets)
	if busy := fill(t, l, interactive); len(busy) >= 40 || len(busy) < 30 {
		t.Errorf("after late queries under load %d at once, of 40", len(busy))
	}
}

// TestLimitGrowsInUseOnly: queries that do not come near the limit say nothing about
// what it could be.
func TestLimitGrowsInUseOnly(t *testing.T) {
	l := limiterOf(t, 100)
	for range 5 {
		tickets := fill(t, l, interactive)
		for _, ticket := range tickets {
			ticket.markOverloaded()
		}
		end(tickets)
	}
	limit := l.limit
	for range 1000 {
		ticket, err := l.admit(interactive, "")
		if err != nil {
			t.Fatal(err)
		}
		ticket.end()
	}
	if l.limit != limit || limit > 50 {
		t.Errorf("one query at a time moved the limit from %v to %v", limit, l.limit)
	}
}

// TestCallersLeaveRoom: whatever some callers take, each gets at most its share, and another one is
// admitted.
func TestCallersLeaveRoom(t *testing.T) {
	for greedy := 1; greedy <= 5; greedy++ {
		l := limiterOf(t, 40)
		var slots []*slot
		for i := range 1000 {
			s, err := l.admit(interactive, string(rune('a'+i%greedy)))
			if err == nil {
				slots = append(slots, s)
			} else if !searchapi.IsOverloaded(err) {
				t.Fatal(err)
			}
		}
		for caller, n := range l.callers {
			if n > 20 {
				t.Errorf("%d greedy: %s has %d queries of 40", greedy, caller, n)
			}
		}
		for range 4 {
			s, err := l.admit(interactive, "modest")
			if err != nil {
				t.Errorf("%d greedy with %d queries in all: the other caller: %v", greedy, len(slots), err)
				continue
			}
			slots = append(slots, s)
		}
		if want := min(20*greedy, 32) + 4; len(slots) < want {
			t.Errorf("%d greedy: %d queries in all, want %d", greedy, len(slots), want)
		}
		end(slots)
		if len(l.callers) != 0 || l.inflight != 0 {
			t.Errorf("%d greedy: %v and %d in the end", greedy, l.callers, l.inflight)
		}
	}
}
