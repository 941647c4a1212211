// Package search answers queries. A query is admitted, parsed and planned, fanned out to
// the searchers of its shards, merged, and accounted for:
//
//	Search → admit → plan (parse, roots, prune) → fanOut → merge → account → fill
//
// It also answers List and GetFile, which take the same way.
package search

import (
	"cmp"
	"context"
	"log/slog"
	"math"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"

	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// Layouts provides the layout from which a request must be answered.
type Layouts interface {
	// At waits until ctx ends for roots that meet the wanted consistency and are at
	// least of the given revision. The layout has only the repos that the caller may
	// see. The error is a status.
	//
	// If the caller names a revision itself, At waits like Reach.
	//
	// If the time is over before such roots come, the error is DEADLINE_EXCEEDED, and At also returns the newest layout there is,
	// as of revision 0, or nil if that has no shards: from it nothing may be answered but what was not reached.
	At(ctx context.Context, want *searchv1.Consistency, atLeast int64) (*Layout, error)
	// Reach waits until ctx ends for the revision that the caller names itself, and fails
	// at once if there is no such revision. Queries call it before admission, so that
	// waiting for a revision takes no slot from others. The error is a status.
	Reach(ctx context.Context, want *searchv1.Consistency, atLeast int64) error
}

// Searchers finds searchers and connects to them.
type Searchers interface {
	// Candidates are the searchers to ask for a shard, best first.
	Candidates(searchapi.Digest) []fanout.Target
	// Client is a client of the searcher at an address. It does not wait for a connection.
	Client(address string) (searchv1.SearchServiceClient, error)
}

// Limits bound what callers may ask for; zero is no limit. Requests for more than
// MaxFiles or MaxBytes are lowered, and the statistics name the lowered options.
type Limits struct {
	MaxFiles uint32
	MaxBytes uint64
	// QueryBytes bounds the memory of the files or repos that searchers send for one
	// query, in bytes. The answer leaves out what does not fit, and says so.
	QueryBytes int64
}

// Config configures a Service.
type Config struct {
	Budget Budget
	Limits Limits
	Policy fanout.Policy
	// Expressions is the memory for the expressions of all queries; nil is the default.
	Expressions *regex.Memory
	// MaxQueries bounds the queries that are answered at once.
	MaxQueries int
	// CallerShare is the most of them that may be of one caller, as a share; 0: all.
	CallerShare float64
	// CallerProcessors is how many processors of searchers one caller may use on average,
	// each of them to decode processorBytes of content a second; 0: any number.
	CallerProcessors float64
	// Live overrides CallerShare and CallerProcessors; nil: nothing does.
	Live *limits.Live
	// Status is how far the indexing of a registered repo is, or an error; nil: that is not known.
	Status func(ctx context.Context, repo string) (*ingestv1.RepoStatus, error)
	// Names are the names of the first registered repos, and whether there are more; nil: they are not known.
	Names func(ctx context.Context) (names []string, more bool, err error)
	// Peers is what the router knows of its searchers. The caller forgets those that left.
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
	usage      *usage
	// expressions is the memory for the expressions of repo: of all queries.
	expressions *regex.Memory
	// firstWindow is the constant of that name, except in tests.
	firstWindow int
	tracer      trace.Tracer
	metrics     *Metrics
}

// New makes a service.
func New(cfg Config, layouts Layouts, searchers Searchers, tracer trace.Tracer, metrics *Metrics, log *slog.Logger) *Service {
	return &Service{
		cfg: cfg, layouts: layouts, searchers: searchers, tracer: tracer, metrics: metrics,
		fanout:     fanout.Fanout{Policy: cfg.Policy, Peers: cfg.Peers, Candidates: searchers.Candidates},
		quarantine: newQuarantine(metrics, log),
		limiter:    newLimiter(cfg.MaxQueries, cmp.Or(cfg.CallerShare, 1), cfg.Live, metrics), usage: newUsage(cfg.CallerProcessors, cfg.Live, metrics),
		expressions: cmp.Or(cfg.Expressions, regex.NewProcessMemory()), firstWindow: firstWindow,
	}
}

// queryBytes is the memory limit of a query in bytes.
func (l Limits) queryBytes() int64 { return cmp.Or(l.QueryBytes, math.MaxInt64) }

// bytes is the size limit of an answer whose caller asks for that many bytes, zero for
// the default.
func (l Limits) bytes(asked uint64) int {
	asked = cmp.Or(asked, searchapi.DefaultMaxBytes)
	if l.MaxBytes > 0 {
		asked = min(asked, l.MaxBytes)
	}
	return int(min(asked, searchapi.MaxBytes))
}

// refusePlan refuses a plan from a caller: plans pass between router and searcher only.
func refusePlan(p *searchv1.Plan) error {
	if p == nil {
		return nil
	}
	return searchapi.FieldError(codes.InvalidArgument, "plan", "only a router may send a plan, and only to a searcher")
}

// lower lowers the options to the server's limits, and returns the names of those that
// it lowered.
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
