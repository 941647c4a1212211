package fanout

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	notCovered  = searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED
	deadline    = searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE
	unreachable = searchv1.UncoveredReason_UNCOVERED_REASON_UNREACHABLE
	failedOther = searchv1.UncoveredReason_UNCOVERED_REASON_ERROR
)

// settle takes what a searcher said, and passes on what it did not search.
func (s *scatter[R]) settle(o outcome[R]) {
	s.calls--
	for _, t := range o.tasks {
		delete(s.inFlight, t)
	}
	if o.err != nil {
		s.callFailed(o)
		return
	}
	s.accept(o.reply.Value)
	uncovered := make(map[searchwire.Digest]*searchv1.UncoveredShard)
	for _, u := range o.reply.Coverage.GetUncovered() {
		uncovered[searchwire.Digest(u.Digest)] = u // CheckCoverage has seen its length
	}
	var next []*task
	for _, t := range o.tasks {
		u := uncovered[t.shard.Digest]
		switch {
		case u == nil:
			s.account.Searched(t.shard.Digest)
		case u.Reason == deadline:
			// Its results so far are accepted: another searcher would repeat them.
			s.account.Uncovered(t.shard.Digest, u.Reason, says(o.target, u.Message))
		default:
			t.fail(u.Reason, says(o.target, u.Message))
			next = append(next, t)
		}
	}
	s.dispatch(next)
}

// callFailed passes on all tasks of a call that gave nothing usable.
func (s *scatter[R]) callFailed(o outcome[R]) {
	if s.ctx.Err() != nil || timeIsOver(o.err) {
		for _, t := range o.tasks {
			s.account.Uncovered(t.shard.Digest, deadline, says(o.target, "did not answer before the deadline"))
		}
		return
	}
	reason := failedOther
	if status.Code(o.err) == codes.Unavailable {
		reason = unreachable
	}
	for _, t := range o.tasks {
		t.fail(reason, says(o.target, status.Convert(o.err).Message()))
	}
	s.dispatch(o.tasks)
}

// timeIsOver says whether a searcher ended the call because its copy of the
// deadline passed, which can be a moment before ours does: gRPC then resets the
// stream, which reads as a cancellation.
func timeIsOver(err error) bool {
	code := status.Code(err)
	return code == codes.DeadlineExceeded || code == codes.Canceled
}

// fail counts a candidate that failed. When others failed for better reasons
// than not covering the shard, theirs is told.
func (t *task) fail(reason searchv1.UncoveredReason, message string) {
	first := t.tried == 0
	t.tried++
	if reason == notCovered {
		t.loading = true
		if !first {
			return
		}
	}
	t.reason, t.message = reason, message
}

// abandon takes what arrived in the last moment and accounts for the rest.
func (s *scatter[R]) abandon() {
	for {
		select {
		case o := <-s.outcomes:
			s.settle(o)
			continue
		default:
		}
		break
	}
	for _, t := range s.waiting {
		s.account.Uncovered(t.shard.Digest, t.reason, t.message)
	}
	for t := range s.inFlight {
		target := t.candidates[t.tried]
		s.account.Uncovered(t.shard.Digest, deadline, says(target, "did not answer before the deadline"))
	}
}

func says(t Target, what string) string { return fmt.Sprintf("searcher %s: %s", t.ID, what) }
