package router_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// giveUp lets an indexer fail for good at the newest request of each repo.
func (r *running) giveUp(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		put, err := r.ingest.PutRepo(t.Context(), &ingestv1.PutRepoRequest{Url: "https://github.com/a/" + name, Name: name})
		must(t, err)
		// On a slow machine no indexer may have been woken. Twice makes one job.
		must(t, r.jobs.Publish(t.Context(), queue.Job{Repo: name, Epoch: put.Epoch}))
	}
	r.work(t, len(names), func(d *queue.Delivery) error {
		must(t, r.store.PutStatus(t.Context(), d.Repo, &catalogv1.Status{
			State: ingestv1.State_STATE_FAILED, Reason: "no such branch", Epoch: d.Epoch, UpdatedAt: timestamppb.Now(),
		}, nil))
		return queue.Permanent(fmt.Errorf("%s: no such branch", d.Repo))
	})
}

// work does n jobs.
func (r *running) work(t *testing.T, n int, do func(*queue.Delivery) error) (jobs []queue.Job) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, r.jobs.Consume(ctx, 1, func(_ context.Context, d *queue.Delivery) error {
		jobs = append(jobs, d.Job)
		if len(jobs) == n {
			cancel()
		}
		return do(d)
	}))
	if len(jobs) != n {
		t.Fatalf("%d jobs came, want %d", len(jobs), n)
	}
	return jobs
}

func (r *running) letters(t *testing.T, page uint32) (names []string) {
	t.Helper()
	for req := (&ingestv1.ListDeadLettersRequest{PageSize: page}); ; {
		resp, err := r.ingest.ListDeadLetters(t.Context(), req)
		must(t, err)
		for _, l := range resp.Letters {
			names = append(names, l.Name)
		}
		if req.After = resp.NextAfter; req.After == 0 {
			return names
		}
		if len(resp.Letters) != int(page) {
			t.Errorf("page of %d letters, want %d", len(resp.Letters), page)
		}
	}
}

func TestDeadLetters(t *testing.T) {
	r := start(t)
	r.giveUp(t, "c", "a", "b")
	for _, page := range []uint32{0, 1, 2, 3} {
		if names := r.letters(t, page); !slices.Equal(names, []string{"c", "a", "b"}) {
			t.Errorf("pages of %d: %v", page, names)
		}
	}
	got, err := r.ingest.GetDeadLetter(t.Context(), &ingestv1.GetDeadLetterRequest{Name: "a"})
	must(t, err)
	if l := got.Letter; l.Name != "a" || l.Epoch != 1 || l.Attempts != 1 || l.Reason != "a: no such branch" || time.Since(l.GivenUpAt.AsTime()).Abs() > time.Hour {
		t.Errorf("letter %v", l)
	}

	// A retry enqueues the same request at once, and clears the failure.
	resp, err := r.ingest.RetryDeadLetter(t.Context(), &ingestv1.RetryDeadLetterRequest{Name: "a"})
	must(t, err)
	status, err := r.store.RepoStatus(t.Context(), "a")
	must(t, err)
	if resp.Epoch != 1 || status.State != ingestv1.State_STATE_QUEUED || !slices.Equal(r.letters(t, 0), []string{"c", "b"}) {
		t.Errorf("after a retry: request %d, %v, letters %v", resp.Epoch, status, r.letters(t, 0))
	}
	if jobs := r.work(t, 1, func(*queue.Delivery) error { return nil }); jobs[0].Repo != "a" || jobs[0].Epoch != 1 {
		t.Errorf("tried again: %+v", jobs)
	}

	_, err = r.ingest.RetryDeadLetter(t.Context(), &ingestv1.RetryDeadLetterRequest{Name: "a"})
	wantField(t, err, codes.NotFound, "name")
	_, err = r.ingest.GetDeadLetter(t.Context(), &ingestv1.GetDeadLetterRequest{Name: "never"})
	wantField(t, err, codes.NotFound, "name")
	_, err = r.ingest.RetryDeadLetter(t.Context(), &ingestv1.RetryDeadLetterRequest{})
	wantField(t, err, codes.InvalidArgument, "name")
}

// TestDeadLettersOfDeletedRepos: a deletion removes the letter, and a retry of a leftover letter
// makes no job.
func TestDeadLettersOfDeletedRepos(t *testing.T) {
	r := start(t)
	r.giveUp(t, "a", "b")
	_, err := r.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: "a"})
	must(t, err)
	if names := r.letters(t, 0); !slices.Equal(names, []string{"b"}) {
		t.Errorf("letters %v", names)
	}
	_, err = r.store.DeleteRepo(t.Context(), "b") // as by a router whose queue is away
	must(t, err)
	_, err = r.ingest.RetryDeadLetter(t.Context(), &ingestv1.RetryDeadLetterRequest{Name: "b"})
	wantField(t, err, codes.NotFound, "name")
	if names := r.letters(t, 0); len(names) > 0 {
		t.Errorf("letters %v", names)
	}
	if _, err := r.store.GetStatus(t.Context(), "b"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("a retry brought the status of a deleted repo back: %v", err)
	}
}
