package serve

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/stack"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

const (
	corrupt     = searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT
	notCovered  = searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED
	deadline    = searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE
	otherReason = searchv1.UncoveredReason_UNCOVERED_REASON_ERROR
)

// visit works on one shard, with the overlays of its repos, which it may use only until it returns. It must keep results
// only if it returns no error. Incomplete says why the search stopped early; the results
// found before that are valid.
type visit func(ctx context.Context, h *shardcache.Handle, planned searchapi.Shard, overlays map[int]search.Overlay) (incomplete, err error)

// visits are what a call does with its shards.
type visits struct {
	// span is the name of one visit in traces.
	span string
	// revision is that of the roots by which the call was planned.
	revision int64
	shards   []searchapi.Shard
	visit    visit
	// then is called after each visit, when its processor is free again. It may be nil.
	then func()
}

// admit admits a call for that many shards and counts a refused one. The caller must call
// end. The error is the status of a refused call.
func (s *Service) admit(ctx context.Context, shards int) (*admitted, error) {
	call, err := s.admission.admit(ctx, shards)
	if err != nil {
		s.metrics.refused.Inc()
	}
	return call, err
}

// each visits the shards of a call, several at a time, and accounts for all of them. It
// returns when all visits have ended, which is soon after ctx ends.
func (s *Service) each(ctx context.Context, call *admitted, v visits) *searchapi.Account {
	account := searchapi.NewAccount(v.shards)
	loaded := time.Now().Add(s.cfg.LoadWait)
	order := s.readyFirst(v.shards)
	var mu sync.Mutex
	s.spread(len(order), func(i int) {
		if ctx.Err() != nil {
			return
		}
		reason, err := s.searchShard(ctx, call, v, order[i], loaded)
		call.done()
		mu.Lock()
		mark(account, order[i].Digest, reason, err)
		mu.Unlock()
		if v.then != nil {
			v.then()
		}
	})
	return account
}

// spread calls do for the numbers below n, as many at a time as there are processors.
func (s *Service) spread(n int, do func(i int)) {
	var turn atomic.Int64
	work := func() {
		for i := turn.Add(1) - 1; int(i) < n; i = turn.Add(1) - 1 {
			do(int(i))
		}
	}
	var workers sync.WaitGroup
	for range min(n, s.slots.Count()) - 1 {
		workers.Go(func() {
			stack.Grow()
			work()
		})
	}
	work()
	workers.Wait()
}

// readyFirst puts the shards that are open before those that are still being loaded, and these before those that the store knows
// nothing of.
func (s *Service) readyFirst(shards []searchapi.Shard) []searchapi.Shard {
	var ready, loading, unknown []searchapi.Shard
	for _, sh := range shards {
		switch {
		case s.shards.Ready(sh.Digest):
			ready = append(ready, sh)
		case s.shards.Known(sh.Digest):
			loading = append(loading, sh)
		default:
			unknown = append(unknown, sh)
		}
	}
	return slices.Concat(ready, loading, unknown)
}

// errInPart is why a shard is not covered whose search stopped early.
var errInPart = errors.New("searched in part")

func mark(a *searchapi.Account, d searchapi.Digest, reason searchv1.UncoveredReason, err error) {
	switch {
	case err == nil:
		a.Searched(d)
	case errors.Is(err, errInPart):
		a.InPart(d, err.Error())
	default:
		a.Uncovered(d, reason, err.Error())
	}
}

// searchShard opens a shard, for which it waits until then, takes a processor, and visits the
// shard. If the store knows nothing of the shard, the router may have read newer roots: these are waited for first.
// With an error it returns the reason why the shard is not covered.
func (s *Service) searchShard(ctx context.Context, call *admitted, v visits, planned searchapi.Shard, until time.Time) (reason searchv1.UncoveredReason, err error) {
	ctx, span := s.startSpan(ctx, v.span, planned)
	defer func() { endSpan(span, reason, err) }()
	if !s.shards.Known(planned.Digest) {
		waiting, cancel := context.WithDeadline(ctx, until)
		_ = s.placement.WaitApplied(waiting, v.revision)
		cancel()
	}
	h, err := s.shards.Acquire(ctx, planned.Digest, until)
	if err != nil {
		return acquireReason(ctx, err), err
	}
	defer h.Release()
	ctx, slot, err := s.slots.Take(ctx)
	if err != nil {
		return deadline, err
	}
	defer func() { call.took(slot.Release()) }()
	return s.guarded(ctx, h, planned.Digest, func() (incomplete, err error) {
		overlays, err := planned.ShardOverlays()
		if err != nil {
			return nil, err
		}
		return v.visit(ctx, h, planned, overlays)
	})
}

func (s *Service) startSpan(ctx context.Context, name string, planned searchapi.Shard) (context.Context, trace.Span) {
	ctx, span := s.tracer.Start(ctx, name)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("trawl.shard", planned.Digest.String()))
	}
	return ctx, span
}

// endSpan records how the visit of a shard ended.
func endSpan(span trace.Span, reason searchv1.UncoveredReason, err error) {
	if err != nil && span.IsRecording() {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String("trawl.outcome", searchapi.ReasonName(reason)))
	}
	span.End()
}

func acquireReason(ctx context.Context, err error) searchv1.UncoveredReason {
	switch {
	case ctx.Err() != nil:
		return deadline
	case errors.Is(err, shardcache.ErrCorrupt):
		return corrupt
	case errors.Is(err, shardcache.ErrNotCovered):
		return notCovered
	}
	return otherReason
}

// guarded works on an open shard, and reports it as corrupt if its data is damaged. It keeps a
// panic in one shard from ending the process.
func (s *Service) guarded(ctx context.Context, h *shardcache.Handle, shard searchapi.Digest, do func() (incomplete, err error)) (reason searchv1.UncoveredReason, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.ErrorContext(ctx, "panic in the search of a shard", "shard", shard.String(), "panic", p, "stack", string(debug.Stack()))
			s.metrics.panics.Inc()
			reason, err = otherReason, errors.New("internal error in the search of this shard; it is in the searcher's log")
		}
	}()
	incomplete, err := do()
	switch {
	case shardcache.IsDamage(err):
		h.Corrupt(err)
		return corrupt, err
	case err != nil && ctx.Err() != nil:
		return deadline, err
	case err != nil:
		return otherReason, err
	case incomplete != nil:
		return deadline, fmt.Errorf("%w: %w", errInPart, incomplete)
	}
	return 0, nil
}
