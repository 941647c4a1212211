package fanout

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The share of a searcher's answers that come before its requests are hedged
// (Dean and Barroso, The Tail at Scale, 2013), and the bounds of that time.
const (
	hedgeQuantile = 0.95
	leastPatience = time.Millisecond
	// firstPatience is for a searcher of whose latency too little is known.
	firstPatience = 250 * time.Millisecond
	// slowFactor is how many times as long as the typical searcher one may take:
	// one that is always slow must not be waited for because it usually is.
	slowFactor = 3
	// typicalEvery is how often the typical searcher is worked out again.
	typicalEvery = time.Second
)

// A breaker opens when half of the last calls failed, or at once when the searcher
// is silent or not reached. After a while it lets one call through as a probe: if
// that is answered it closes.
const (
	breakerFailures = 5
	breakerCalls    = 10
	breakerDelay    = 2 * time.Second
	breakerJitter   = 500 * time.Millisecond
)

// ErrNotAsked is the error of a Call that did not reach its searcher for a
// reason that is not the searcher's.
var ErrNotAsked = errors.New("the searcher was not asked")

// ErrDisconnected is the error of a Call whose connection broke before an answer
// came, or could not be made.
var ErrDisconnected = errors.New("no connection to the searcher")

// Ping asks a searcher whether it still does anything at all, which costs it next
// to nothing. An error means that it did not answer before ctx ended, or is not
// reached. It is safe for concurrent use.
type Ping func(context.Context, Target) error

// pingWait is how long a searcher may be silent to a ping.
const pingWait = 250 * time.Millisecond

// Shares are how much work may be repeated, as shares of the calls that are not
// repetitions. Zero forbids it.
type Shares struct {
	// Hedges repeat calls that are slow, Retries those that failed.
	Hedges, Retries float64
}

// Peers is what a router has learned of its searchers: how long they take,
// whether they answer at all, and how much work may still be repeated. It is
// safe for concurrent use.
type Peers struct {
	hedges, retries *allowance
	ping            Ping
	metrics         *Metrics
	log             *slog.Logger

	mu   sync.Mutex
	byID map[string]*peer
	// typical is the median of the searchers' quantiles at typicalAt; zero
	// while none is known.
	typical   time.Duration
	typicalAt time.Time
}

// peer is one searcher.
type peer struct {
	latency latency
	breaker circuitbreaker.CircuitBreaker[any]
	asked   atomic.Int64 // shards that it is being asked for
	// pinged is true while a ping is under way.
	pinged atomic.Bool

	mu         sync.Mutex
	answeredAt time.Time
	// silentAt is when it was last asked for an answer to a ping and gave none.
	silentAt time.Time
}

// NewPeers knows nothing yet.
func NewPeers(shares Shares, ping Ping, metrics *Metrics, log *slog.Logger) *Peers {
	return &Peers{
		hedges: newAllowance(shares.Hedges), retries: newAllowance(shares.Retries),
		ping: ping, metrics: metrics, log: log, byID: make(map[string]*peer),
	}
}

// Keep forgets the searchers that are not live.
func (p *Peers) Keep(live map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.byID {
		if !live[id] {
			delete(p.byID, id)
			p.metrics.forget(id)
		}
	}
}

// earn counts calls that repeat no other.
func (p *Peers) earn(calls int) {
	p.hedges.earn(calls)
	p.retries.earn(calls)
}

func (p *Peers) of(t Target) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.byID[t.ID]
	if !ok {
		known = &peer{breaker: p.newBreaker(t.ID)}
		p.byID[t.ID] = known
	}
	return known
}

func (p *Peers) newBreaker(id string) circuitbreaker.CircuitBreaker[any] {
	p.metrics.state(id, circuitbreaker.ClosedState)
	return circuitbreaker.NewBuilder[any]().
		WithFailureThresholdRatio(breakerFailures, breakerCalls).
		WithSuccessThreshold(1).
		WithDelay(breakerDelay).WithJitter(breakerJitter).
		OnStateChanged(func(e circuitbreaker.StateChangedEvent) {
			p.metrics.state(id, e.NewState)
			level := slog.LevelInfo
			if e.NewState == circuitbreaker.OpenState {
				level = slog.LevelWarn
			}
			p.log.Log(context.Background(), level, "breaker of a searcher", "searcher", id, "from", e.OldState.String(), "to", e.NewState.String())
		}).
		Build()
}

// permits says whether the searcher's breaker lets a call through. Half-open,
// it does so for a few only, and each must be recorded.
func (p *Peers) permits(t Target) bool { return p.of(t).breaker.TryAcquirePermit() }

// healthy says whether the searcher's breaker is closed.
func (p *Peers) healthy(t Target) bool { return p.of(t).breaker.IsClosed() }

// doubt pings a searcher that is late, unless somebody does already, and opens
// its breaker when it is silent: it is not slow, it does not work. It returns
// when that is known, or ctx ends.
func (p *Peers) doubt(ctx context.Context, t Target) {
	known := p.of(t)
	if !known.pinged.CompareAndSwap(false, true) {
		return
	}
	defer known.pinged.Store(false)
	asked := time.Now()
	waiting, cancel := context.WithTimeout(ctx, pingWait)
	defer cancel()
	if err := p.ping(waiting, t); err != nil && ctx.Err() == nil && !known.answeredSince(asked) {
		known.mu.Lock()
		known.silentAt = asked
		known.mu.Unlock()
		known.breaker.Open()
	}
}

// silentSince says whether the searcher was asked for a sign of life since then and
// gave none. A breaker that is open may be so for what was before.
func (p *Peers) silentSince(t Target, then time.Time) bool {
	known := p.of(t)
	known.mu.Lock()
	defer known.mu.Unlock()
	return !known.silentAt.Before(then)
}

// patience is how long to wait for a searcher before its request is hedged,
// when so much time is left for all.
func (p *Peers) patience(t Target, left time.Duration) time.Duration {
	known, ok := p.of(t).latency.quantile(hedgeQuantile)
	if !ok {
		known = min(firstPatience, left/4)
	}
	if typical := p.typicalQuantile(); typical > 0 {
		known = min(known, slowFactor*typical)
	}
	return max(min(known, left/2), leastPatience)
}

// typicalQuantile is what the quantile of the searcher in the middle was a
// moment ago.
func (p *Peers) typicalQuantile() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.typicalAt) > typicalEvery {
		p.typicalAt = now
		var all []time.Duration
		for _, known := range p.byID {
			if q, ok := known.latency.quantile(hedgeQuantile); ok {
				all = append(all, q)
			}
		}
		slices.Sort(all)
		if p.typical = 0; len(all) > 0 {
			p.typical = all[len(all)/2]
		}
	}
	return p.typical
}

// record learns from the end of a call: err is its error, over says that it
// failed since its time was over.
func (p *Peers) record(t Target, sent time.Time, err error, over bool) {
	known, took := p.of(t), time.Since(sent)
	switch {
	case errors.Is(err, ErrNotAsked):
		known.settleProbe()
	case errors.Is(err, ErrDisconnected):
		known.breaker.Open()
	case over:
		known.unanswered(sent, took)
	case err == nil:
		known.latency.observe(took)
		known.answered()
	case isFailure(err):
		known.breaker.RecordFailure()
	default:
		known.answered()
	}
}

// isFailure tells errors of a searcher that does not work, or cannot be
// reached, from those that it gives for a reason.
func isFailure(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Internal, codes.Unknown, codes.DataLoss, codes.Unimplemented,
		codes.Canceled, codes.DeadlineExceeded: // although there was time
		return true
	}
	return false
}

func (k *peer) answered() {
	k.mu.Lock()
	k.answeredAt = time.Now()
	k.mu.Unlock()
	k.breaker.RecordSuccess()
}

// answeredSince says whether the searcher answered anybody since then.
func (k *peer) answeredSince(then time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.answeredAt.Before(then)
}

// unanswered learns from a call that was given up. It tells something only when
// it was given longer than the searcher usually takes; and that the searcher
// does not work, only when it answered nobody else meanwhile.
func (k *peer) unanswered(sent time.Time, took time.Duration) {
	usual, ok := k.latency.quantile(hedgeQuantile)
	if !ok {
		usual = firstPatience / 10
	}
	if took < usual {
		k.settleProbe()
		return
	}
	k.latency.observe(took)
	if !k.answeredSince(sent) {
		k.breaker.RecordFailure()
		return
	}
	k.breaker.RecordSuccess()
}

// settleProbe gives back the permit of a call that tells nothing: a breaker
// that waits for the end of its probes goes on waiting, from the beginning.
func (k *peer) settleProbe() {
	if k.breaker.IsHalfOpen() {
		k.breaker.RecordFailure()
	}
}
