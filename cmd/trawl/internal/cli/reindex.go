package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// reindexing is one run of `trawl repos reindex`.
type reindexing struct {
	names     []string // empty: all
	before    time.Time
	perMinute float64
	dryRun    bool
}

func newReindex(p Process) *cobra.Command {
	var (
		all    bool
		before string
		r      reindexing
	)
	cmd := &cobra.Command{
		Use:   "reindex {REPO... | --all}",
		Short: "Index repositories again in full, even if nothing changed in them",
		Long: `Index repositories again in full, even if nothing changed in them: for example after an upgrade that adds data to
shards. The old index answers searches until the new one is there.

The command requests the repositories at a steady rate and does not wait for them. It skips those that were built
in full since --before, so an interrupted run continues where it was if it gets the time that it printed.`,
		Args: named(func(_ *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return errors.New("name the repositories, or pass --all for all of them")
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all repositories that your token allows")
	cmd.Flags().StringVar(&before, "before", "", "leave alone what was built in full at this time (RFC 3339) or later; empty: now")
	cmd.Flags().Float64Var(&r.perMinute, "rate", 60, "most repositories to ask for in a minute; 0: no limit")
	cmd.Flags().BoolVar(&r.dryRun, "dry-run", false, "print how many repositories would be indexed again, and change nothing")
	return calling(p, cmd, func(ctx context.Context, c client, names []string) error {
		r.names, r.before = names, time.Now()
		if before != "" {
			at, err := time.Parse(time.RFC3339, before)
			if err != nil {
				return usageError{fmt.Errorf("--before is %q: want a time such as %s", before, time.Now().UTC().Format(time.RFC3339))}
			}
			r.before = at
		}
		if r.perMinute < 0 {
			return usageError{errors.New("--rate is negative: want a number of repositories a minute, 0 for no limit")}
		}
		return r.run(ctx, c, p)
	})
}

// run requests one repo after another. The router skips repos that need no build, whatever has
// happened since they were listed.
func (r reindexing) run(ctx context.Context, c client, p Process) error {
	names, err := r.candidates(ctx, c)
	if err != nil {
		return err
	}
	if r.dryRun {
		_, err := fmt.Fprintf(p.Out, "%s would be indexed again\n", render.Count(uint64(len(names)), "repository", "repositories"))
		return err
	}
	limit := rate.NewLimiter(rate.Inf, 1)
	if r.perMinute > 0 {
		limit.SetLimit(rate.Limit(r.perMinute / time.Minute.Seconds()))
	}
	tally := render.NewTally(p.Err, isTerminal(p.Err), "repos")
	defer tally.Done()
	requested := uint64(0)
	for i, name := range names {
		tally.Update(uint64(i), uint64(len(names)))
		was, err := r.request(ctx, c, limit, name)
		if err != nil {
			tally.Done()
			fmt.Fprintf(p.Err, "%s asked for, %d are left; to go on: %s\n", areAsked(requested), len(names)-i, r.again())
			return err
		}
		if was {
			requested++
		}
	}
	tally.Update(uint64(len(names)), uint64(len(names)))
	tally.Done()
	_, err = fmt.Fprintf(p.Out, "%s asked for; trawl repos --stale lists those that wait\n", areAsked(requested))
	return err
}

// request asks for one repo when its turn has come, and reports whether that was needed. A repo
// that was deleted since it was listed needs nothing.
func (r reindexing) request(ctx context.Context, c client, limit *rate.Limiter, name string) (bool, error) {
	if err := limit.Wait(ctx); err != nil {
		return false, context.Cause(ctx)
	}
	resp, err := c.admin.ReindexRepo(ctx, &adminv1.ReindexRepoRequest{Name: name, UnlessBuiltSince: timestamppb.New(r.before)})
	if len(r.names) == 0 && status.Code(err) == codes.NotFound {
		return false, nil
	}
	return resp.GetRequested(), err
}

// candidates are the repos that were last built in full before the given time, and for which no
// full build is requested yet.
func (r reindexing) candidates(ctx context.Context, c client) (names []string, err error) {
	due := func(s *ingestv1.RepoStatus) {
		built := s.GetBuiltInFullAt()
		if !s.GetFullBuildPending() && (built == nil || built.AsTime().Before(r.before)) {
			names = append(names, s.GetName())
		}
	}
	for _, name := range r.names {
		resp, err := c.ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: name})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		due(resp.GetStatus())
	}
	if len(r.names) == 0 {
		err = c.eachRepo(ctx, "", due)
	}
	return names, err
}

// again is the command that continues this run.
func (r reindexing) again() string {
	which := "--all"
	if len(r.names) > 0 {
		which = strings.Join(r.names, " ")
	}
	return fmt.Sprintf("trawl repos reindex %s --rate %g --before %s", which, r.perMinute, r.before.UTC().Format(time.RFC3339Nano))
}

// areAsked is the number of repositories that are asked for, in words.
func areAsked(n uint64) string { return render.Count(n, "repository is", "repositories are") }
