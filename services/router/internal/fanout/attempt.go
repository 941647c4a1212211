package fanout

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/stack"
)

// attempt is one call to a searcher for some shards.
type attempt[R any] struct {
	target Target
	tasks  []*task
	sent   time.Time
	cancel context.CancelFunc
	// slow fires when the attempt should be hedged. It is nil for a hedge, and if there is nobody else to ask.
	slow *time.Timer
	// probed is set when the attempt was late and could not be hedged.
	probed bool
	// over is set when its outcome no longer matters.
	over bool

	// hedgeOf is the slow attempt that this one hedges. Hedges are the hedges of this
	// one, each for a part of its shards.
	hedgeOf *attempt[R]
	hedges  []*attempt[R]
	// reply of a hedge, kept until the hedge has won or lost.
	reply *Reply[R]
}

type outcome[R any] struct {
	attempt *attempt[R]
	reply   Reply[R]
	err     error
	// over is true if the call failed because its deadline passed.
	over bool
}

// send starts an attempt, as a hedge of another one if hedgeOf is not nil. The attempt
// ends with its own context or with the scatter's.
func (s *scatter[R]) send(target Target, tasks []*task, hedgeOf *attempt[R]) *attempt[R] {
	ctx, cancel := context.WithCancel(s.ctx)
	a := &attempt[R]{target: target, tasks: tasks, sent: time.Now(), cancel: cancel, hedgeOf: hedgeOf}
	shards := make([]searchapi.Shard, len(tasks))
	for i, t := range tasks {
		shards[i] = *t.shard
	}
	peer := s.Peers.of(target)
	peer.asked.Add(int64(len(shards)))
	go func() {
		defer cancel()
		stack.Grow() // a searcher of this process searches on this goroutine
		ctx, span := startSpan(ctx, target, len(shards), hedgeOf != nil)
		defer span.End()
		reply, err := s.call(ctx, target, shards)
		err = s.tooLarge(err, shards)
		peer.asked.Add(-int64(len(shards)))
		over := err != nil && timeIsOver(ctx, err)
		if err == nil {
			err = searchapi.CheckCoverage(reply.Coverage, shards)
		}
		endAttributes(ctx, span, err, over)
		s.Peers.record(target, a.sent, err, over)
		if err != nil {
			reply.drop() // before others are asked in its place
		}
		select {
		case s.outcomes <- outcome[R]{attempt: a, reply: reply, err: err, over: over}:
		case <-s.returned:
			reply.drop()
		}
	}()
	return a
}

// tooLarge explains the error of a call for one shard whose request exceeds the
// searcher's limit: it cannot be divided.
func (s *scatter[R]) tooLarge(err error, shards []searchapi.Shard) error {
	if status.Code(err) != codes.ResourceExhausted || searchapi.IsOverloaded(err) || len(shards) != 1 {
		return err
	}
	size := shards[0].PlannedSize(s.TypeRepos)
	if size <= maxBytesPerCall {
		return err
	}
	return status.Errorf(codes.ResourceExhausted, "%s: the request for one shard has up to %d MiB and cannot be divided: narrow the query to fewer repos (repo:)",
		status.Convert(err).Message(), size>>20)
}

// lastMoment is how much earlier the deadline may pass on a searcher than on the router.
// It is too short to ask another searcher.
const lastMoment = 5 * time.Millisecond

// timeIsOver reports whether a call failed because its deadline passed, on the router
// or on the searcher, where gRPC reports it as a cancellation. A searcher that ends a
// call earlier has failed.
func timeIsOver(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < lastMoment && endsCall(status.Code(err))
}

// endsCall reports whether the code is that of a call whose context ended.
func endsCall(code codes.Code) bool {
	return code == codes.DeadlineExceeded || code == codes.Canceled
}

// await makes the tasks of the attempt wait for it, and hedges the attempt when it takes
// longer than its searcher usually does, unless no other searcher could answer.
func (s *scatter[R]) await(a *attempt[R]) {
	s.open[a] = true
	if !slices.ContainsFunc(a.tasks, func(t *task) bool { return t.another(a.target) >= 0 }) {
		return
	}
	left := time.Minute
	if deadline, ok := s.ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	s.lookAgain(a, s.Peers.patience(a.target, left))
}

// another is the place of the first candidate other than one, or -1.
func (t *task) another(than Target) int {
	return slices.IndexFunc(t.candidates, func(c Target) bool { return c != than })
}

// lookAgain hands an attempt that is still open to hedge after a while.
func (s *scatter[R]) lookAgain(a *attempt[R], after time.Duration) {
	a.slow = time.AfterFunc(after, func() {
		select {
		case s.slow <- a:
		case <-s.returned:
		}
	})
}

// end cancels the attempt; its outcome no longer matters.
func (a *attempt[R]) end() {
	a.over = true
	if a.slow != nil {
		a.slow.Stop()
	}
	a.cancel()
}

// probePause is how long a late attempt that was not hedged waits for its probe: a
// little longer than a ping may take.
const probePause = pingWait + 50*time.Millisecond

// hedge asks the next searchers for the shards of a slow attempt. It needs no budget
// if the searcher of the attempt is unhealthy. Without budget it probes the searcher
// and looks at the attempt again after that.
func (s *scatter[R]) hedge(a *attempt[R]) {
	switch {
	case !s.open[a]:
		return
	case len(a.hedges) > 0:
		s.lookAtHedges(a)
		return
	}
	g, hedged := s.hedgeTargets(a)
	if hedged > 0 && (!s.Peers.healthy(a.target) || s.Peers.hedges.spend(float64(hedged)/float64(len(a.tasks)))) {
		for _, target := range g.order {
			a.hedges = append(a.hedges, s.send(target, g.of[target], a))
		}
		s.lookAgain(a, probePause)
		return
	}
	if !a.probed && hedged > 0 {
		s.Peers.metrics.hedged(unaffordable)
	}
	a.probed = true
	s.probe(a)
}

// probe pings the searcher of a late attempt, and looks at the attempt again after
// that.
func (s *scatter[R]) probe(a *attempt[R]) {
	go s.Peers.probe(s.ctx, a.target)
	s.lookAgain(a, probePause)
}

// lookAtHedges ends the hedges of a late attempt whose searchers a probe has found silent since, as all of a zone may be. It
// probes the others, and looks at them again after that.
func (s *scatter[R]) lookAtHedges(a *attempt[R]) {
	waiting := false
	for _, h := range a.hedges {
		switch {
		case h.over:
		case !s.Peers.healthy(h.target) && s.Peers.silentSince(h.target, h.sent):
			h.end()
			h.fail(failure{reason: deadline, message: lateMessage(h.target)})
		default:
			waiting = true
			go s.Peers.probe(s.ctx, h.target)
		}
	}
	if waiting {
		s.probe(a)
		return
	}
	s.reconsider(a)
}

// reconsider handles an attempt whose hedges have ended without covering all shards.
// It keeps waiting unless a probe has found the searcher silent since the attempt was
// sent: the attempt may be the last hope. Otherwise it takes what the hedges found and
// asks others for the rest.
func (s *scatter[R]) reconsider(a *attempt[R]) {
	if s.Peers.healthy(a.target) || !s.Peers.silentSince(a.target, a.sent) {
		s.probe(a)
		return
	}
	a.end()
	a.fail(failure{reason: deadline, message: lateMessage(a.target)})
	s.dispatch(s.promote(a))
}

// hedgeTargets are the next healthy searchers for the tasks of the attempt; hedged is
// the number of tasks that have one. If the attempt's own searcher is unhealthy, any
// other will do.
func (s *scatter[R]) hedgeTargets(a *attempt[R]) (g *groups, hedged int) {
	g = &groups{of: make(map[Target][]*task)}
	unhealthy := !s.Peers.healthy(a.target)
	for _, t := range a.tasks {
		next := slices.IndexFunc(t.candidates, func(c Target) bool { return c != a.target && s.Peers.healthy(c) })
		if next < 0 && unhealthy {
			next = t.another(a.target)
		}
		if next >= 0 {
			g.add(t.candidates[next], t)
			hedged++
		}
	}
	return g, hedged
}
