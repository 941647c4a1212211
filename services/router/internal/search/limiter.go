package search

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// queryClass is the priority of a query under overload.
type queryClass int

const (
	// interactive queries have a person waiting.
	interactive queryClass = iota
	// batch queries can come later. They are admitted while fewer queries than half of
	// the limit are in progress.
	batch
)

// String is the name of the class in metrics and metadata.
func (c queryClass) String() string {
	if c == batch {
		return "batch"
	}
	return "interactive"
}

const (
	// firstLimit is the initial limit. leastLimit is its lower bound: without some
	// queries the router could not detect the end of an overload.
	firstLimit = 256
	leastLimit = 2
	// growth is how much the limit grows while that many queries succeed, and decrease
	// is the factor of an overload. Slow growth keeps overloads rare, and with them
	// incomplete answers.
	growth   = 0.5
	decrease = 0.8
	// headroom is the share of the limit that is kept for callers with no more than an
	// equal part of it.
	headroom = 0.2
	// batchShare is the share of the limit that batch queries may use.
	batchShare = 0.5
	// Bounds of the time after which a refused query should be retried.
	leastRetry = 50 * time.Millisecond
	mostRetry  = 5 * time.Second
)

// limiter limits the queries that a router answers at once, so that under overload the
// admitted ones still end complete and in time. The limit grows while the queries that
// use it succeed, and shrinks at an overload: additive increase, multiplicative decrease
// (Chiu and Jain, 1989), as in TCP. Searchers signal an overload by refusing calls.
// Latency is no signal: it differs by orders of magnitude between queries, and callers
// choose their deadlines.
//
// One caller gets at most a share of the limit. A caller that already uses more than an equal part
// leaves headroom for the others, so that a light caller is admitted alongside heavy ones. A
// limiter is safe for concurrent use.
type limiter struct {
	most float64
	// share of the limit that the queries of one caller may use, unless live overrides it.
	share   float64
	live    *limits.Live
	metrics *Metrics

	mu       sync.Mutex
	limit    float64
	inflight int
	// callers counts the queries in progress of callers that are known.
	callers map[string]int
	// epoch counts the decreases. Only the first query that meets an overload shrinks
	// the limit.
	epoch int
	// mean is the mean time of a query in seconds.
	mean float64
}

// newLimiter returns a limiter that never admits more than most queries at once, and never
// more than a share of its limit to one caller, which limits.CallerShare overrides.
func newLimiter(most int, share float64, live *limits.Live, metrics *Metrics) *limiter {
	l := &limiter{most: float64(most), share: share, live: live, limit: min(firstLimit, float64(most)), metrics: metrics, callers: make(map[string]int)}
	metrics.limit.Set(l.limit)
	return l
}

// slot is one of the queries that a limiter counts. Its methods must not be called
// concurrently, except markOverloaded and retryAfter before end.
type slot struct {
	limiter    *limiter
	caller     string
	began      time.Time
	epoch      int
	overloaded atomic.Bool // the files of one request are looked for at once
	late       bool
}

// admit lets a query of a caller in; empty is an unknown caller. The caller of admit must call end.
// The error is a status that says when to retry.
func (l *limiter) admit(class queryClass, caller string) (*slot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := l.limit
	if class == batch {
		room = max(l.limit*batchShare, 1)
	}
	if caller != "" {
		own, parts := l.callers[caller], len(l.callers)+1 // one part is for the next caller
		if own == 0 {
			parts++
		}
		if float64(own) >= max(l.limit*l.live.Number(limits.CallerShare, caller, l.share), 1) {
			l.metrics.shed(class, limitCaller)
			return nil, searchapi.Overloaded(fmt.Sprintf(
				"%d queries of this token are in progress, which is its share of the limit (caller-share)", own), l.retryAfter())
		}
		if float64(own+1) > l.limit/float64(parts) {
			room = min(room, max(l.limit*(1-headroom), 1))
		}
	}
	if float64(l.inflight) >= room {
		l.metrics.shed(class, limitAll)
		return nil, searchapi.Overloaded(fmt.Sprintf("%d queries are in progress, which is the limit (max-queries)", l.inflight), l.retryAfter())
	}
	l.inflight++
	if caller != "" {
		l.callers[caller]++
	}
	return &slot{limiter: l, caller: caller, began: time.Now(), epoch: l.epoch}, nil
}

// retryAfter is about the time in which the current queries end, with a random part that
// keeps callers from retrying together.
func (l *limiter) retryAfter() time.Duration {
	mean := time.Duration(l.mean * float64(time.Second))
	return min(max(mean+rand.N(mean+1), leastRetry), mostRetry)
}

// retryAfter is the time after which a query that must be complete should be retried.
func (s *slot) retryAfter() time.Duration {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	return s.limiter.retryAfter()
}

// markOverloaded records that searchers refused the query.
func (s *slot) markOverloaded() { s.overloaded.Store(true) }

// markLate records that this router missed the deadline of the query. It counts only
// while the limit is in use: an idle router is late for other reasons, and would not
// grow its limit again.
func (s *slot) markLate() { s.late = true }

// end gives the slot back, and adjusts the limit.
func (s *slot) end() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := float64(l.inflight) > l.limit/2
	l.inflight--
	if s.caller != "" {
		if l.callers[s.caller]--; l.callers[s.caller] == 0 {
			delete(l.callers, s.caller)
		}
	}
	overloaded := s.overloaded.Load() || s.late && busy
	switch {
	case overloaded && s.epoch == l.epoch:
		l.limit = max(l.limit*decrease, leastLimit)
		l.epoch++
	case overloaded || s.late:
	default:
		l.mean += (time.Since(s.began).Seconds() - l.mean) / 32
		if busy {
			l.limit = min(l.limit+growth/l.limit, l.most)
		}
	}
	l.metrics.limit.Set(l.limit)
}
