// Package serve answers routers: it searches exactly the shards that a plan
// names and accounts for each of them.
package serve

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/processor"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// Shards gives the use of shards; *shardcache.Store does.
type Shards interface {
	Acquire(ctx context.Context, d searchapi.Digest) (*shardcache.Handle, error)
	Ready(d searchapi.Digest) bool
	Known(d searchapi.Digest) bool
}

// Placement knows how recent the roots are that this searcher acts on.
type Placement interface {
	WaitApplied(ctx context.Context, revision int64) error
}

// Config is what a Service works by.
type Config struct {
	// Parallel is how many shards are searched at once, over all queries; those
	// that wait for the bucket do not count.
	Parallel int
	// LoadWait is how long a query waits for shards that are being loaded.
	LoadWait time.Duration
	// MaxAnswer is the most bytes of an answer of GetFile; 0 means any number.
	MaxAnswer int
}

// Service is the search service of a searcher. It is safe for concurrent use.
type Service struct {
	searchv1.UnimplementedSearchServiceServer
	cfg       Config
	shards    Shards
	placement Placement
	// slots are the processors; a search that reads from the bucket has none.
	slots     *processor.Slots
	admission *admission
	tracer    trace.Tracer
	metrics   *Metrics
	log       *slog.Logger
}

// New makes a service.
func New(cfg Config, shards Shards, placement Placement, tracer trace.Tracer, metrics *Metrics, log *slog.Logger) *Service {
	return &Service{
		cfg: cfg, shards: shards, placement: placement, slots: processor.NewSlots(cfg.Parallel), admission: newAdmission(cfg.Parallel),
		tracer: tracer, metrics: metrics, log: log,
	}
}

// planned reads the shards of a plan. A request without one was not made by a
// router, and this searcher cannot know what its caller may see.
func planned(p *searchv1.Plan) ([]searchapi.Shard, error) {
	if p == nil {
		return nil, searchapi.FieldError(codes.FailedPrecondition, "plan", "searchers answer routers only; send this request to a router")
	}
	shards := make([]searchapi.Shard, len(p.Shards))
	for i, s := range p.Shards {
		var err error
		if shards[i], err = searchapi.ParsePlanned(s); err != nil {
			return nil, searchapi.FieldError(codes.InvalidArgument, "plan.shards", err.Error())
		}
	}
	return shards, nil
}

// parse reads the query and puts in what the plan says of its type:repo; next
// is the child of the first one that the plan says nothing of.
func parse(text string, version uint32, p *searchv1.Plan) (q, next query.Q, err error) {
	parsed, err := searchapi.Parse(text, version)
	if err != nil {
		return nil, nil, err
	}
	q, next, err = searchapi.Resolve(parsed, p.GetResolved())
	if err != nil {
		return nil, nil, searchapi.FieldError(codes.InvalidArgument, "plan.resolved", err.Error())
	}
	return q, next, nil
}

// prepare compiles what parse read, once for all shards.
func prepare(q query.Q) (*shard.Query, error) {
	ready, err := shard.Prepare(q)
	if err != nil {
		return nil, searchapi.QueryError("query", err)
	}
	return ready, nil
}

// The part of a call's time that is kept for answering: a twentieth, within
// these bounds, and never more than half.
const (
	leastReserve = 2 * time.Millisecond
	mostReserve  = 100 * time.Millisecond
	// withoutDeadline is the time of a call whose caller set none. Routers do.
	withoutDeadline = time.Minute
)

// The part of a search's time that is kept for showing what was found: a tenth, within these
// bounds, and never more than half.
const (
	leastShowing = 2 * time.Millisecond
	mostShowing  = 200 * time.Millisecond
)

// beforeShowing is the time of a search, which has a deadline, in which files are found.
func beforeShowing(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	return context.WithDeadline(ctx, deadline.Add(-min(max(left/10, leastShowing), mostShowing, left/2)))
}

func budget(ctx context.Context) (context.Context, context.CancelFunc) {
	now := time.Now()
	left := withoutDeadline
	if deadline, ok := ctx.Deadline(); ok {
		left = deadline.Sub(now)
	}
	return context.WithDeadline(ctx, now.Add(left-min(max(left/20, leastReserve), mostReserve, left/2)))
}
