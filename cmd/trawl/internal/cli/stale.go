package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// staleFlags choose the repositories that are behind.
type staleFlags struct {
	stale     bool
	olderThan time.Duration
	limit     uint32
}

func (f *staleFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.stale, "stale", false, "only those whose newest push or request is not searchable yet, the one behind for longest first")
	flags.DurationVar(&f.olderThan, "older-than", 0, "of those, the ones that are behind for longer")
	flags.Uint32Var(&f.limit, "limit", 100, "with --stale or --older-than, most of them to list; 0 means all")
}

// set reports whether the flags ask for stale repositories. A bound on the lag does so too.
func (f *staleFlags) set(flags *pflag.FlagSet) bool {
	return f.stale || flags.Changed("older-than")
}

// listStale prints page by page, so that any number of repositories takes little memory.
func listStale(ctx context.Context, c client, p Process, prefix string, f staleFlags, asJSON bool) error {
	const page = 1000
	req := &ingestv1.ListStaleReposRequest{Prefix: prefix, OlderThan: durationpb.New(f.olderThan)}
	for listed := uint32(0); f.limit == 0 || listed < f.limit; {
		if req.PageSize = page; f.limit > 0 {
			req.PageSize = min(page, f.limit-listed)
		}
		resp, err := c.ingest.ListStaleRepos(ctx, req)
		if err != nil {
			return err
		}
		if listed == 0 && len(resp.GetRepos()) == 0 && resp.GetNextAfter() == "" {
			return noneStale(ctx, c, p, prefix, f, asJSON)
		}
		if err := printStale(p.Out, resp.GetRepos(), asJSON, listed == 0); err != nil {
			return err
		}
		listed += uint32(len(resp.GetRepos()))
		if req.After = resp.GetNextAfter(); req.GetAfter() == "" {
			return nil
		}
	}
	if asJSON {
		return nil
	}
	_, err := fmt.Fprintf(p.Out, "there are more: --limit 0 lists them all\n")
	return err
}

// noneStale says that no repo is behind, and names the flags that limited which ones were looked at. A prefix that no repo has is an error.
func noneStale(ctx context.Context, c client, p Process, prefix string, f staleFlags, asJSON bool) error {
	text := "no repo"
	if prefix != "" {
		all, err := c.ingest.ListRepos(ctx, &ingestv1.ListReposRequest{Prefix: prefix, PageSize: 1})
		if err == nil && len(all.GetRepos()) == 0 {
			err = noneNamed(prefix)
		}
		if err != nil {
			return err
		}
		text += fmt.Sprintf(" whose name begins with %q", prefix)
	}
	text += " is behind"
	if f.olderThan > 0 {
		text += fmt.Sprintf(" for more than %v", f.olderThan)
	}
	if asJSON {
		return nil
	}
	_, err := fmt.Fprintln(p.Err, text)
	return err
}

func printStale(out io.Writer, repos []*ingestv1.RepoStatus, asJSON, head bool) error {
	if asJSON {
		return printMessages(out, "repositories", repos...)
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if head {
		fmt.Fprintln(tw, "NAME\tLAG\tSTATE\tBRANCH\tSEEN\tBY\tINDEXED\tREASON")
	}
	for _, r := range repos {
		f := r.GetFreshness()
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", render.Safe([]byte(r.GetName())), lag(r), searchapi.State(r.GetState()),
			dash(render.Safe([]byte(f.GetBranch()))), short(f.GetSeenCommit()), render.SeenBy(f.GetSeenBy()), short(f.GetIndexedCommit()),
			render.Safe([]byte(r.GetReason())))
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("printing the repositories: %w", err)
	}
	return nil
}

func newReposStatus(p Process) *cobra.Command {
	var (
		addr   routerAt
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "status REPO",
		Short: "Show the state of a repository, and how recent its index is",
		Args:  named(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withClient(cmd.Context(), addr, func(ctx context.Context, c client) error {
				resp, err := c.ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: args[0]})
				if err != nil {
					return err
				}
				if asJSON {
					return printMessages(p.Out, "status", resp.GetStatus())
				}
				return printStatus(p.Out, resp.GetStatus())
			})
		},
	}
	addressFlag(cmd.Flags(), p, &addr)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	completeNames(cmd, &addr)
	return cmd
}

func printStatus(out io.Writer, s *ingestv1.RepoStatus) error {
	f := s.GetFreshness()
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "name\t%s\n", render.Safe([]byte(s.GetName())))
	fmt.Fprintf(tw, "url\t%s\n", render.Safe([]byte(s.GetUrl())))
	fmt.Fprintf(tw, "state\t%s, request %d, %d published\n", searchapi.State(s.GetState()), s.GetEpoch(), s.GetPublishedEpoch())
	if s.GetReason() != "" {
		fmt.Fprintf(tw, "reason\t%s\n", render.Safe([]byte(s.GetReason())))
	}
	fmt.Fprintf(tw, "generation\t%d\n", s.GetGeneration())
	if s.GetBuilt() != "" {
		fmt.Fprintf(tw, "built\t%s\n", render.Safe([]byte(s.GetBuilt())))
	}
	if at := s.GetBuiltInFullAt(); at != nil {
		fmt.Fprintf(tw, "built in full\t%s\n", moment(at))
	}
	fmt.Fprintf(tw, "branch\t%s\n", dash(render.Safe([]byte(f.GetBranch()))))
	fmt.Fprintf(tw, "seen\t%s at %s by %s\n", dash(f.GetSeenCommit()), moment(f.GetSeenAt()), render.SeenBy(f.GetSeenBy()))
	fmt.Fprintf(tw, "indexed\t%s at %s\n", dash(f.GetIndexedCommit()), moment(f.GetIndexedAt()))
	fmt.Fprintf(tw, "lag\t%s\n", lag(s))
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}
	return nil
}

// lag is how long a repository is behind.
func lag(s *ingestv1.RepoStatus) string {
	since := s.GetFreshness().GetBehindSince()
	if since == nil {
		return "-"
	}
	return max(time.Since(since.AsTime()), 0).Round(time.Second).String()
}

// short is a commit as people write it.
func short(commit string) string { return dash(commit[:min(12, len(commit))]) }

// dash returns text, or a dash if it is empty.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
