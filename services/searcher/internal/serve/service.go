// Package serve answers routers: it searches exactly the shards that a plan
// names and accounts for each of them.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/processor"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// Shards opens shards; *shardcache.Store implements it.
type Shards interface {
	Acquire(ctx context.Context, d searchapi.Digest, until time.Time) (*shardcache.Handle, error)
	Ready(d searchapi.Digest) bool
	Known(d searchapi.Digest) bool
}

// Placement waits for roots; *shardcache.Follower implements it.
type Placement interface {
	WaitApplied(ctx context.Context, revision int64) error
}

// Config configures a Service.
type Config struct {
	// Parallel bounds the shards that are searched at once, over all queries. Searches
	// that wait for the bucket do not count.
	Parallel int
	// LoadWait is how long a query waits for shards that are being loaded.
	LoadWait time.Duration
	// MaxAnswer is the most bytes of an answer of GetFile; 0 means any number.
	MaxAnswer int
	// Expressions is the memory for the expressions of all queries; nil is the default.
	Expressions *regex.Memory
}

// Service is the search service of a searcher. It is safe for concurrent use.
type Service struct {
	searchv1.UnimplementedSearchServiceServer
	cfg       Config
	shards    Shards
	placement Placement
	// slots are the processors. A search holds none while it reads from the bucket.
	slots     *processor.Slots
	admission *admission
	// expressions is the memory for compiled queries and their automata.
	expressions *regex.Memory
	tracer      trace.Tracer
	metrics     *Metrics
	log         *slog.Logger
}

// New makes a service.
func New(cfg Config, shards Shards, placement Placement, tracer trace.Tracer, metrics *Metrics, log *slog.Logger) *Service {
	return &Service{
		cfg: cfg, expressions: cmp.Or(cfg.Expressions, regex.NewProcessMemory()), shards: shards, placement: placement, slots: processor.NewSlots(cfg.Parallel), admission: newAdmission(cfg.Parallel),
		tracer: tracer, metrics: metrics, log: log,
	}
}

// maxRepoSets bounds the memory of the repos of a plan, in bytes. A bit for each of 500 million repos fits. A plan's few bytes
// may name numbers that need far more.
const maxRepoSets = 64 << 20

// planned reads the shards of a plan. A request without a plan does not come from a
// router, and the searcher cannot know which repos its caller may see.
func planned(p *searchv1.Plan) ([]searchapi.Shard, error) {
	if p == nil {
		return nil, searchapi.FieldError(codes.FailedPrecondition, "plan", "searchers answer routers only; send this request to a router")
	}
	shards, sets := make([]searchapi.Shard, len(p.Shards)), 0
	for i, s := range p.Shards {
		var err error
		if shards[i], err = searchapi.ParsePlanned(s); err != nil {
			return nil, searchapi.FieldError(codes.InvalidArgument, "plan.shards", err.Error())
		}
		if sets += shards[i].Repos.Bytes(); sets > maxRepoSets {
			return nil, searchapi.FieldError(codes.InvalidArgument, "plan.shards", fmt.Sprintf("the numbers of its repos need more than %d MiB", maxRepoSets>>20))
		}
	}
	return shards, nil
}

// parse parses the query and replaces its type:repo by the names in the plan. If the plan
// has too few of them, next is the child of the first unresolved one.
func parse(text string, tree *searchv1.Query, version uint32, p *searchv1.Plan) (q, next query.Q, err error) {
	if p.GetSyntaxRevision() > query.Revision {
		return nil, nil, searchapi.FieldError(codes.FailedPrecondition, "plan.syntax_revision",
			"the router knows fields of the query language that this searcher does not: it is older than the router; upgrade the searchers")
	}
	parsed, err := searchapi.ParseAny(text, tree, version)
	if err != nil {
		return nil, nil, err
	}
	q, next, err = searchapi.Resolve(parsed, p.GetResolved())
	if err != nil {
		return nil, nil, searchapi.FieldError(codes.InvalidArgument, "plan.resolved", err.Error())
	}
	return q, next, nil
}

// memoryRetry is the time after which a query that got no memory for its expressions
// should be retried.
const memoryRetry = time.Second

// compile compiles the query of a call that is admitted, once for all shards. The caller
// closes it. The error is a status.
func (s *Service) compile(ctx context.Context, q query.Q) (*search.Query, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	ready, err := search.PrepareIn(s.expressions, q)
	switch {
	case errors.Is(err, search.ErrMemory):
		s.metrics.refused.Inc()
		return nil, searchapi.Overloaded(err.Error(), memoryRetry)
	case err != nil:
		return nil, searchapi.QueryError("query", err)
	}
	return ready, nil
}

// The reserve is the part of a call's time that is kept for sending the answer: a
// twentieth, within these bounds, and never more than half.
const (
	leastReserve = 2 * time.Millisecond
	mostReserve  = 100 * time.Millisecond
	// withoutDeadline is the time of a call without a deadline. Routers always set one.
	withoutDeadline = time.Minute
)

// The part of a search's time that is kept for showing files: a tenth, within these bounds,
// and never more than half.
const (
	leastShowing = 2 * time.Millisecond
	mostShowing  = 200 * time.Millisecond
)

// beforeShowing shortens the deadline of a search, which must have one, to the time for
// finding files.
func beforeShowing(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	return context.WithDeadline(ctx, deadline.Add(-min(max(left/10, leastShowing), mostShowing, left/2)))
}

// budget shortens the deadline of a call by the reserve.
func budget(ctx context.Context) (context.Context, context.CancelFunc) {
	now := time.Now()
	left := withoutDeadline
	if deadline, ok := ctx.Deadline(); ok {
		left = deadline.Sub(now)
	}
	return context.WithDeadline(ctx, now.Add(left-min(max(left/20, leastReserve), mostReserve, left/2)))
}
