// Package fanout asks searchers for shards: each shard the first of those that
// hold it and have not much more to do than the others, the next one too when
// that is slow, or instead when it fails, until all are accounted for or the
// time is over.
package fanout

import (
	"context"
	"iter"
	"time"

	"github.com/trawl-search/trawl/internal/coverage"
	"github.com/trawl-search/trawl/internal/searchapi"
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
	// Replicas is how many of a shard's first candidates hold it, unless it is on its
	// way to them: of these, one is asked that has not much more to do than the others.
	Replicas int
}

// What bounds one request: the searchers' limit is 16 MiB unless it is set otherwise,
// and the query has a part in it.
const (
	maxShardsPerCall = 2000
	maxBytesPerCall  = 8 << 20
)

// Reply is what a searcher answered, with its account of the shards sent to it.
type Reply[R any] struct {
	Value    R
	Coverage *searchv1.Coverage
}

// Call asks one searcher for some shards. Its error wraps ErrNotAsked when it is
// none of the searcher's.
type Call[R any] func(ctx context.Context, t Target, shards []searchapi.Shard) (Reply[R], error)

// Fanout is what every Scatter of a router has in common, but for TypeRepos. It is safe for
// concurrent use when Candidates is.
type Fanout struct {
	Policy Policy
	Peers  *Peers
	// Candidates are the searchers to ask for a shard, best first. They are
	// asked for anew in each round, and not changed.
	Candidates func(searchapi.Digest) []Target
	// TypeRepos is how many type:repo of a query are resolved in its plans, which
	// makes these larger.
	TypeRepos int
}

// Scatter asks for the shards until each is settled or ctx ends, and then
// returns without waiting for searchers that have not answered. It gives every
// usable reply to accept and tells account what became of every shard. While a
// searcher is slower than it usually is, its shards are asked of the next ones
// too; the results of a shard are accepted from one searcher only. Accept and
// Candidates are called by the calling goroutine.
func Scatter[R any](ctx context.Context, f Fanout, shards []searchapi.Shard, account *coverage.Account, call Call[R], accept func(R)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &scatter[R]{
		Fanout: f, ctx: ctx, account: account, call: call, accept: accept,
		outcomes: make(chan outcome[R]), slow: make(chan *attempt[R]), returned: make(chan struct{}),
		open: make(map[*attempt[R]]bool), started: time.Now(), pause: f.Policy.Pause,
	}
	defer close(s.returned)
	tasks, fresh := make([]task, len(shards)), make([]*task, len(shards))
	for i, shard := range shards {
		tasks[i].shard, fresh[i] = shard, &tasks[i]
	}
	s.begin(fresh)
	s.loop()
}

// task is a shard that is not settled.
type task struct {
	shard searchapi.Shard
	// candidates that did not fail in this round; the first replicas hold the shard.
	// The slice is shared with other tasks.
	candidates []Target
	replicas   int
	// loading is set when some candidate of this round does not cover the shard yet.
	loading bool
	// why the last candidate failed; empty before the first did.
	reason  searchv1.UncoveredReason
	message string
}

// holders are the candidates that hold the shard.
func (t *task) holders() []Target { return t.candidates[:t.replicas] }

type scatter[R any] struct {
	Fanout

	ctx     context.Context //nolint:containedctx // lives as long as the call of Scatter
	account *coverage.Account
	call    Call[R]
	accept  func(R)

	outcomes chan outcome[R]
	// slow brings attempts that have taken longer than their searcher usually does.
	slow chan *attempt[R]
	// returned is closed when nobody receives from the channels any more.
	returned chan struct{}
	// open are the attempts that shards wait for, without hedges.
	open map[*attempt[R]]bool
	// waiting are tasks that are asked for again when timer fires.
	waiting []*task
	timer   <-chan time.Time
	pause   time.Duration
	started time.Time
}

func (s *scatter[R]) loop() {
	for len(s.open) > 0 || len(s.waiting) > 0 {
		select {
		case o := <-s.outcomes:
			s.settle(o)
		case a := <-s.slow:
			s.hedge(a)
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
		t.candidates, t.loading = s.Candidates(t.shard.Digest), false
		t.replicas = min(s.Policy.Replicas, len(t.candidates))
		t.reason, t.message = noSearcher, "no searcher is live"
	}
	before := len(s.open)
	s.dispatch(tasks)
	s.Peers.earn(len(s.open) - before)
}

// dispatch sends each task to its next candidate, those of one searcher
// together. Tasks without one are given up, or wait for another round.
func (s *scatter[R]) dispatch(tasks []*task) {
	if s.ctx.Err() != nil {
		for _, t := range tasks {
			if t.reason == noSearcher { // none was asked
				t.reason, t.message = deadline, coverage.NoTurn
			}
			// Even where an earlier round of the query has searched it.
			s.account.Uncovered(t.shard.Digest, t.reason, t.message)
		}
		return
	}
	groups := s.group(tasks)
	for _, t := range groups.none {
		s.exhausted(t)
	}
	for _, target := range groups.order {
		for part := range s.calls(groups.of[target]) {
			s.await(s.send(target, part, nil))
		}
	}
}

// calls divides the tasks of one searcher into those of one call each.
func (s *scatter[R]) calls(tasks []*task) iter.Seq[[]*task] {
	return func(yield func([]*task) bool) {
		from, size := 0, 0
		for i, t := range tasks {
			more := t.shard.PlannedSize(s.TypeRepos)
			if i > from && (i-from == maxShardsPerCall || size+more > maxBytesPerCall) {
				if !yield(tasks[from:i:i]) {
					return
				}
				from, size = i, 0
			}
			size += more
		}
		if from < len(tasks) {
			yield(tasks[from:])
		}
	}
}

// groups are tasks by the searcher that is asked for them.
type groups struct {
	order []Target
	of    map[Target][]*task
	// none are the tasks without a candidate.
	none []*task
}

func (g *groups) add(target Target, t *task) {
	if g.of[target] == nil {
		g.order = append(g.order, target)
	}
	g.of[target] = append(g.of[target], t)
}

// group chooses a candidate for each task.
func (s *scatter[R]) group(tasks []*task) *groups {
	g := &groups{of: make(map[Target][]*task)}
	permitted := make(map[Target]bool)
	permits := func(target Target) bool {
		// One call needs one permit, and a permit given must be used.
		known, ok := permitted[target]
		if !ok {
			known = s.Peers.permits(target)
			permitted[target] = known
		}
		return known
	}
	balance := newBalance(s.Peers, tasks)
	for _, t := range tasks {
		if len(t.candidates) == 0 {
			g.none = append(g.none, t)
			continue
		}
		g.add(balance.choose(t, permits), t)
	}
	return g
}

func (s *scatter[R]) exhausted(t *task) {
	if !t.loading || time.Since(s.started)+s.pause >= s.Policy.CoverWait {
		s.account.Uncovered(t.shard.Digest, t.reason, t.message)
		return
	}
	s.waiting = append(s.waiting, t)
	if s.timer == nil {
		s.timer = time.After(s.pause)
		s.pause = min(2*s.pause, 10*s.Policy.Pause)
	}
}
