package fanout

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/coverage"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// attempt is one call: a searcher that is asked for some shards.
type attempt[R any] struct {
	target Target
	tasks  []*task
	sent   time.Time
	cancel context.CancelFunc
	// slow fires when the attempt should be hedged; nil while it is itself a hedge.
	slow *time.Timer
	// doubted is set when it was late and could not be hedged.
	doubted bool
	// over is set when what comes of it is of no interest any more.
	over bool

	// hedgeOf is the slow attempt whose shards this one asks for as well, and
	// hedges are those that do so for this one, each for a part of its shards.
	hedgeOf *attempt[R]
	hedges  []*attempt[R]
	// reply of a hedge, kept until it is clear which side is accepted.
	reply *Reply[R]
}

type outcome[R any] struct {
	attempt *attempt[R]
	reply   Reply[R]
	err     error
	// over says that the call failed since its time was over.
	over bool
}

// send makes an attempt, a hedge of another one or of none. It ends with its own
// context or that of the scatter.
func (s *scatter[R]) send(target Target, tasks []*task, hedgeOf *attempt[R]) *attempt[R] {
	ctx, cancel := context.WithCancel(s.ctx)
	a := &attempt[R]{target: target, tasks: tasks, sent: time.Now(), cancel: cancel, hedgeOf: hedgeOf}
	shards := make([]searchapi.Shard, len(tasks))
	for i, t := range tasks {
		shards[i] = t.shard
	}
	peer := s.Peers.of(target)
	peer.asked.Add(int64(len(shards)))
	go func() {
		defer cancel()
		ctx, span := tracer(ctx).Start(ctx, "ask searcher")
		defer span.End()
		tellStart(span, target, len(shards), hedgeOf != nil)
		reply, err := s.call(ctx, target, shards)
		err = s.tooLarge(err, shards)
		peer.asked.Add(-int64(len(shards)))
		over := err != nil && timeIsOver(ctx, err)
		if err == nil {
			err = coverage.Check(reply.Coverage, shards)
		}
		tellEnd(ctx, span, err, over)
		s.Peers.record(target, a.sent, err, over)
		select {
		case s.outcomes <- outcome[R]{attempt: a, reply: reply, err: err, over: over}:
		case <-s.returned:
		}
	}()
	return a
}

// tooLarge explains the error of a call whose request was refused for its size, and that
// is for one shard: of these a plan names all repos, however many.
func (s *scatter[R]) tooLarge(err error, shards []searchapi.Shard) error {
	if status.Code(err) != codes.ResourceExhausted || searchapi.IsOverloaded(err) || len(shards) != 1 {
		return err
	}
	size := shards[0].PlannedSize(s.TypeRepos)
	if size <= maxBytesPerCall {
		return err
	}
	return status.Errorf(codes.ResourceExhausted, "%s: the request for one shard of %d repos has up to %d MiB and cannot be divided: raise max-request-bytes of searchers",
		status.Convert(err).Message(), len(shards[0].Repos), size>>20)
}

// lastMoment is how much earlier than the router's a searcher's copy of the deadline may
// pass. It is too short for asking another.
const lastMoment = 5 * time.Millisecond

// timeIsOver says whether a call failed since its time was over, or its searcher ended it
// in the last moment: gRPC then resets the stream, which reads as a cancellation. Earlier,
// the end of a call by its searcher is a failure like any other.
func timeIsOver(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < lastMoment && endsCall(status.Code(err))
}

// endsCall says whether the code is that of a call whose context ended.
func endsCall(code codes.Code) bool {
	return code == codes.DeadlineExceeded || code == codes.Canceled
}

// await makes the shards of the attempt wait for it, and has it hedged when it
// has taken longer than its searcher usually does.
func (s *scatter[R]) await(a *attempt[R]) {
	s.open[a] = true
	left := time.Minute
	if deadline, ok := s.ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	s.lookAgain(a, s.Peers.patience(a.target, left))
}

// lookAgain sees to an attempt that has no answer by then.
func (s *scatter[R]) lookAgain(a *attempt[R], after time.Duration) {
	a.slow = time.AfterFunc(after, func() {
		select {
		case s.slow <- a:
		case <-s.returned:
		}
	})
}

// end says that nothing of the attempt is of interest any more.
func (a *attempt[R]) end() {
	a.over = true
	if a.slow != nil {
		a.slow.Stop()
	}
	a.cancel()
}

// doubtPause is how long an attempt that is late and was not hedged goes on
// waiting: a moment longer than it takes to see whether its searcher is silent.
const doubtPause = pingWait + 50*time.Millisecond

// hedge asks for the shards of a slow attempt at the next searchers too: at once
// when its searcher does not work, or else if the budget allows it for all of
// them. Otherwise it looks into why the searcher is late, and comes back to it.
func (s *scatter[R]) hedge(a *attempt[R]) {
	switch {
	case !s.open[a]:
		return
	case len(a.hedges) > 0:
		s.reconsider(a)
		return
	}
	g, hedged, alone := s.standIns(a)
	if alone {
		return
	}
	if hedged > 0 && (!s.Peers.healthy(a.target) || s.Peers.hedges.spend(float64(hedged)/float64(len(a.tasks)))) {
		for _, target := range g.order {
			a.hedges = append(a.hedges, s.send(target, g.of[target], a))
		}
		return
	}
	if !a.doubted && hedged > 0 {
		s.Peers.metrics.hedged(unaffordable)
	}
	a.doubted = true
	s.doubt(a)
}

// doubt looks into why the searcher of an attempt is late, and comes back to it.
func (s *scatter[R]) doubt(a *attempt[R]) {
	go s.Peers.doubt(s.ctx, a.target)
	s.lookAgain(a, doubtPause)
}

// reconsider decides on an attempt whose hedges have ended and left shards open: it is
// waited for unless its searcher does nothing, and that has been seen since the attempt
// was made: it may be the last hope. Otherwise what the hedges brought is taken, and
// others are asked for the rest.
func (s *scatter[R]) reconsider(a *attempt[R]) {
	if s.Peers.healthy(a.target) || !s.Peers.silentSince(a.target, a.sent) {
		s.doubt(a)
		return
	}
	a.end()
	for _, t := range a.tasks {
		t.fail(a.target, deadline, late(a.target))
	}
	s.dispatch(s.promote(a))
}

// standIns are the next searchers for the tasks of the attempt, those that work,
// and for how many tasks there are such. When the attempt's own does not work, any
// other is better than none. Alone says that there are none at all.
func (s *scatter[R]) standIns(a *attempt[R]) (g *groups, hedged int, alone bool) {
	g, alone = &groups{of: make(map[Target][]*task)}, true
	silent := !s.Peers.healthy(a.target)
	for _, t := range a.tasks {
		other := slices.IndexFunc(t.candidates, func(c Target) bool { return c != a.target })
		next := slices.IndexFunc(t.candidates, func(c Target) bool { return c != a.target && s.Peers.healthy(c) })
		if next < 0 && silent {
			next = other
		}
		if next >= 0 {
			g.add(t.candidates[next], t)
			hedged++
		}
		alone = alone && other < 0
	}
	return g, hedged, alone
}
