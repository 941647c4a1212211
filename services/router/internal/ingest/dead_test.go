package ingest_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/queue"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/router/internal/ingest"
)

// letters are the jobs of repos that were given up. Nothing may change them.
type letters struct {
	t     *testing.T
	repos []string
}

func (l letters) Publish(context.Context, queue.Job) error { l.t.Error("a job was made"); return nil }

func (l letters) Forget(context.Context, string) error { l.t.Error("a letter was removed"); return nil }

func (l letters) DeadLetter(_ context.Context, repo string) (queue.DeadLetter, error) {
	if slices.Contains(l.repos, repo) {
		return queue.DeadLetter{Job: queue.Job{Repo: repo}}, nil
	}
	return queue.DeadLetter{}, queue.ErrNoLetter
}

func (l letters) DeadLetters(_ context.Context, after uint64) iter.Seq2[queue.DeadLetter, error] {
	return func(yield func(queue.DeadLetter, error) bool) {
		for i, repo := range l.repos {
			letter, _ := l.DeadLetter(context.Background(), repo)
			if letter.Place = uint64(i + 1); letter.Place > after && !yield(letter, nil) {
				return
			}
		}
	}
}

// away is a queue whose server does not answer.
type away struct{ letters }

func (away) DeadLetter(context.Context, string) (queue.DeadLetter, error) {
	return queue.DeadLetter{}, fmt.Errorf("read dead letter: %w", context.DeadlineExceeded)
}

func (a away) DeadLetters(ctx context.Context, _ uint64) iter.Seq2[queue.DeadLetter, error] {
	return func(yield func(queue.DeadLetter, error) bool) { yield(a.DeadLetter(ctx, "")) }
}

// TestQueueIsAway: a caller with time left gets the error that the queue is away. A deadline error
// would not be worth a retry.
func TestQueueIsAway(t *testing.T) {
	s := ingest.New(nil, away{}, ingest.Config{PerMinute: 1, Admit: everybody}, space(nil), nil, slog.New(slog.DiscardHandler))
	for want, left := range map[codes.Code]time.Duration{codes.Unavailable: time.Hour, codes.DeadlineExceeded: 0} {
		ctx, cancel := context.WithTimeout(access.With(t.Context(), access.Anyone), left)
		defer cancel()
		_, listed := s.ListDeadLetters(ctx, &ingestv1.ListDeadLettersRequest{})
		_, got := s.GetDeadLetter(ctx, &ingestv1.GetDeadLetterRequest{Name: "a"})
		_, retried := s.RetryDeadLetter(ctx, &ingestv1.RetryDeadLetterRequest{Name: "a"})
		for _, err := range []error{listed, got, retried} {
			if s := status.Convert(err); s.Code() != want || !strings.Contains(s.Message(), "the queue") || strings.Contains(s.Message(), "context deadline") {
				t.Errorf("%v left: %v, want %v", left, s, want)
			}
		}
	}
}

// mine sees only the repos below mine/.
type mine struct{ access.Principal }

func (mine) Sees(repo string) bool { return strings.HasPrefix(repo, "mine/") }

// TestHiddenLettersAreNotThere: the answer for a hidden repo is the same whether it has a dead
// letter or not.
func TestHiddenLettersAreNotThere(t *testing.T) {
	jobs := letters{t, []string{"other/a", "mine/a", "other/b", "mine/b", "other/c"}}
	s := ingest.New(nil, jobs, ingest.Config{PerMinute: 1, Admit: everybody}, space(nil), nil, slog.New(slog.DiscardHandler))
	ctx := access.With(t.Context(), mine{access.Anyone})
	var names []string
	for req := (&ingestv1.ListDeadLettersRequest{PageSize: 1}); ; {
		resp, err := s.ListDeadLetters(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range resp.Letters {
			names = append(names, l.Name)
		}
		if req.After = resp.NextAfter; req.After == 0 {
			break
		}
	}
	if !slices.Equal(names, []string{"mine/a", "mine/b"}) {
		t.Errorf("listed %q", names)
	}
	if got, err := s.GetDeadLetter(ctx, &ingestv1.GetDeadLetterRequest{Name: "mine/a"}); err != nil || got.Letter.Name != "mine/a" {
		t.Errorf("one's own: %v, %v", got, err)
	}
	_, missing := s.GetDeadLetter(ctx, &ingestv1.GetDeadLetterRequest{Name: "mine/none"})
	_, got := s.GetDeadLetter(ctx, &ingestv1.GetDeadLetterRequest{Name: "other/a"})
	_, retried := s.RetryDeadLetter(ctx, &ingestv1.RetryDeadLetterRequest{Name: "other/a"})
	for _, err := range []error{got, retried} {
		if status.Code(err) != codes.NotFound || !proto.Equal(status.Convert(err).Proto(), status.Convert(missing).Proto()) {
			t.Errorf("a hidden one: %v, one that is not there: %v", err, missing)
		}
	}
	if resp, err := s.ListDeadLetters(t.Context(), &ingestv1.ListDeadLettersRequest{}); err != nil || len(resp.Letters) > 0 {
		t.Errorf("a call without a caller lists %v, %v", resp, err)
	}
}
