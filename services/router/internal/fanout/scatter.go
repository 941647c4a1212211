// Package fanout asks searchers for shards. It picks the first searcher that holds
// a shard and is not much busier than the others. When that one is slow it also
// asks the next candidate, and when that one fails it asks the next instead. It ends
// when every shard is accounted for or the deadline passes.
package fanout

import (
	"context"
	"iter"
	"time"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Target is a searcher that can be asked.
type Target struct {
	ID      string
	Address string
	// Near says that it is in the router's zone.
	Near bool
}

// Policy is how long to keep asking. The zero value asks every candidate once.
type Policy struct {
	// CoverWait is how long Scatter asks again for shards that no candidate covers
	// yet: searchers may still be loading a new generation.
	CoverWait time.Duration
	// Pause before asking again. It doubles with each round, up to ten times its value.
	Pause time.Duration
	// Replicas is how many of a shard's first candidates hold it, or are loading it.
	// Scatter balances shards among them.
	Replicas int
}

// Limits of one request. Searchers accept 16 MiB by default, and the query takes part
// of that.
const (
	maxShardsPerCall = 2000
	maxBytesPerCall  = 8 << 20
)

// Reply is a searcher's reply, with its coverage of the shards sent to it.
type Reply[R any] struct {
	Value    R
	Coverage *searchv1.Coverage
	// Drop, unless it is nil, frees what a reply holds that Scatter does not accept, also that of a call that fails. It
	// may be called on any goroutine, and more than once.
	Drop func()
}

func (r *Reply[R]) drop() {
	if r.Drop != nil {
		r.Drop()
	}
}

// Call asks one searcher for some shards. Its error wraps ErrNotAsked if the searcher
// did not cause it.
type Call[R any] func(ctx context.Context, t Target, shards []searchapi.Shard) (Reply[R], error)

// Fanout is what all Scatters of a router share, except TypeRepos. It is safe for
// concurrent use if Candidates is.
type Fanout struct {
	Policy Policy
	Peers  *Peers
	// Candidates returns the searchers to ask for a shard, best first. Scatter calls it
	// once a round and does not change the slice.
	Candidates func(searchapi.Digest) []Target
	// TypeRepos is the number of resolved type:repo of a query. Each makes its plans
	// larger.
	TypeRepos int
}

// Scatter asks for the shards until each is settled or ctx ends, and then returns
// without waiting for searchers that have not answered. It passes every usable
// reply to accept, reports whether there was one, and records in account what
// became of every shard. It hedges a searcher that is slower than usual by asking
// the next candidates too, and accepts the results of a shard from one searcher
// only. It calls accept and Candidates in the calling goroutine. The shards must not
// change until Scatter has returned.
func Scatter[R any](ctx context.Context, f Fanout, shards []searchapi.Shard, account *searchapi.Account, call Call[R], accept func(R)) (accepted bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &scatter[R]{
		Fanout: f, ctx: ctx, account: account, call: call, accept: accept,
		outcomes: make(chan outcome[R]), slow: make(chan *attempt[R]), returned: make(chan struct{}),
		open: make(map[*attempt[R]]bool), started: time.Now(), pause: f.Policy.Pause,
	}
	defer close(s.returned)
	tasks, fresh := make([]task, len(shards)), make([]*task, len(shards))
	for i := range shards {
		tasks[i].shard, fresh[i] = &shards[i], &tasks[i]
	}
	s.startRound(fresh)
	s.loop()
	return s.accepted
}

// task is a shard that is not settled.
type task struct {
	// shard is an element of the slice that Scatter got: there may be very many.
	shard *searchapi.Shard
	// candidates that have not failed in this round. The first replicas hold the shard.
	// The slice is shared with other tasks.
	candidates []Target
	replicas   int
	// loading is set when a candidate of this round does not cover the shard yet.
	loading bool
	// reason and message say why the last candidate failed. They are empty before.
	reason  searchv1.UncoveredReason
	message string
}

// holders are the candidates that hold the shard.
func (t *task) holders() []Target { return t.candidates[:t.replicas] }

type scatter[R any] struct {
	Fanout

	ctx     context.Context //nolint:containedctx // lives as long as the call of Scatter
	account *searchapi.Account
	call    Call[R]
	accept  func(R)
	// accepted is set when accept was called.
	accepted bool

	outcomes chan outcome[R]
	// slow receives attempts that take longer than their searcher usually does.
	slow chan *attempt[R]
	// returned is closed when Scatter no longer receives from the channels.
	returned chan struct{}
	// open are the attempts that shards wait for, except hedges.
	open map[*attempt[R]]bool
	// waiting are tasks to ask for again when timer fires.
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
			s.startRound(again)
		case <-s.ctx.Done():
			s.abandon()
			return
		}
	}
}

// startRound asks for the tasks, each with all of its candidates again.
func (s *scatter[R]) startRound(tasks []*task) {
	for _, t := range tasks {
		t.candidates, t.loading = s.Candidates(t.shard.Digest), false
		t.replicas = min(s.Policy.Replicas, len(t.candidates))
		t.reason, t.message = noSearcher, "no searcher is live"
	}
	before := len(s.open)
	s.dispatch(tasks)
	s.Peers.earn(len(s.open) - before)
}

// dispatch sends each task to its next candidate, and groups the tasks by searcher. A
// task without a candidate fails, or waits for another round.
func (s *scatter[R]) dispatch(tasks []*task) {
	if s.ctx.Err() != nil {
		for _, t := range tasks {
			if t.reason == noSearcher { // no searcher was asked
				t.reason, t.message = deadline, searchapi.NoTurn
			}
			// This holds even if an earlier round of the query has searched the shard.
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

// calls divides the tasks of one searcher into calls.
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

// groups are tasks by searcher.
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
		// One call needs one permit, and every permit must be used.
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
