package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// execution is the execution of one query. All its rounds use one layout, so that
// every repo answers from one generation. It is for one goroutine.
type execution struct {
	service     *Service
	ticket      *ticket
	asked       *question
	fingerprint fingerprint
	layout      *Layout
	tree        query.Q // resolved
	// resolved are the repos of each type:repo of the query, in the order in which
	// they were resolved.
	resolved []*searchv1.RepoNames
	// compiled are the expressions of repo:, while the query is planned.
	compiled expressions
	// wanted are the shards in which the query can match.
	wanted   []searchapi.Shard
	coverage *searchapi.Account
	// answered is set when the router has accepted a searcher's reply after plan.
	answered bool
}

// parse parses a query, and refuses one in quarantine.
func (s *Service) parse(asked *question) (query.Q, fingerprint, error) {
	tree, err := asked.parse()
	if err != nil {
		return nil, fingerprint{}, err
	}
	f := fingerprintOf(tree, asked.key(), asked.version)
	return tree, f, s.quarantine.check(f)
}

// plan parses the query, waits for roots that are recent enough, resolves each
// type:repo by asking searchers, and prunes the shards that cannot match. It is the one place
// that decides what becomes of a query whose time is over before: see unreached.
func (s *Service) plan(ctx context.Context, ticket *ticket, asked *question, want *searchv1.Consistency, atLeast int64) (*execution, error) {
	ctx, span := s.tracer.Start(ctx, "plan")
	defer span.End()
	tree, fingerprint, err := s.parse(asked)
	if err != nil {
		return nil, err
	}
	ticket.explain.ends("parse")
	layout, late := s.layouts.At(ctx, want, atLeast)
	if layout == nil {
		return nil, late
	}
	ticket.explain.ends("roots")
	e := &execution{
		service: s, ticket: ticket, asked: asked, fingerprint: fingerprint,
		layout: layout, tree: tree, coverage: searchapi.OpenAccount(layout.shards),
	}
	if late != nil {
		return e.unreached(status.Convert(late).Message()), nil
	}
	ctx, cancel := e.within(ctx)
	defer cancel()
	memory, err := s.memoryFor(tree)
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	e.compiled = newExpressions(memory)
	defer func() { e.compiled = expressions{} }()
	if tree, err = query.ResolveRepos(tree, func(child query.Q) ([]string, error) { return e.resolve(ctx, child) }); err == nil {
		e.answered, e.tree = false, tree
		e.wanted, err = e.prune(ctx, tree)
	}
	switch {
	case status.Code(err) == codes.DeadlineExceeded:
		return e.unreached(searchapi.NoTurn), nil
	case err != nil:
		return nil, callError(ctx, "resolve type:repo", err)
	}
	ticket.explain.ends("plan")
	span.SetAttributes(attribute.Int64("trawl.revision", layout.Revision), attribute.Int("trawl.shards", len(e.wanted)))
	return e, nil
}

// within is ctx, with the timeout of the query.
func (e *execution) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.asked.answer.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, e.ticket.start.Add(e.asked.answer.Timeout))
}

// unreached is the execution of a query whose time is over before the first searcher of its answer is asked: none is, and every
// shard counts as not reached. It is no error: the answer says that it is incomplete, and why.
func (e *execution) unreached(why string) *execution {
	all := e.layout.All()
	e.wanted, e.answered = nil, false
	e.coverage.Want(all)
	for i := range all {
		e.coverage.Uncovered(all[i].Digest, searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE, why)
	}
	return e
}

// prune starts a round of the account with the shards in which the tree can match.
// A shard that no round wants counts as pruned. The caller is charged for the time.
func (e *execution) prune(ctx context.Context, tree query.Q) ([]searchapi.Shard, error) {
	defer e.ticket.computed(time.Now())
	wanted, err := e.layout.selectWith(ctx, tree, e.compiled)
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	e.coverage.Want(wanted)
	return wanted, nil
}

// resolve finds the repos of the next type:repo. A shard that could not be
// searched for it stays uncovered in the account, even if a later round searches it.
func (e *execution) resolve(ctx context.Context, child query.Q) ([]string, error) {
	wanted, err := e.prune(ctx, child)
	if err != nil {
		return nil, err
	}
	names := e.listNames(ctx, wanted)
	slices.Sort(names)
	names = slices.Compact(names)
	e.resolved = append(e.resolved, &searchv1.RepoNames{Names: names})
	return names, e.checkResolved()
}

// nameBytes estimates the memory that the name of a resolved repo takes besides its text.
const nameBytes = 100

// checkResolved bounds the names to which all type:repo of the query resolve. A single
// type:repo has at most the names of all repos. Several together have at most what fits
// the memory of a query.
func (e *execution) checkResolved() error {
	n, bytes := 0, int64(0)
	for _, r := range e.resolved {
		n += len(r.Names)
		for _, name := range r.Names {
			bytes += int64(len(name)) + nameBytes
		}
	}
	if most := e.service.cfg.Limits.queryBytes(); n > e.layout.repos && bytes > most {
		return searchapi.FieldError(codes.InvalidArgument, "query", fmt.Sprintf(
			"the type:repo of the query stand for %d repos, which take %d bytes; at most %d: narrow them, or use fewer", n, bytes, most))
	}
	return nil
}

// expressionBytes estimates the memory of one instruction of a compiled expression.
// expressionRetry is the time after which a query that got no memory for its expressions
// should be retried.
const (
	expressionBytes = 1 << 10
	expressionRetry = time.Second
)

// memoryFor reserves the memory in which the expressions of repo: are compiled and run, some of it for states of
// their automata. The caller closes it. The error is a status.
func (s *Service) memoryFor(tree query.Q) (*regex.Memory, error) {
	need := expressionBytes * query.RepoInstructions(tree)
	memory := s.expressions.Within(2 * (need + regex.SearchBytes))
	if need > 0 && !memory.Reserve(need) {
		return nil, searchapi.Overloaded("other queries take the memory that the expressions of this one need", expressionRetry)
	}
	return memory, nil
}

// planFor is the plan for one searcher. Of the repos of a type:repo it names only
// those in the span and in the searcher's shards: others cannot change what it finds. Resolved is as of the
// beginning of the round: a call can outlive it.
func (e *execution) planFor(asked *question, resolved []*searchv1.RepoNames, shards []searchapi.Shard, after *search.Key, span *searchv1.RepoSpan) *searchv1.Plan {
	p := &searchv1.Plan{Revision: e.layout.Revision, Shards: make([]*searchv1.PlannedShard, len(shards)), Span: span}
	for i := range shards {
		p.Shards[i] = shards[i].Planned()
	}
	if asked.version >= ownFields {
		p.SyntaxRevision = query.Revision
	}
	if after != nil {
		p.After = searchapi.KeyToProto(*after)
	}
	if asked != e.asked || len(resolved) == 0 {
		return p
	}
	planned := e.layout.plannedIn(shards)
	for _, r := range resolved {
		here := &searchv1.RepoNames{}
		for _, name := range r.Names {
			if searchapi.Within(span, name) && planned(name) {
				here.Names = append(here.Names, name)
			}
		}
		p.Resolved = append(p.Resolved, here)
	}
	return p
}

// askSearcher sends one request to a searcher and reads its whole reply.
type askSearcher[R any] func(context.Context, searchv1.SearchServiceClient, []searchapi.Shard, *callResult) (fanout.Reply[R], error)

// fanOut asks searchers for the shards, in one round and under a span of that name. It passes each reply that it
// accepts to accept. A query that enters quarantine on the way is not sent to further searchers.
func fanOut[R any](ctx context.Context, e *execution, name string, shards []searchapi.Shard, ask askSearcher[R], accept func(R)) {
	if len(shards) == 0 {
		return
	}
	ctx, span := e.service.tracer.Start(ctx, name)
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(attribute.Int("trawl.shards", len(shards)))
	}
	s, f := e.service, e.service.fanout
	f.TypeRepos = len(e.resolved)
	if e.asked != nil { // a file has no query
		f.TypeRepos += e.asked.sets
	}
	call := func(ctx context.Context, target fanout.Target, shards []searchapi.Shard) (fanout.Reply[R], error) {
		if err := s.quarantine.check(e.fingerprint); err != nil {
			return fanout.Reply[R]{}, fmt.Errorf("%w: %w", fanout.ErrNotAsked, err)
		}
		client, err := s.searchers.Client(target.Address)
		if err != nil {
			return fanout.Reply[R]{}, err
		}
		s.metrics.calls.Inc()
		result := callResult{searcher: target.ID}
		asked, sent := s.quarantine.begin(e.fingerprint, target.ID), time.Now()
		reply, err := ask(ctx, client, shards, &result)
		asked.end(ctx, result.diedWorking(err), err == nil)
		e.ticket.charge(&result, time.Since(sent))
		if searchapi.IsOverloaded(err) {
			e.ticket.refused.Store(true)
		}
		if result.disconnected(err) {
			err = fmt.Errorf("%w: %w", fanout.ErrDisconnected, err)
		}
		return reply, err
	}
	e.answered = fanout.Scatter(ctx, f, shards, e.coverage, call, accept) || e.answered
}

// callError is the status of an error of a call. An error that has a status keeps it.
func callError(ctx context.Context, what string, err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return searchapi.Withhold(codes.Internal, what+" failed, and the router's log has the cause", err)
}

// account ends the execution with its coverage. It fails when the caller is gone,
// when the caller requires a complete answer and there is none, and when searchers
// refused the query and none answered. What a searcher found in a part of a shard
// before the deadline is an answer. The caller is charged for the names of the repos that are missing.
func (e *execution) account(requireComplete bool) (*searchv1.Coverage, error) {
	if err := e.ticket.whole.Err(); errors.Is(err, context.Canceled) {
		return nil, status.FromContextError(err).Err()
	}
	defer e.ticket.computed(time.Now())
	c := e.coverage.Coverage()
	e.service.metrics.count(c)
	e.layout.nameUncovered(c)
	if err := e.ticket.checkOverload(c); err != nil && (requireComplete || !e.answered) {
		return nil, err
	}
	if requireComplete && !c.Complete {
		return nil, searchapi.Incomplete(c)
	}
	return c, nil
}
