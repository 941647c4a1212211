package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func newRepos(p Process) *cobra.Command {
	cmd := lister(p, &cobra.Command{Use: "repos [PREFIX]", Short: "List the repositories with their states, or those that are behind"})
	cmd.AddCommand(lister(p, &cobra.Command{Use: "list [PREFIX]", Hidden: true}), newReposStatus(p), newReindex(p), newDelete(p))
	return cmd
}

// lister makes cmd list the repositories.
func lister(p Process, cmd *cobra.Command) *cobra.Command {
	var stale staleFlags
	cmd.Args = usageArgs(func(cmd *cobra.Command, args []string) error {
		switch flags := cmd.Flags(); {
		case flags.Changed("limit") && !stale.set(flags):
			return errors.New("--limit is for --stale and --older-than: without them all repositories are listed")
		case flags.Changed("skipped") && stale.set(flags):
			return errors.New("--skipped lists files of indexes: it excludes --stale and --older-than")
		case stale.olderThan < 0:
			return fmt.Errorf("--older-than is %v: want 0s or more", stale.olderThan)
		}
		return cobra.MaximumNArgs(1)(cmd, args)
	})
	asJSON := cmd.Flags().Bool("json", false, "print one JSON object a line")
	skipped := cmd.Flags().Uint32("skipped", 0, "files found by name only to list for each repository, with the reason")
	stale.add(cmd.Flags())
	return calling(p, cmd, func(ctx context.Context, c client, args []string) error {
		prefix := strings.Join(args, "")
		if stale.set(cmd.Flags()) {
			return listStale(ctx, c, p, prefix, stale, *asJSON)
		}
		rows, coverage, err := listRepos(ctx, c, prefix, *skipped)
		if err != nil {
			return err
		}
		if !coverage.GetComplete() {
			fmt.Fprintf(p.Err, "incomplete: %s, so documents, sizes and languages of some repos are missing\n", searchapi.MissingShards(coverage))
		}
		switch {
		case len(rows) == 0 && prefix != "":
			return noneNamed(prefix)
		case *asJSON:
			return printReposJSON(p.Out, rows)
		case len(rows) == 0:
			_, err := io.WriteString(p.Err, "no repo is indexed yet: trawl index URL indexes one\n")
			return err
		}
		return printRepos(p.Out, rows)
	})
}

// noneNamed is the error about a prefix that no name has.
func noneNamed(prefix string) error {
	return fmt.Errorf("no repo has a name that begins with %q, its host included: trawl repos lists all", prefix)
}

// repoRow is a desired repo and, once it has one, its published index.
type repoRow struct {
	status *ingestv1.RepoStatus
	index  *searchv1.RepoEntry // nil without one
}

// listRepos joins the desired repos with the published ones, in order of name. The coverage is of the published ones.
func listRepos(ctx context.Context, c client, prefix string, skipped uint32) ([]repoRow, *searchv1.Coverage, error) {
	var rows []repoRow
	if err := c.eachRepo(ctx, prefix, func(s *ingestv1.RepoStatus) { rows = append(rows, repoRow{status: s}) }); err != nil {
		return nil, nil, err
	}
	indexes, coverage, err := published(ctx, c, prefix, skipped)
	if err != nil {
		return nil, nil, err
	}
	byName := map[string]*searchv1.RepoEntry{}
	for _, r := range indexes {
		byName[r.GetName()] = r
	}
	for i := range rows {
		rows[i].index = byName[rows[i].status.GetName()]
	}
	return rows, coverage, nil
}

// eachRepo passes on the desired repos whose names begin with prefix, in order of name.
func (c client) eachRepo(ctx context.Context, prefix string, do func(*ingestv1.RepoStatus)) error {
	for req := (&ingestv1.ListReposRequest{Prefix: prefix}); ; {
		page, err := c.ingest.ListRepos(ctx, req)
		if err != nil {
			return err
		}
		for _, s := range page.GetRepos() {
			do(s)
		}
		if req.After = page.GetNextAfter(); req.GetAfter() == "" {
			return nil
		}
	}
}

// published lists the repos with an index that can be read whose names begin with prefix, in any case if it has no capital.
func published(ctx context.Context, c client, prefix string, skipped uint32) ([]*searchv1.RepoEntry, *searchv1.Coverage, error) {
	list := &searchv1.ListRequest{MaxSkippedFiles: skipped}
	if prefix != "" {
		list.Query = "r:" + query.Quote("^"+query.Literal(prefix))
	}
	stream, err := c.search.StreamList(ctx, &searchv1.StreamListRequest{List: list})
	if err != nil {
		return nil, nil, err
	}
	var (
		entries  []*searchv1.RepoEntry
		coverage *searchv1.Coverage
	)
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return searchapi.MergeEntries(int(skipped), entries), coverage, nil
		}
		if err != nil {
			return nil, nil, err
		}
		entries, coverage = append(entries, m.GetRepos()...), m.GetCoverage()
	}
}

func printRepos(out io.Writer, rows []repoRow) error {
	err := table(out, "repositories", func(w io.Writer) {
		fmt.Fprintln(w, "NAME\tSTATE\tGENERATION\tCOMMIT\tDOCUMENTS\tSIZE\tINDEX\tLAG\tLANGUAGES")
		for _, r := range rows {
			documents, content, index := "-", "-", "-"
			if r.index != nil {
				documents = strconv.FormatUint(r.index.GetDocuments(), 10)
				content, index = searchapi.Bytes(r.index.GetContentBytes()), searchapi.Bytes(r.index.GetIndexBytes())
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", render.Safe([]byte(r.status.GetName())), searchapi.State(r.status.GetState()),
				r.status.GetGeneration(), commit(r.index), documents, content, index, lag(r.status), languages(r.index, 3))
		}
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if reason := r.status.GetReason(); reason != "" {
			fmt.Fprintf(out, "%s: %s\n", render.Safe([]byte(r.status.GetName())), render.Safe([]byte(reason)))
		}
		for _, f := range r.index.GetSkippedFiles() {
			fmt.Fprintf(out, "%s: %s: %s, %s\n", render.Safe([]byte(r.status.GetName())), render.Name(f.GetPath()),
				searchapi.SkipReason(f.GetReason()), searchapi.Bytes(f.GetSizeBytes()))
		}
	}
	return nil
}

// commit is the short commit of the first branch.
func commit(r *searchv1.RepoEntry) string {
	if len(r.GetBranches()) == 0 {
		return "-"
	}
	id := r.GetBranches()[0].GetCommit()
	return id[:min(12, len(id))]
}

// languages names the n languages with the most content and their shares.
func languages(r *searchv1.RepoEntry, n int) string {
	var total uint64
	for _, l := range r.GetLanguages() {
		total += l.GetBytes()
	}
	var names []string
	for _, l := range largest(r.GetLanguages(), n) {
		names = append(names, fmt.Sprintf("%s %d%%", cmp.Or(l.GetLanguage(), "other"), (l.GetBytes()*100+total/2)/max(total, 1)))
	}
	return strings.Join(names, ", ")
}

// largest are the n languages with the most content, the largest first.
func largest(all []*searchv1.LanguageShare, n int) []*searchv1.LanguageShare {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *searchv1.LanguageShare) int {
		return cmp.Or(cmp.Compare(b.GetBytes(), a.GetBytes()), cmp.Compare(a.GetLanguage(), b.GetLanguage()))
	})
	return sorted[:min(n, len(sorted))]
}

// printReposJSON prints each repo as a line of JSON: its status as in the API, with its index, if it has one, as index.
func printReposJSON(out io.Writer, rows []repoRow) error {
	for _, r := range rows {
		more := map[string]proto.Message{}
		if r.index != nil {
			for _, f := range r.index.GetSkippedFiles() {
				f.PathText, _ = render.TextOrBytes(f.GetPath())
			}
			more["index"] = r.index
		}
		if err := printRepoJSON(out, r.status, more); err != nil {
			return err
		}
	}
	return nil
}

// printRepoJSON prints the status of a repo as a line of JSON, with more members.
func printRepoJSON(out io.Writer, s *ingestv1.RepoStatus, more map[string]proto.Message) error {
	var line bytes.Buffer
	if err := printMessages(&line, "repository", s); err != nil {
		return err
	}
	for name, m := range more {
		line.Truncate(line.Len() - len("}\n"))
		fmt.Fprintf(&line, ",%q:", name)
		if err := printMessages(&line, name, m); err != nil {
			return err
		}
		line.Truncate(line.Len() - len("\n"))
		line.WriteString("}\n")
	}
	if _, err := line.WriteTo(out); err != nil {
		return fmt.Errorf("printing the repositories: %w", err)
	}
	return nil
}
