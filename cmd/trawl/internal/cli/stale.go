package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
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
		return printMessages(out, "repositories", repos...) // as printReposJSON, without their indexes
	}
	return table(out, "repositories", func(w io.Writer) {
		if head {
			fmt.Fprintln(w, "NAME\tLAG\tSTATE\tBRANCH\tSEEN\tBY\tINDEXED\tREASON")
		}
		for _, r := range repos {
			f := r.GetFreshness()
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", render.Safe([]byte(r.GetName())), lag(r), searchapi.State(r.GetState()),
				dash(render.Safe([]byte(f.GetBranch()))), short(f.GetSeenCommit()), seenBy(f), short(f.GetIndexedCommit()),
				render.Safe([]byte(r.GetReason())))
		}
	})
}

func newReposStatus(p Process) *cobra.Command {
	cmd := &cobra.Command{Use: "status REPO", Short: "Show the state of a repository, and how recent its index is", Args: named(cobra.ExactArgs(1))}
	asJSON := cmd.Flags().Bool("json", false, "print one JSON object")
	return calling(p, cmd, func(ctx context.Context, c client, args []string) error {
		resp, err := c.ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: args[0]})
		if err != nil {
			return err
		}
		if *asJSON {
			wanted := &ingestv1.GetRepoResponse{Branches: resp.GetBranches(), Facts: resp.GetFacts()}
			return printRepoJSON(p.Out, resp.GetStatus(), map[string]proto.Message{"wanted": wanted})
		}
		return printStatus(p.Out, resp)
	})
}

func printStatus(out io.Writer, resp *ingestv1.GetRepoResponse) error {
	s := resp.GetStatus()
	f := s.GetFreshness()
	return table(out, "status", func(w io.Writer) {
		fmt.Fprintf(w, "name\t%s\n", render.Safe([]byte(s.GetName())))
		fmt.Fprintf(w, "url\t%s\n", render.Safe([]byte(s.GetUrl())))
		fmt.Fprintf(w, "wanted\t%s\n", render.Safe([]byte(wanted(resp))))
		fmt.Fprintf(w, "state\t%s, request %d, %d published\n", searchapi.State(s.GetState()), s.GetEpoch(), s.GetPublishedEpoch())
		if s.GetReason() != "" {
			fmt.Fprintf(w, "reason\t%s\n", render.Safe([]byte(s.GetReason())))
		}
		fmt.Fprintf(w, "generation\t%d\n", s.GetGeneration())
		if s.GetBuilt() != "" {
			fmt.Fprintf(w, "built\t%s\n", render.Safe([]byte(s.GetBuilt())))
		}
		if at := s.GetBuiltInFullAt(); at != nil {
			fmt.Fprintf(w, "built in full\t%s\n", moment(at))
		}
		fmt.Fprintf(w, "branch\t%s\n", dash(render.Safe([]byte(f.GetBranch()))))
		fmt.Fprintf(w, "seen\t%s at %s by %s\n", dash(f.GetSeenCommit()), moment(f.GetSeenAt()), seenBy(f))
		fmt.Fprintf(w, "indexed\t%s at %s\n", dash(f.GetIndexedCommit()), moment(f.GetIndexedAt()))
		fmt.Fprintf(w, "lag\t%s\n", lag(s))
	})
}

// wanted are the branches and facts that were asked for, in words.
func wanted(r *ingestv1.GetRepoResponse) string {
	list := []string{cmp.Or(strings.Join(r.GetBranches(), " "), "HEAD")}
	facts := r.GetFacts()
	if facts.GetRank() > 0 {
		list = append(list, fmt.Sprint("rank ", facts.GetRank()))
	}
	if facts.GetId() > 0 {
		list = append(list, fmt.Sprint("id ", facts.GetId()))
	}
	if facts.GetArchived() {
		list = append(list, "archived")
	}
	if facts.GetFork() {
		list = append(list, "fork")
	}
	if facts.GetPublic() {
		list = append(list, "public")
	}
	for _, key := range slices.Sorted(maps.Keys(facts.GetMeta())) {
		list = append(list, "meta."+key+" "+facts.GetMeta()[key])
	}
	return strings.Join(list, ", ")
}

// seenBy names what reported the newest commit.
func seenBy(f *ingestv1.Freshness) string {
	return searchapi.EnumWords(f.GetSeenBy().String(), "SEEN_BY_")
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
func dash(text string) string { return cmp.Or(text, "-") }
