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

// A call is hedged when it takes longer than this quantile of its searcher's latency
// (Dean and Barroso, The Tail at Scale, 2013), within these bounds.
const (
	hedgeQuantile = 0.95
	leastPatience = time.Millisecond
	// firstPatience is for a searcher with too few latency samples.
	firstPatience = 250 * time.Millisecond
	// slowFactor bounds patience as a multiple of the typical searcher's latency, so
	// that a searcher that is always slow is hedged too.
	slowFactor = 3
	// typicalEvery is how often the typical latency is computed.
	typicalEvery = time.Second
)

// A breaker opens when half of the last calls failed, or at once when the searcher is
// silent or unreachable. After a delay it lets one call through as a probe, and closes
// if that is answered.
const (
	breakerFailures = 5
	breakerCalls    = 10
	breakerDelay    = 2 * time.Second
	breakerJitter   = 500 * time.Millisecond
)

// ErrNotAsked is the error of a Call that was not sent, for a reason that is not the
// searcher's.
var ErrNotAsked = errors.New("the searcher was not asked")

// ErrDisconnected is the error of a Call without a connection, or whose connection broke
// before the reply was complete.
var ErrDisconnected = errors.New("no connection to the searcher")

// Ping asks a searcher for a sign of life, which costs it next to nothing. An error
// means that it did not answer before ctx ended, or is unreachable. It is safe for
// concurrent use.
type Ping func(context.Context, Target) error

// pingWait is how long a searcher may be silent to a ping. One that answered a call in recently before the ping may have
// lost it: a second one must stay unanswered too.
const (
	pingWait = 250 * time.Millisecond
	recently = time.Second
)

// Shares bound repeated calls, as shares of first calls. Zero forbids them.
type Shares struct {
	// Hedges repeat slow calls, Retries repeat failed calls.
	Hedges, Retries float64
}

// Peers is what a router knows of its searchers: their latency, whether they answer,
// and the budgets for hedges and retries. It is safe for concurrent use.
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
	asked   atomic.Int64 // shards in calls under way
	// pinged is true while a ping is under way.
	pinged atomic.Bool

	mu         sync.Mutex
	answeredAt time.Time
	// missedAt is when the first of the last unanswered pings was sent, zero if the last ping was answered. silentAt is
	// when the one was sent that opened the breaker last.
	missedAt, silentAt time.Time
}

// NewPeers returns Peers without any knowledge. Ping must be safe for concurrent use.
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
			p.metrics.breaker.DeleteLabelValues(id)
		}
	}
}

// earn adds first calls to the budgets.
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
			p.mu.Lock()
			if p.byID[id] != nil { // else it has left meanwhile
				p.metrics.state(id, e.NewState)
			}
			p.mu.Unlock()
			level := slog.LevelInfo
			if e.NewState == circuitbreaker.OpenState {
				level = slog.LevelWarn
			}
			p.log.Log(context.Background(), level, "circuit breaker of a searcher changed", "searcher", id, "from", e.OldState.String(), "to", e.NewState.String())
		}).
		Build()
}

// permits reports whether the searcher's breaker lets a call through. A half-open
// breaker admits only a few calls, and each must be recorded.
func (p *Peers) permits(t Target) bool { return p.of(t).breaker.TryAcquirePermit() }

// healthy reports whether the searcher's breaker is closed.
func (p *Peers) healthy(t Target) bool { return p.of(t).breaker.IsClosed() }

// probe pings a searcher that is late, unless a ping is under way, and opens its
// breaker if it is silent. It returns after the ping or when ctx ends.
func (p *Peers) probe(ctx context.Context, t Target) {
	known := p.of(t)
	if !known.pinged.CompareAndSwap(false, true) {
		return
	}
	defer known.pinged.Store(false)
	asked := time.Now()
	waiting, cancel := context.WithTimeout(ctx, pingWait)
	defer cancel()
	if err := p.ping(waiting, t); (err == nil || ctx.Err() == nil) && known.silent(asked, err == nil) {
		known.breaker.Open()
	}
}

// silent learns from a ping, and reports whether the searcher is silent: since this ping, and since an earlier one if
// it answered a call recently before.
func (k *peer) silent(asked time.Time, answered bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if answered || !k.answeredAt.Before(asked) {
		k.missedAt = time.Time{}
		return false
	}
	if k.missedAt.IsZero() || !k.answeredAt.Before(k.missedAt) {
		k.missedAt = asked
		if asked.Sub(k.answeredAt) < recently {
			return false
		}
	}
	k.silentAt = asked
	return true
}

// silentSince reports whether a ping sent since then got no answer. An open breaker
// alone may be due to earlier failures.
func (p *Peers) silentSince(t Target, then time.Time) bool {
	known := p.of(t)
	known.mu.Lock()
	defer known.mu.Unlock()
	return !known.silentAt.Before(then)
}

// patience is how long to wait for a searcher before hedging its call. Left is the time
// until the deadline of the query.
func (p *Peers) patience(t Target, left time.Duration) time.Duration {
	known, ok := p.of(t).latency.high()
	if !ok {
		known = min(firstPatience, left/4)
	}
	if typical := p.typicalQuantile(); typical > 0 {
		known = min(known, slowFactor*typical)
	}
	return max(min(known, left/2), leastPatience)
}

// slow reports whether a searcher takes much longer than is typical.
func (p *Peers) slow(t Target) bool {
	known, ok := p.of(t).latency.high()
	typical := p.typicalQuantile()
	return ok && typical > 0 && known > slowFactor*typical
}

// typicalQuantile is the median of the searchers' quantiles, at most typicalEvery old.
func (p *Peers) typicalQuantile() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.typicalAt) > typicalEvery {
		p.typicalAt = now
		var all []time.Duration
		for _, known := range p.byID {
			if q, ok := known.latency.high(); ok {
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

// record learns from the end of a call. Err is its error; over is true if its deadline
// passed.
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

// isFailure reports whether the error means that the searcher does not work, cannot be
// reached, or answers no router: its clock may differ. Other errors are valid answers.
func isFailure(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Internal, codes.Unknown, codes.DataLoss, codes.Unimplemented,
		codes.Unauthenticated, codes.PermissionDenied, codes.Canceled, codes.DeadlineExceeded: // before the deadline
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

// unanswered learns from an abandoned call. It counts only if the call had more time
// than the searcher usually takes. It counts as a failure only if the searcher answered
// no other call in that time.
func (k *peer) unanswered(sent time.Time, took time.Duration) {
	usual, ok := k.latency.high()
	if !ok {
		usual = firstPatience / 10
	}
	if took < usual {
		k.settleProbe()
		return
	}
	k.latency.observe(took)
	k.mu.Lock()
	answered := !k.answeredAt.Before(sent)
	k.mu.Unlock()
	if answered {
		k.breaker.RecordSuccess()
	} else {
		k.breaker.RecordFailure()
	}
}

// settleProbe returns the permit of a call that proves nothing. A half-open breaker
// opens again and waits for another probe.
func (k *peer) settleProbe() {
	if k.breaker.IsHalfOpen() {
		k.breaker.RecordFailure()
	}
}
