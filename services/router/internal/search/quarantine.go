package search

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// quarantineDeaths is how many searchers must die while they run a query before it
	// is refused. The third death separates a query that kills from a node that fails
	// under innocent queries.
	quarantineDeaths = 3
	// quarantineMemory is how long a death counts. quarantineHold is how long a query
	// is refused.
	quarantineMemory = 10 * time.Minute
	quarantineHold   = 10 * time.Minute
	// quarantineOnce is the time within which broken connections to one searcher count
	// as one death: a searcher takes longer to restart.
	quarantineOnce = time.Second
	// maxSuspects bounds the queries that are remembered.
	maxSuspects = 1000
)

// fingerprint identifies a query, independently of its caller and its page.
type fingerprint [sha256.Size]byte

// fingerprintOf is the fingerprint of a text. Kind separates searches from files.
func fingerprintOf(kind, text string, version uint32) fingerprint {
	b := append([]byte(kind), 0)
	b = binary.LittleEndian.AppendUint32(b, version)
	return sha256.Sum256(append(b, text...))
}

// quarantine refuses queries that kill searchers. Retries would otherwise carry a query
// that no searcher survives from replica to replica. It is safe for concurrent use.
type quarantine struct {
	metrics *Metrics
	log     *slog.Logger

	mu       sync.Mutex
	suspects map[fingerprint]*suspect
}

// suspect is a query that ran on searchers when they died.
type suspect struct {
	deaths []death
	// until is the end of its quarantine; zero if it is not in quarantine.
	until time.Time
}

type death struct {
	searcher string
	at       time.Time
}

func newQuarantine(metrics *Metrics, log *slog.Logger) *quarantine {
	return &quarantine{metrics: metrics, log: log, suspects: make(map[fingerprint]*suspect)}
}

// check refuses a query in quarantine.
func (q *quarantine) check(f fingerprint) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.suspects[f]
	if s == nil || !time.Now().Before(s.until) {
		return nil
	}
	left := time.Until(s.until)
	refused := status.New(codes.FailedPrecondition, fmt.Sprintf(
		"%d searchers died while they worked on this query, so it is refused for the next %v: change the query, and look into the searchers' logs",
		len(s.deaths), left.Round(time.Second)))
	if detailed, err := refused.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(left)}); err == nil {
		refused = detailed
	}
	q.metrics.quarantined.Inc()
	return refused.Err()
}

// died records that a searcher died while it worked on the query.
func (q *quarantine) died(ctx context.Context, f fingerprint, searcher string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	s := q.suspect(f, now)
	s.deaths = slices.DeleteFunc(s.deaths, func(d death) bool { return now.Sub(d.at) > quarantineMemory })
	for _, d := range s.deaths {
		if d.searcher == searcher && now.Sub(d.at) < quarantineOnce {
			return
		}
	}
	s.deaths = append(s.deaths, death{searcher, now})
	if len(s.deaths) < quarantineDeaths {
		return
	}
	s.until = now.Add(quarantineHold)
	q.log.ErrorContext(ctx, "query in quarantine", "deaths", len(s.deaths), "last", searcher, "until", s.until)
}

func (q *quarantine) suspect(f fingerprint, now time.Time) *suspect {
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
		if now.Sub(s.deaths[len(s.deaths)-1].at) > quarantineMemory && now.After(s.until) {
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
