package serve

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/ranged"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

const (
	corrupt     = searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT
	notCovered  = searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED
	deadline    = searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE
	noSpace     = searchv1.UncoveredReason_UNCOVERED_REASON_NO_SPACE
	otherReason = searchv1.UncoveredReason_UNCOVERED_REASON_ERROR
)

// visit works on one shard, which it may use only until it returns. It must keep results
// only if it returns no error. Incomplete says why the search stopped early; the results
// found before that are valid.
type visit func(ctx context.Context, h *shardcache.Handle, planned searchapi.Shard) (incomplete, err error)

// admit admits a call for that many shards and counts a refused one. The caller must call
// end. The error is the status of a refused call.
func (s *Service) admit(ctx context.Context, shards int) (*admitted, error) {
	call, err := s.admission.admit(ctx, shards)
	if err != nil {
		s.metrics.refused.Inc()
	}
	return call, err
}

// all visits the shards of a call, and accounts for all of them.
func (s *Service) all(ctx context.Context, call *admitted, span string, p *searchv1.Plan, shards []searchapi.Shard, do visit, then func()) *searchapi.Account {
	account := searchapi.NewAccount(shards)
	s.each(ctx, call, span, p, shards, account, do, then)
	s.metrics.count(account.Coverage())
	return account
}

// each visits the shards, several at a time, and accounts for all of them. After each
// visit, when its processor is free again, it calls then, unless that is nil. It returns
// when all visits have ended, which is soon after ctx ends.
func (s *Service) each(ctx context.Context, call *admitted, span string, p *searchv1.Plan, shards []searchapi.Shard, account *searchapi.Account, do visit, then func()) {
	loadCtx, cancel := context.WithTimeout(ctx, s.cfg.LoadWait)
	defer cancel()
	if slices.ContainsFunc(shards, func(sh searchapi.Shard) bool { return !s.shards.Known(sh.Digest) }) {
		// The router may have read newer roots. If waiting does not help, the shard is not covered.
		_ = s.placement.WaitApplied(loadCtx, p.GetRevision())
	}
	order := s.readyFirst(shards)
	var mu sync.Mutex
	s.spread(len(order), func(i int) {
		if ctx.Err() != nil {
			return
		}
		shard := order[i]
		reason, err := s.traced(ctx, span, shard, func(ctx context.Context) (searchv1.UncoveredReason, error) {
			return s.one(ctx, loadCtx, call, shard, do)
		})
		call.done()
		mu.Lock()
		mark(account, shard.Digest, reason, err)
		mu.Unlock()
		if then != nil {
			then()
		}
	})
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
		workers.Go(work)
	}
	work() // on the call's own stack, which has grown already
	workers.Wait()
}

// readyFirst puts the shards that are open before those that are still being loaded.
func (s *Service) readyFirst(shards []searchapi.Shard) []searchapi.Shard {
	var now, later []searchapi.Shard
	for _, sh := range shards {
		if s.shards.Ready(sh.Digest) {
			now = append(now, sh)
		} else {
			later = append(later, sh)
		}
	}
	return append(now, later...)
}

func mark(a *searchapi.Account, d searchapi.Digest, reason searchv1.UncoveredReason, err error) {
	if err == nil {
		a.Searched(d)
		return
	}
	a.Uncovered(d, reason, err.Error())
}

// traced calls do in a span of its own, which records the outcome.
func (s *Service) traced(ctx context.Context, name string, planned searchapi.Shard, do func(context.Context) (searchv1.UncoveredReason, error)) (reason searchv1.UncoveredReason, err error) {
	ctx, span := s.tracer.Start(ctx, name)
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(attribute.String("trawl.shard", planned.Digest.String()))
	}
	if reason, err = do(ctx); err != nil {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String("trawl.outcome", searchapi.ReasonName(reason)))
	}
	return reason, err
}

// one opens a shard, waits for a processor, and visits the shard. With an error it returns
// the reason why the shard is not covered.
func (s *Service) one(ctx, loadCtx context.Context, call *admitted, planned searchapi.Shard, do visit) (reason searchv1.UncoveredReason, err error) {
	h, err := s.shards.Acquire(loadCtx, planned.Digest)
	if err != nil {
		return acquireReason(ctx, err), err
	}
	defer h.Release()
	ctx, slot, err := s.slots.Take(ctx)
	if err != nil {
		return deadline, err
	}
	defer func() { call.took(slot.Release()) }()
	return s.visit(ctx, h, planned, do)
}

// visit visits an open shard, and reports it as corrupt if its data is damaged.
func (s *Service) visit(ctx context.Context, h *shardcache.Handle, planned searchapi.Shard, do visit) (searchv1.UncoveredReason, error) {
	incomplete, err := s.guarded(ctx, h, planned, do)
	switch {
	case shardcache.IsDamage(err):
		h.Corrupt(err)
		return corrupt, err
	case err != nil && ctx.Err() != nil:
		return deadline, err
	case errors.Is(err, ranged.ErrNoRoom):
		return noSpace, err
	case err != nil:
		return otherReason, err
	case incomplete != nil:
		return deadline, incomplete
	}
	return 0, nil
}

func acquireReason(ctx context.Context, err error) searchv1.UncoveredReason {
	switch {
	case ctx.Err() != nil:
		return deadline
	case errors.Is(err, shardcache.ErrCorrupt):
		return corrupt
	case errors.Is(err, shardcache.ErrNotCovered):
		return notCovered
	case errors.Is(err, ranged.ErrNoRoom):
		return noSpace
	}
	return otherReason
}

// guarded keeps a panic in one shard from ending the process.
func (s *Service) guarded(ctx context.Context, h *shardcache.Handle, planned searchapi.Shard, do visit) (incomplete, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.ErrorContext(ctx, "panic in the search of a shard", "shard", planned.Digest.String(), "panic", p, "stack", string(debug.Stack()))
			s.metrics.panics.Inc()
			incomplete, err = nil, errors.New("internal error in the search of this shard; it is in the searcher's log")
		}
	}()
	return do(ctx, h, planned)
}
