// Package fanout asks searchers for shards: each shard the best of the
// searchers that should hold it, the next one when that fails, until all are
// accounted for or the time is over.
package fanout

import (
	"context"
	"slices"
	"time"

	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Target is a searcher that can be asked.
type Target struct {
	ID      string
	Address string
}

// Policy says how long to insist. The zero value asks every candidate once.
type Policy struct {
	// CoverWait is how long shards that no candidate covers yet are asked for
	// again: a new generation may be on its way to them.
	CoverWait time.Duration
	// Pause before asking again; it doubles up to ten times itself.
	Pause time.Duration
}

// maxShardsPerCall bounds the size of one request.
const maxShardsPerCall = 2000

// Reply is what a searcher answered, with its account of the shards sent to it.
type Reply[R any] struct {
	Value    R
	Coverage *searchv1.Coverage
}

// Call asks one searcher for some shards.
type Call[R any] func(ctx context.Context, t Target, shards []searchwire.Shard) (Reply[R], error)

// Scatter asks for the shards until each is settled or ctx ends, and then
// returns without waiting for searchers that have not answered. It gives every
// usable reply to accept and tells account what became of every shard. A shard
// is asked of one searcher at a time and its results are accepted from one
// only. Candidates gives the searchers to ask for a shard, best first; it is
// asked anew in each round. Accept and candidates are called by the calling
// goroutine.
func Scatter[R any](
	ctx context.Context, p Policy, shards []searchwire.Shard, account *searchwire.Account,
	candidates func(searchwire.Digest) []Target, call Call[R], accept func(R),
) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &scatter[R]{
		ctx: ctx, policy: p, account: account, candidates: candidates, call: call, accept: accept,
		outcomes: make(chan outcome[R]), returned: make(chan struct{}), inFlight: make(map[*task]bool),
		started: time.Now(), pause: p.Pause,
	}
	defer close(s.returned)
	fresh := make([]*task, len(shards))
	for i, shard := range shards {
		fresh[i] = &task{shard: shard}
	}
	s.begin(fresh)
	s.loop()
}

// task is a shard that is not settled.
type task struct {
	shard      searchwire.Shard
	candidates []Target
	// tried counts the candidates that failed in this round.
	tried int
	// loading is set when some candidate of this round does not cover the shard yet.
	loading bool
	// why the last candidate failed.
	reason  searchv1.UncoveredReason
	message string
}

type outcome[R any] struct {
	target Target
	tasks  []*task
	reply  Reply[R]
	err    error
}

type scatter[R any] struct {
	ctx        context.Context //nolint:containedctx // lives as long as the call of Scatter
	policy     Policy
	account    *searchwire.Account
	candidates func(searchwire.Digest) []Target
	call       Call[R]
	accept     func(R)

	outcomes chan outcome[R]
	// returned is closed when nobody receives outcomes any more.
	returned chan struct{}
	inFlight map[*task]bool
	calls    int
	// waiting are tasks that are asked for again when timer fires.
	waiting []*task
	timer   <-chan time.Time
	pause   time.Duration
	started time.Time
}

func (s *scatter[R]) loop() {
	for s.calls > 0 || len(s.waiting) > 0 {
		select {
		case o := <-s.outcomes:
			s.settle(o)
		case <-s.timer:
			again := s.waiting
			s.waiting, s.timer = nil, nil
			s.begin(again)
		case <-s.ctx.Done():
			s.abandon()
			return
		}
	}
}

// begin starts a round for the tasks.
func (s *scatter[R]) begin(tasks []*task) {
	for _, t := range tasks {
		t.candidates, t.tried, t.loading = s.candidates(t.shard.Digest), 0, false
		t.reason = searchv1.UncoveredReason_UNCOVERED_REASON_NO_SEARCHER
		t.message = "no searcher is live"
	}
	s.dispatch(tasks)
}

// dispatch sends each task to its next candidate, those of one searcher
// together. Tasks without one are given up, or wait for another round.
func (s *scatter[R]) dispatch(tasks []*task) {
	groups := make(map[Target][]*task)
	var order []Target
	for _, t := range tasks {
		if t.tried == len(t.candidates) {
			s.exhausted(t)
			continue
		}
		target := t.candidates[t.tried]
		if groups[target] == nil {
			order = append(order, target)
		}
		groups[target] = append(groups[target], t)
	}
	for _, target := range order {
		for part := range slices.Chunk(groups[target], maxShardsPerCall) {
			s.send(target, part)
		}
	}
}

func (s *scatter[R]) exhausted(t *task) {
	if !t.loading || time.Since(s.started)+s.pause > s.policy.CoverWait {
		s.account.Uncovered(t.shard.Digest, t.reason, t.message)
		return
	}
	s.waiting = append(s.waiting, t)
	if s.timer == nil {
		s.timer = time.After(s.pause)
		s.pause = min(2*s.pause, 10*s.policy.Pause)
	}
}

func (s *scatter[R]) send(target Target, tasks []*task) {
	shards := make([]searchwire.Shard, len(tasks))
	for i, t := range tasks {
		shards[i] = t.shard
		s.inFlight[t] = true
	}
	s.calls++
	go func() {
		reply, err := s.call(s.ctx, target, shards)
		if err == nil {
			err = searchwire.CheckCoverage(reply.Coverage, shards)
		}
		select {
		case s.outcomes <- outcome[R]{target: target, tasks: tasks, reply: reply, err: err}:
		case <-s.returned:
		}
	}()
}
