package fanout

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	notCovered  = searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED
	deadline    = searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE
	unreachable = searchv1.UncoveredReason_UNCOVERED_REASON_UNREACHABLE
	noSearcher  = searchv1.UncoveredReason_UNCOVERED_REASON_NO_SEARCHER
	failedOther = searchv1.UncoveredReason_UNCOVERED_REASON_ERROR
)

// settle handles the outcome of an attempt.
func (s *scatter[R]) settle(o outcome[R]) {
	a := o.attempt
	if a.over {
		o.reply.drop()
		return
	}
	a.end()
	switch {
	case a.hedgeOf != nil:
		s.settleHedge(o)
	case o.err == nil && searched(&o.reply) >= searchedBy(a.hedges):
		s.lose(a.hedges)
		s.take(a, &o.reply)
	case o.err == nil:
		// Its hedges have searched more, so they take its place. What it alone has searched it is asked for again, and
		// that needs no budget.
		missed := maps.Collect(s.missed(a, &o.reply))
		o.reply.drop()
		for t, why := range missed {
			t.fail(a.target, why)
		}
		var again, failed []*task
		for _, t := range s.promote(a) {
			if _, ok := missed[t]; ok {
				failed = append(failed, t)
			} else {
				again = append(again, t)
			}
		}
		s.dispatch(again)
		s.retry(failed, len(a.tasks))
	default:
		s.callFailed(o)
	}
}

// settleHedge keeps the reply of a hedge until the hedges of its attempt have searched
// all shards between them. Then they win. A reply is about all shards of its call; it
// cannot be used for some of them.
func (s *scatter[R]) settleHedge(o outcome[R]) {
	h, a := o.attempt, o.attempt.hedgeOf
	if o.err == nil {
		h.reply = &o.reply
	} else {
		h.fail(s.failureOf(h.target, o.err, o.over))
	}
	switch {
	case searchedBy(a.hedges) == len(a.tasks):
		a.end()
		s.promote(a)
	case !slices.ContainsFunc(a.hedges, func(h *attempt[R]) bool { return !h.over }):
		s.reconsider(a)
	}
}

// promote turns the hedges of a failed attempt into attempts of their own. It returns
// the tasks that no hedge covers.
func (s *scatter[R]) promote(a *attempt[R]) (others []*task) {
	delete(s.open, a)
	if len(a.hedges) > 0 {
		s.Peers.metrics.hedged(hedgeWon)
	}
	carried := make(map[*task]bool)
	for _, h := range a.hedges {
		h.hedgeOf = nil
		if h.over && h.reply == nil {
			continue // this hedge failed
		}
		for _, t := range h.tasks {
			carried[t] = true
		}
		if h.reply == nil {
			s.await(h)
			continue
		}
		s.take(h, h.reply)
	}
	for _, t := range a.tasks {
		if !carried[t] {
			others = append(others, t)
		}
	}
	return others
}

func (s *scatter[R]) lose(hedges []*attempt[R]) {
	if len(hedges) > 0 {
		s.Peers.metrics.hedged(hedgeLost)
	}
	for _, h := range hedges {
		if h.end(); h.reply != nil {
			h.reply.drop()
		}
	}
}

func searched[R any](r *Reply[R]) int {
	return int(r.Coverage.GetSearched() + r.Coverage.GetPruned()) // CheckCoverage has compared these with the shards sent
}

func searchedBy[R any](hedges []*attempt[R]) (n int) {
	for _, h := range hedges {
		if h.reply != nil {
			n += searched(h.reply)
		}
	}
	return n
}

// take accepts a reply, and retries the shards that it did not search.
func (s *scatter[R]) take(a *attempt[R], reply *Reply[R]) {
	delete(s.open, a)
	s.accepted = true
	s.accept(reply.Value)
	missed := maps.Collect(s.missed(a, reply))
	var next []*task
	for _, t := range a.tasks {
		why, ok := missed[t]
		switch {
		case !ok:
			s.account.Searched(t.shard.Digest)
		case why.inPart:
			s.account.InPart(t.shard.Digest, why.message) // its results are accepted: another searcher would repeat them
		case why.reason == deadline:
			s.account.Uncovered(t.shard.Digest, why.reason, why.message)
		default:
			t.fail(a.target, why)
			next = append(next, t)
		}
	}
	s.retry(next, len(a.tasks))
}

// missed are the shards that a reply did not search, and why.
func (s *scatter[R]) missed(a *attempt[R], reply *Reply[R]) iter.Seq2[*task, failure] {
	uncovered := make(map[searchapi.Digest]*searchv1.UncoveredShard)
	for _, u := range reply.Coverage.GetUncovered() {
		uncovered[searchapi.Digest(u.Digest)] = u // CheckCoverage has checked its length
	}
	plain := make(map[searchv1.UncoveredReason]string) // one line in the log for each reason
	return func(yield func(*task, failure) bool) {
		for _, t := range a.tasks {
			u := uncovered[t.shard.Digest]
			if u == nil {
				continue
			}
			why := failure{reason: u.Reason, inPart: u.InPart && u.Reason == deadline}
			if why.inPart {
				why.message = searcherMessage(a.target, "searched it in part before the deadline")
			} else {
				if plain[u.Reason] == "" {
					plain[u.Reason] = s.plainMessage(a.target, u.Reason, u.Message)
				}
				why.message = plain[u.Reason]
			}
			if !yield(t, why) {
				return
			}
		}
	}
}

// callFailed retries the tasks of a call without a usable reply.
func (s *scatter[R]) callFailed(o outcome[R]) {
	a := o.attempt
	a.fail(s.failureOf(a.target, o.err, o.over))
	others := s.promote(a)
	switch {
	case errors.Is(o.err, ErrDisconnected):
		// These retries need no budget. A call that did not reach its searcher cost
		// nothing, and a call whose connection broke is repeated once a candidate.
		s.dispatch(others)
		return
	case s.ctx.Err() == nil && !o.over:
		s.retry(others, len(a.tasks))
		return
	}
	for _, t := range others {
		s.account.Uncovered(t.shard.Digest, deadline, lateMessage(a.target))
	}
}

// retry asks the next candidates for the failed tasks of a call that had that many
// tasks, if the budget allows it. A shard that its searcher does not cover needs no
// budget: it has only moved to another searcher.
func (s *scatter[R]) retry(tasks []*task, of int) {
	var failed []*task
	tasks = slices.DeleteFunc(slices.Clone(tasks), func(t *task) bool {
		again := t.reason != notCovered && len(t.candidates) > 0
		if again {
			failed = append(failed, t)
		}
		return again
	})
	switch {
	case len(failed) == 0:
	case s.Peers.retries.spend(float64(len(failed)) / float64(of)):
		s.Peers.metrics.retried(retrySent)
		tasks = append(tasks, failed...)
	default:
		s.Peers.metrics.retried(unaffordable)
		for _, t := range failed {
			s.account.Uncovered(t.shard.Digest, t.reason, t.message+"; not retried, the retry budget is used up")
		}
	}
	s.dispatch(tasks)
}

// fail records why the searcher of the attempt searched none of its shards.
func (a *attempt[R]) fail(why failure) {
	for _, t := range a.tasks {
		t.fail(a.target, why)
	}
}

// fail removes a candidate and records the reason. A reason other than not covering the
// shard is kept: it says more.
func (t *task) fail(target Target, why failure) {
	if i := slices.Index(t.candidates, target); i >= 0 {
		t.candidates = slices.Delete(slices.Clone(t.candidates), i, i+1)
		if i < t.replicas {
			t.replicas--
		}
	}
	if why.reason == notCovered {
		t.loading = true
		if t.reason != noSearcher {
			return
		}
	}
	t.reason, t.message = why.reason, why.message
}

// abandon settles the outcomes that have arrived and accounts for the rest. It accepts
// the hedges of an open attempt that have answered in time.
func (s *scatter[R]) abandon() {
	for {
		select {
		case o := <-s.outcomes:
			s.settle(o)
			continue
		default:
		}
		break
	}
	for _, t := range s.waiting {
		s.account.Uncovered(t.shard.Digest, t.reason, t.message)
	}
	for len(s.open) > 0 {
		for a := range s.open {
			for _, t := range s.promote(a) {
				s.account.Uncovered(t.shard.Digest, deadline, lateMessage(a.target))
			}
		}
	}
}

func searcherMessage(t Target, what string) string { return fmt.Sprintf("searcher %s: %s", t.ID, what) }

func lateMessage(t Target) string { return searcherMessage(t, "did not answer before the deadline") }
