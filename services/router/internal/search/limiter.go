package search

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// queryClass is how much a query matters when not all can be answered.
type queryClass int

const (
	// interactive queries have somebody waiting.
	interactive queryClass = iota
	// batch queries can come later. They are let in while fewer than half of
	// the queries that can be answered are being answered.
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
	// firstLimit is where the limit begins, and leastLimit where it ends when
	// everything is refused: something must go on to find out when that is over.
	firstLimit = 256
	leastLimit = 2
	// growth is how much the limit grows while as many queries as it is end
	// well, and decrease what an overload leaves of it. A query that finds the
	// overload is incomplete: growing slowly makes those few.
	growth   = 0.5
	decrease = 0.8
	// batchShare is the share of the limit below which batch queries begin.
	batchShare = 0.5
	// The bounds of the time after which a refused query may come again.
	leastRetry = 50 * time.Millisecond
	mostRetry  = 5 * time.Second
)

// limiter limits how many queries are answered at once. It grows while
// queries end well that make use of it, and shrinks when one meets an overload: additive increase, multiplicative decrease (Chiu and Jain, 1989),
// as TCP does it. Searchers tell of the overload by refusing calls. How long
// queries take does not: they differ by orders of magnitude, and end at deadlines
// that their callers choose. It is safe for concurrent use.
type limiter struct {
	most    float64
	metrics *Metrics

	mu       sync.Mutex
	limit    float64
	inflight int
	// epoch counts the decreases: of the queries that meet the same overload
	// the first decides.
	epoch int
	// mean time of a query in seconds.
	mean float64
}

// newLimiter makes a limiter that never lets in more than most queries at once.
func newLimiter(most int, metrics *Metrics) *limiter {
	l := &limiter{most: float64(most), limit: min(firstLimit, float64(most)), metrics: metrics}
	metrics.limit.Set(l.limit)
	return l
}

// slot is a query that is being answered. Its methods are not for concurrent
// use with each other.
type slot struct {
	limiter    *limiter
	began      time.Time
	epoch      int
	overloaded bool
	late       bool
}

// admit lets a query in; End must follow. The error is a status that says when
// to come again.
func (l *limiter) admit(class queryClass) (*slot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := l.limit
	if class == batch {
		room = max(l.limit*batchShare, 1)
	}
	if float64(l.inflight) >= room {
		l.metrics.shed(class)
		return nil, searchapi.Overloaded(fmt.Sprintf("%d queries are being answered, which is all that can be", l.inflight), l.retryAfter())
	}
	l.inflight++
	return &slot{limiter: l, began: time.Now(), epoch: l.epoch}, nil
}

// retryAfter is about the time in which the queries of now are answered, and
// different for each caller, so that they do not come back together.
func (l *limiter) retryAfter() time.Duration {
	mean := time.Duration(l.mean * float64(time.Second))
	return min(max(mean+rand.N(mean+1), leastRetry), mostRetry)
}

// retryAfter is when the query is worth to be tried again, if it must be complete.
func (s *slot) retryAfter() time.Duration {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	return s.limiter.retryAfter()
}

// markOverloaded says that searchers refused what the query needed.
func (s *slot) markOverloaded() { s.overloaded = true }

// markLate says that this router did not end the query in time. It counts only
// while the limit is in use: a router that has little to do is late for other
// reasons, and would not grow its limit again.
func (s *slot) markLate() { s.late = true }

// end makes room for another query, and moves the limit.
func (s *slot) end() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := float64(l.inflight) > l.limit/2
	l.inflight--
	overloaded := s.overloaded || s.late && busy
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
