package search

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/query"
)

const (
	// quarantinePoints is the evidence at which a query is refused. A crash is worth
	// alonePoints if this router asked that searcher nothing else, and sharedPoints if it
	// did: three crashes separate a query that kills from a node that fails under innocent
	// queries, and six one from its neighbours.
	quarantinePoints = 6
	alonePoints      = 2
	sharedPoints     = 1
	// quarantineMemory is how long a death counts. quarantineHold is how long a query
	// is refused.
	quarantineMemory = 10 * time.Minute
	quarantineHold   = 10 * time.Minute
	// quarantineOnce is the time within which broken connections to one searcher count
	// as one crash: a searcher takes longer to restart.
	quarantineOnce = time.Second
	// maxSuspects bounds the queries that are remembered.
	maxSuspects = 1000
)

// fingerprint identifies a query, independently of its caller and its page.
type fingerprint struct {
	// shape is that of the query; empty for one too small to have a shape.
	shape string
	text  [sha256.Size]byte
}

// fingerprintOf is the fingerprint of a query.
func fingerprintOf(tree query.Q, text string, version uint32) fingerprint {
	f := textFingerprint("query", text, version)
	f.shape = query.Shape(tree)
	return f
}

// textFingerprint is the fingerprint of a text. Kind separates searches from files.
func textFingerprint(kind, text string, version uint32) fingerprint {
	b := append([]byte(kind), 0)
	b = binary.LittleEndian.AppendUint32(b, version)
	return fingerprint{text: sha256.Sum256(append(b, text...))}
}

// family is what is refused together: all queries of one shape, so that varying a text or a
// figure does not hide a query, or if it has no shape, one text.
func (f fingerprint) family() family {
	if f.shape != "" {
		return family{shape: f.shape}
	}
	return family(f)
}

// family is a shape, or a text without a shape.
type family fingerprint

// quarantine refuses queries that kill searchers. Retries would otherwise carry a query that no
// searcher survives from replica to replica. The evidence is what this router asked a searcher when
// the connection broke. A searcher that answers a query withdraws evidence of its own crashes: all
// against that text, and of the crashes that several queries shared, those against its family. So
// neither a frequent query that merely ran alongside the culprit is refused, nor one whose searchers
// end for other reasons. It is safe for concurrent use.
type quarantine struct {
	metrics *Metrics
	log     *slog.Logger

	mu       sync.Mutex
	suspects map[family]*suspect
	// running counts the calls in progress by searcher and family of queries.
	running map[string]map[family]int
	// crashes are the last ones, by searcher.
	crashes map[string]*crash
}

// crash is the end of a searcher, and the queries that ran on it.
type crash struct {
	at      time.Time
	queries map[family]bool
}

// suspect is a family of queries that ran on searchers when they died.
type suspect struct {
	deaths []death
	// until is the end of its quarantine; zero if it is not in quarantine.
	until time.Time
}

type death struct {
	searcher string
	// text is that of one query of the family that ran.
	text  [sha256.Size]byte
	at    time.Time
	alone bool
}

func newQuarantine(metrics *Metrics, log *slog.Logger) *quarantine {
	return &quarantine{
		metrics: metrics, log: log, suspects: make(map[family]*suspect),
		running: make(map[string]map[family]int), crashes: make(map[string]*crash),
	}
}

// check refuses a query in quarantine.
func (q *quarantine) check(f fingerprint) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.suspects[f.family()]
	if s == nil || !time.Now().Before(s.until) {
		return nil
	}
	left := time.Until(s.until)
	refused := status.New(codes.FailedPrecondition, fmt.Sprintf(
		"%d searchers died while they worked on this query or others of its shape, so these are refused for the next %v: make its expressions smaller, and look into the searchers' logs",
		len(s.deaths), left.Round(time.Second)))
	if detailed, err := refused.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(left)}); err == nil {
		refused = detailed
	}
	q.metrics.quarantined.Inc()
	return refused.Err()
}

// call is a call to a searcher in progress.
type call struct {
	of       *quarantine
	query    fingerprint
	searcher string
	began    time.Time
}

// begin records that a searcher is asked the query. The call must end.
func (q *quarantine) begin(f fingerprint, searcher string) *call {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running[searcher] == nil {
		q.running[searcher] = make(map[family]int)
	}
	q.running[searcher][f.family()]++
	return &call{of: q, query: f, searcher: searcher, began: time.Now()}
}

// end records how the call ended: the searcher died, or it survived the query, or neither.
func (c *call) end(ctx context.Context, died, survived bool) {
	q := c.of
	q.mu.Lock()
	defer q.mu.Unlock()
	ran := c.query.family()
	switch s := q.suspects[ran]; {
	case died:
		q.died(ctx, c)
	case survived && s != nil:
		s.deaths = slices.DeleteFunc(s.deaths, func(d death) bool {
			return d.searcher == c.searcher && (!d.alone || d.text == c.query.text)
		})
	}
	running := q.running[c.searcher]
	if running[ran]--; running[ran] == 0 {
		delete(running, ran)
	}
	if len(running) == 0 {
		delete(q.running, c.searcher)
	}
}

// died needs mu.
func (q *quarantine) died(ctx context.Context, c *call) {
	now := time.Now()
	last := q.crashed(c, now)
	s := q.suspect(c.query.family(), now)
	s.deaths = slices.DeleteFunc(s.deaths, func(d death) bool { return now.Sub(d.at) > quarantineMemory })
	for _, d := range s.deaths {
		// Calls that were in progress together say no more than one: a network that
		// breaks ends all of them.
		if !c.began.After(d.at) || d.searcher == c.searcher && now.Sub(d.at) < quarantineOnce {
			return
		}
	}
	s.deaths = append(s.deaths, death{c.searcher, c.query.text, now, len(last.queries) == 1})
	points := 0
	for _, d := range s.deaths {
		if d.alone {
			points += alonePoints
		} else {
			points += sharedPoints
		}
	}
	if points < quarantinePoints {
		return
	}
	s.until = now.Add(quarantineHold)
	q.log.ErrorContext(ctx, "query in quarantine", "deaths", len(s.deaths), "shape", c.query.shape, "last", c.searcher, "until", s.until)
}

// crashed returns the crash that ended a call, with all queries that ran on the searcher.
func (q *quarantine) crashed(c *call, now time.Time) *crash {
	last := q.crashes[c.searcher]
	if last == nil || now.Sub(last.at) >= quarantineOnce {
		maps.DeleteFunc(q.crashes, func(_ string, old *crash) bool { return now.Sub(old.at) >= quarantineOnce })
		last = &crash{at: now, queries: make(map[family]bool)}
		for f := range q.running[c.searcher] {
			last.queries[f] = true
		}
		q.crashes[c.searcher] = last
	}
	last.queries[c.query.family()] = true
	return last
}

func (q *quarantine) suspect(f family, now time.Time) *suspect {
	if s := q.suspects[f]; s != nil {
		return s
	}
	if len(q.suspects) >= maxSuspects {
		q.forget(now)
	}
	s := &suspect{}
	q.suspects[f] = s
	return s
}

// forget makes room. It drops expired suspects first, then any.
func (q *quarantine) forget(now time.Time) {
	for f, s := range q.suspects {
		if (len(s.deaths) == 0 || now.Sub(s.deaths[len(s.deaths)-1].at) > quarantineMemory) && now.After(s.until) {
			delete(q.suspects, f)
		}
	}
	for f := range q.suspects {
		if len(q.suspects) < maxSuspects {
			return
		}
		delete(q.suspects, f)
	}
}
