// Package search serves searches: it plans which shards a query needs, asks
// searchers for them, merges what they find, and accounts for what is missing.
package search

import (
	"cmp"
	"context"
	"log/slog"
	"math"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// Layouts gives the layout of the roots that a request must be answered from.
type Layouts interface {
	// At waits, at most until ctx ends, for roots as recent as wanted and at
	// least of the revision given, less what the caller may not see. Its error is
	// a status.
	At(ctx context.Context, want *searchv1.Consistency, atLeast int64) (*Layout, error)
}

// Searchers knows the searchers and how to talk to them.
type Searchers interface {
	// Candidates are those to ask for a shard, best first.
	Candidates(searchapi.Digest) []fanout.Target
	// Client talks to the searcher at an address. It does not wait.
	Client(address string) (searchv1.SearchServiceClient, error)
}

// Limits are the most that this server grants, zero: as much as is asked for. What is
// asked beyond MaxFiles and MaxBytes is lowered to them, which the statistics say.
type Limits struct {
	MaxFiles uint32
	MaxBytes uint64
	// QueryBytes is how much memory the files or repos may take that searchers send for
	// one query. What has no room is left out, and the answer says so.
	QueryBytes int64
}

// Config is what a Service works by.
type Config struct {
	Budget Budget
	Limits Limits
	Policy fanout.Policy
	// MaxQueries is the most that are answered at once.
	MaxQueries int
	// Peers is what is learned of the searchers; the caller forgets those that left.
	Peers *fanout.Peers
}

// Service is the search service of a router. It is safe for concurrent use.
type Service struct {
	searchv1.UnimplementedSearchServiceServer
	cfg       Config
	layouts   Layouts
	searchers Searchers
	fanout    fanout.Fanout
	// quarantine is shared by all sessions.
	quarantine *quarantine
	limiter    *limiter
	tracer     trace.Tracer
	metrics    *Metrics
}

// New makes a service.
func New(cfg Config, layouts Layouts, searchers Searchers, tracer trace.Tracer, metrics *Metrics, log *slog.Logger) *Service {
	return &Service{
		cfg: cfg, layouts: layouts, searchers: searchers, tracer: tracer, metrics: metrics,
		fanout:     fanout.Fanout{Policy: cfg.Policy, Peers: cfg.Peers, Candidates: searchers.Candidates},
		quarantine: newQuarantine(metrics, log),
		limiter:    newLimiter(cfg.MaxQueries, metrics),
	}
}

// queryBytes is the limit of memory.
func (l Limits) queryBytes() int64 { return cmp.Or(l.QueryBytes, math.MaxInt64) }

// bytes is the limit of an answer whose caller asks for so much, zero: by default.
func (l Limits) bytes(asked uint64) int {
	asked = cmp.Or(asked, searchapi.DefaultMaxBytes)
	if l.MaxBytes > 0 {
		asked = min(asked, l.MaxBytes)
	}
	return int(min(asked, searchapi.MaxBytes))
}

// refusePlan holds plans to where they belong: between router and searcher.
func refusePlan(p *searchv1.Plan) error {
	if p == nil {
		return nil
	}
	return searchapi.FieldError(codes.InvalidArgument, "plan", "only a router may send a plan, and only to a searcher")
}

// lower brings the options to the server's own limits and tells which were lowered.
func (l Limits) lower(o *searchv1.SearchOptions) (clamped []string) {
	if l.MaxFiles > 0 && o.MaxFiles > l.MaxFiles {
		o.MaxFiles = l.MaxFiles
		clamped = append(clamped, "options.max_files")
	}
	if l.MaxBytes > 0 && o.MaxBytes > l.MaxBytes {
		o.MaxBytes = l.MaxBytes
		clamped = append(clamped, "options.max_bytes")
	}
	return clamped
}
