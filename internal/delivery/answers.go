// Package delivery makes calls last until their answers have been delivered. gRPC queues
// an answer and ends the call, however long the caller then takes to read it, so neither
// limits of calls nor deadlines would bound what waits in memory.
//
// An answer is unread until the server has written it to the connection. The bytes of
// unread answers are charged to their caller, and divided fairly among callers. A call that
// Hold counts goes on until its answers are read. A peer that takes nothing is cut off: a
// stream, whose caller does not take a message in time, ends; a connection, of which nothing
// is taken, is closed.
package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/internal/fair"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// Answers accounts for the unread answers of a server. It is safe for concurrent use.
type Answers struct {
	unread   *fair.Pool
	patience time.Duration
	refused  prometheus.Counter
	cutOff   prometheus.Counter

	collecting sync.Mutex
	// collected is when the garbage collector last ran for quiet connections.
	collected time.Time
}

// New returns an account that holds at most that many bytes of unread answers, and waits as long as
// patience for a caller to take any.
func New(most int64, patience time.Duration, metrics prometheus.Registerer) (*Answers, error) {
	a := &Answers{
		unread: fair.NewPool(most), patience: patience,
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trawl_server_refused_answers_total",
			Help: "Answers that were not sent because the caller had not read others.",
		}),
		cutOff: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trawl_server_cut_off_total",
			Help: "Streams and connections that were ended because the caller took nothing.",
		}),
	}
	unread := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "trawl_server_unread_bytes",
		Help: "Bytes of answers that callers have not read.",
	}, func() float64 { return float64(a.unread.Taken()) })
	for _, c := range []prometheus.Collector{unread, a.refused, a.cutOff} {
		if err := metrics.Register(c); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// retryAfter is when a caller whose answer was refused should ask again.
const retryAfter = time.Second

// take charges a caller for an answer. The error is a status.
func (a *Answers) take(caller string, bytes int64) error {
	if a.unread.Take(caller, bytes) {
		return nil
	}
	a.refused.Inc()
	return searchapi.Overloaded("too many bytes of earlier answers have not been read: read answers faster, or ask for fewer at once", retryAfter)
}

type callKey struct{}

// Hold names the caller of a call, to whom its answers are charged from now on, and has left
// called once the call has ended and its answers are read. It returns false if the call did not
// come over a connection of its own: left is then the business of the caller of Hold.
func Hold(ctx context.Context, caller string, left func()) bool {
	c, ok := ctx.Value(callKey{}).(*call)
	if ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.caller, c.left = caller, left
	}
	return ok
}
