package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// errSource is a source whose host could not be asked.
var errSource = errors.New("the source cannot be read")

func newSourcesStatus(p Process) *cobra.Command {
	cmd := &cobra.Command{Use: "status NAME", Short: "Show the progress of the repositories of a source", Args: named(cobra.ExactArgs(1))}
	watch := cmd.Flags().Bool("watch", false, "wait until all can be searched, and show the progress")
	return calling(p, cmd, func(ctx context.Context, c client, args []string) error {
		if *watch {
			return watchSources(ctx, c, p, args)
		}
		s, err := c.sources.GetSource(ctx, &ingestv1.GetSourceRequest{Name: args[0]})
		if err != nil {
			return err
		}
		if err := printSources(p.Out, []*ingestv1.SourceStatus{s.GetStatus()}); err != nil {
			return err
		}
		return printSourceProgress(p, s.GetRepos(), s.GetPublished(), s.GetFailed())
	})
}

func printSourceProgress(p Process, repos, published, failed uint64) error {
	_, err := fmt.Fprintf(p.Out, "%s: %d searchable as they were last asked for, %d failed, %d under way\n",
		render.Count(repos, "repository", "repositories"), published, failed, repos-published-failed)
	return err
}

// watchSources shows the progress of sources until each was looked at and all of their repositories
// are published or have failed. It ends with an error when a host cannot be asked, since that may
// last for an hour.
func watchSources(ctx context.Context, c client, p Process, names []string) error {
	tally := render.NewTally(p.Err, isTerminal(p.Err), "repositories")
	defer tally.Done()
	for {
		began := time.Now()
		var repos, published, failed uint64
		looked := true
		for _, name := range names {
			s, err := c.sources.GetSource(ctx, &ingestv1.GetSourceRequest{Name: name})
			if err != nil {
				return err
			}
			report := s.GetStatus().GetReport()
			fresh := report.GetLookedAt() != nil && !report.GetLookedAt().AsTime().Before(s.GetStatus().GetAppliedAt().AsTime())
			if fresh && report.GetFailures() > 0 {
				return fmt.Errorf("%w: %s: %s", errSource, name, render.Safe([]byte(report.GetReason())))
			}
			looked = looked && fresh
			repos, published, failed = repos+s.GetRepos(), published+s.GetPublished(), failed+s.GetFailed()
		}
		tally.Update(published+failed, repos)
		if looked && published+failed == repos {
			tally.Done()
			return printSourceProgress(p, repos, published, failed)
		}
		if !sleepSince(ctx, began) {
			return ctx.Err()
		}
	}
}
