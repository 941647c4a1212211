package ingest_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/router/internal/ingest"
)

// TestStaleRepos: the pages hold, in order of the lag, those that a caller sees and
// that are behind for long enough.
func TestStaleRepos(t *testing.T) {
	store := catalog.New(etcdtest.New().Client(nil), "")
	s := ingest.New(store, letters{t: t}, ingest.Config{PerMinute: 1, Admit: everybody}, space(store), nil, slog.New(slog.DiscardHandler))
	start := time.Now().Add(-24 * time.Hour)
	type repo struct {
		name  string
		since time.Time
	}
	var behind []repo
	random := testrun.Rand(t)
	for i := range 60 {
		r := repo{fmt.Sprintf("%s/%02d", []string{"mine", "other"}[i%2], i), start.Add(time.Duration(random.IntN(20)) * time.Minute)}
		if _, _, err := store.PutDesired(t.Context(), &catalogv1.Desired{Name: r.name, RequestedAt: timestamppb.New(r.since)}); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			publish(t, store, r.name)
			continue
		}
		behind = append(behind, r)
	}
	slices.SortFunc(behind, func(a, b repo) int {
		if c := a.since.Compare(b.since); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	for _, lag := range []time.Duration{0, 24*time.Hour - 10*time.Minute} {
		for _, size := range []uint32{1, 7, 0} {
			for _, prefix := range []string{"", "mine/1", "none"} {
				var want, got []string
				for _, r := range behind {
					if strings.HasPrefix(r.name, prefix) && strings.HasPrefix(r.name, "mine/") && time.Since(r.since) >= lag {
						want = append(want, r.name)
					}
				}
				ctx := access.With(t.Context(), mine{access.Anyone})
				for req := (&ingestv1.ListStaleReposRequest{Prefix: prefix, PageSize: size, OlderThan: durationpb.New(lag)}); ; {
					resp, err := s.ListStaleRepos(ctx, req)
					if err != nil || size > 0 && len(resp.Repos) > int(size) {
						t.Fatalf("%d repos in a page of %d, %v", len(resp.GetRepos()), size, err)
					}
					for _, r := range resp.Repos {
						got = append(got, r.Name)
					}
					if req.After = resp.NextAfter; req.After == "" {
						break
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("behind for %v, prefix %q, pages of %d: %q, want %q", lag, prefix, size, got, want)
				}
			}
		}
	}
	if resp, err := s.ListStaleRepos(t.Context(), &ingestv1.ListStaleReposRequest{}); err != nil || len(resp.Repos) > 0 {
		t.Errorf("a call without a caller lists %v, %v", resp, err)
	}
	for _, bad := range []string{"x", "12", "12/", "99999999999999999999/a"} {
		if _, err := s.ListStaleRepos(t.Context(), &ingestv1.ListStaleReposRequest{After: bad}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("after %q: %v", bad, err)
		}
	}
}

func publish(t *testing.T, store *catalog.Store, name string) {
	t.Helper()
	lease, err := store.AcquireLease(t.Context(), name, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Publish(t.Context(), lease, nil, &catalogv1.Root{Repo: name, Generation: 1, Epoch: lease.Desired().GetEpoch()}); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestListingsAreAdmitted: calls that read all repos or jobs are refused before they read anything, and end
// their admission.
func TestListingsAreAdmitted(t *testing.T) {
	reads, entered, left, full := 0, 0, 0, false
	store := catalog.New(etcdtest.New().Client(func(ctx context.Context) error { reads++; return ctx.Err() }), "")
	admit := func(context.Context) (leave func(), err error) {
		if full {
			return nil, searchapi.Overloaded("full", time.Second)
		}
		entered++
		return func() { left++ }, nil
	}
	s := ingest.New(store, letters{t: t}, ingest.Config{PerMinute: 1, Admit: admit}, space(store), nil, slog.New(slog.DiscardHandler))
	ctx := access.With(t.Context(), access.Anyone)
	calls := []func() error{
		func() error { _, err := s.ListRepos(ctx, &ingestv1.ListReposRequest{}); return err },
		func() error { _, err := s.ListStaleRepos(ctx, &ingestv1.ListStaleReposRequest{}); return err },
		func() error { _, err := s.ListDeadLetters(ctx, &ingestv1.ListDeadLettersRequest{}); return err },
	}
	for i, call := range calls {
		if err := call(); err != nil || entered != i+1 || left != i+1 {
			t.Errorf("call %d: %v, admitted %d, ended %d", i, err, entered, left)
		}
	}
	full, reads = true, 0
	for i, call := range calls {
		if err := call(); !searchapi.IsOverloaded(err) || reads > 0 || left != len(calls) {
			t.Errorf("refused call %d: %v after %d reads", i, err, reads)
		}
	}
}
