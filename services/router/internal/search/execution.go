package search

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/coverage"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// inquiry is one query on its way: what is asked, of which shards, and what
// became of them. All its rounds are on one layout, so that a repo answers from
// one generation.
type inquiry struct {
	service *Service
	turn    *turn
	text    string
	version uint32
	// tree has every type:repo resolved after begin.
	tree     query.Q
	resolved []*searchv1.RepoNames
	layout   *Layout
	account  *coverage.Account
	// wanted are the shards that the tree can match in.
	wanted []searchapi.Shard
	// answered says that some searcher took part since begin.
	answered bool
}

// begin parses, waits for roots and plans; it asks searchers where the query
// has a type:repo.
func (s *Service) begin(ctx context.Context, turn *turn, text string, version uint32, want *searchv1.Consistency, atLeast int64) (*inquiry, error) {
	ctx, span := s.tracer.Start(ctx, "plan")
	defer span.End()
	tree, err := searchapi.Parse(text, version)
	if err != nil {
		return nil, err
	}
	if err := s.quarantine.check(fingerprintOf("query", text, version)); err != nil {
		return nil, err
	}
	turn.explain.ends("parse")
	layout, err := s.layouts.At(ctx, want, atLeast)
	if err != nil {
		return nil, err
	}
	turn.explain.ends("roots")
	q := &inquiry{
		service: s, turn: turn, text: text, version: version, layout: layout,
		account: coverage.Open(len(layout.All())),
	}
	if q.tree, err = query.ResolveRepos(tree, func(child query.Q) ([]string, error) { return q.resolve(ctx, child) }); err != nil {
		return nil, callError(ctx, "resolve type:repo", err)
	}
	q.answered = false
	if q.wanted, err = q.selectShards(q.tree); err != nil {
		return nil, err
	}
	turn.explain.ends("plan")
	span.SetAttributes(attribute.Int64("trawl.revision", layout.Revision), attribute.Int("trawl.shards", len(q.wanted)))
	return q, nil
}

func (q *inquiry) fingerprint() fingerprint { return fingerprintOf("query", q.text, q.version) }

// selectShards begins a round of the account: the shards that it does not want in
// any are pruned.
func (q *inquiry) selectShards(tree query.Q) ([]searchapi.Shard, error) {
	wanted, err := q.layout.Select(tree)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	q.account.Want(wanted)
	return wanted, nil
}

// resolve finds the repos of the next type:repo. A shard that could not be
// asked is missed in the account, whatever becomes of it later.
func (q *inquiry) resolve(ctx context.Context, child query.Q) ([]string, error) {
	wanted, err := q.selectShards(child)
	if err != nil {
		return nil, err
	}
	names := q.names(ctx, wanted)
	slices.Sort(names)
	names = slices.Compact(names)
	q.resolved = append(q.resolved, &searchv1.RepoNames{Names: names})
	return names, nil
}

// plan is what a searcher is sent. Of the repos that a type:repo stands for it
// gets those in its shards: others make no difference there.
func (q *inquiry) plan(text string, shards []searchapi.Shard, after *shard.Key) *searchv1.Plan {
	p := &searchv1.Plan{Revision: q.layout.Revision, Shards: make([]*searchv1.PlannedShard, len(shards))}
	for i := range shards {
		p.Shards[i] = shards[i].Planned()
	}
	if after != nil {
		p.After = searchapi.KeyToProto(*after)
	}
	if text != q.text || len(q.resolved) == 0 {
		return p
	}
	here := make(map[string]bool)
	for i := range shards {
		for _, name := range shards[i].Repos {
			here[name] = true
		}
	}
	for _, r := range q.resolved {
		p.Resolved = append(p.Resolved, &searchv1.RepoNames{Names: within(r.Names, here)})
	}
	return p
}

func within(names []string, set map[string]bool) (kept []string) {
	for _, n := range names {
		if set[n] {
			kept = append(kept, n)
		}
	}
	return kept
}

// ask scatters one round of calls over the searchers, if it needs any.
func ask[R any](ctx context.Context, q *inquiry, name string, shards []searchapi.Shard, call callSearcher[R], accept func(R)) {
	if len(shards) == 0 {
		return
	}
	ctx, span := q.service.tracer.Start(ctx, name)
	defer span.End()
	span.SetAttributes(attribute.Int("trawl.shards", len(shards)))
	f := q.service.fanout
	f.TypeRepos = len(q.resolved)
	fanout.Scatter(ctx, f, shards, q.account, calling(q.service, q.turn, q.fingerprint(), call), func(r R) {
		q.answered = true
		accept(r)
	})
}

// callSearcher asks a searcher for some shards.
type callSearcher[R any] func(context.Context, searchv1.SearchServiceClient, []searchapi.Shard, *hearing) (fanout.Reply[R], error)

// calling finds the client of a searcher for a call, unless the query is in
// quarantine by now, and sees whether the searcher survives it.
func calling[R any](s *Service, turn *turn, query fingerprint, call callSearcher[R]) fanout.Call[R] {
	return func(ctx context.Context, t fanout.Target, shards []searchapi.Shard) (fanout.Reply[R], error) {
		if err := s.quarantine.check(query); err != nil {
			return fanout.Reply[R]{}, fmt.Errorf("%w: %w", fanout.ErrNotAsked, err)
		}
		client, err := s.searchers.Client(t.Address)
		if err != nil {
			return fanout.Reply[R]{}, err
		}
		s.metrics.calls.Inc()
		h := hearing{searcher: t.ID}
		reply, err := call(ctx, client, shards, &h)
		if h.cutOff(err) {
			s.quarantine.died(ctx, query, t.ID)
		}
		if searchapi.IsOverloaded(err) {
			turn.refused.Store(true)
		}
		if h.disconnected(err) {
			err = fmt.Errorf("%w: %w", fanout.ErrDisconnected, err)
		}
		return reply, err
	}
}

// callError is the status of an error on the way; what has one keeps it.
func callError(ctx context.Context, what string, err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Errorf(codes.Internal, "%s: %v", what, err)
}

// close ends the inquiry: an error when the caller is gone or must have a
// complete answer, or when every searcher refused. What one of them found in
// a part of a shard, until the time was over, is an answer.
func (q *inquiry) close(ctx context.Context, requireComplete bool) (*searchv1.Coverage, error) {
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, status.FromContextError(err).Err()
	}
	c := q.account.Coverage()
	q.service.metrics.count(c)
	if err := q.turn.judge(c); err != nil && (requireComplete || !q.answered) {
		return nil, err
	}
	if requireComplete && !c.Complete {
		return nil, searchapi.Incomplete(c)
	}
	return c, nil
}
