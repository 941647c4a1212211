package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/wait"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/indexer"
)

func newIndex(p Process) *cobra.Command {
	var (
		addr     routerAt
		name     string
		branches []string
		rank, id uint32
		noWait   bool
		given    fieldmaskpb.FieldMask
	)
	cmd := &cobra.Command{
		Use:   "index URL|PATH",
		Short: "Index a Git repository, or bring its index up to date",
		Long: `Index a Git repository, or bring its index up to date, and wait until it can be searched. A repository that is indexed already
keeps what no flag changes.

A PATH is a repository on the machine where Trawl runs, and must be allowed there.`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			url, err := absolute(args[0])
			if errors.As(err, new(noFolder)) {
				return cmp.Or(indexedAs(cmd.Context(), addr, args[0]), err)
			}
			if err != nil {
				return err
			}
			req := &ingestv1.PutRepoRequest{Url: url, Name: name, Branches: branches}
			for _, fact := range []string{"rank", "id"} {
				if cmd.Flags().Changed(fact) {
					given.Paths = append(given.Paths, fact)
				}
			}
			if len(given.Paths) > 0 {
				req.Facts, req.FactsMask = &ingestv1.RepoFacts{Rank: rank, Id: id}, &given
			}
			return withClient(cmd.Context(), addr, func(ctx context.Context, c client) error { return index(ctx, c, p, req, noWait) })
		},
	}
	addressFlag(cmd.Flags(), p, &addr)
	cmd.Flags().StringVar(&name, "name", "", "name to search it by, which needs a token with the scope admin; otherwise host and path of the URL")
	cmd.Flags().StringArrayVarP(&branches, "branch", "b", nil, "`name` of a branch to index, a pattern as release/*, or a tag as refs/tags/v1; may be repeated; otherwise those of before, and the default branch of a new repository")
	cmd.Flags().Uint32Var(&rank, "rank", 0, "how much the repository matters, up to 100; each ten add a point to the score of each file")
	cmd.Flags().Uint32Var(&id, "id", 0, "`number` by which programs made for zoekt know the repository, which needs a token with the scope admin; otherwise it keeps the one it has")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return once the request is safe, before it is indexed")
	return cmd
}

// noFolder is an argument that is neither a URL nor a folder that is here.
type noFolder string

// Error implements error.
func (e noFolder) Error() string {
	return fmt.Sprintf("there is no folder %s here; a repository elsewhere has a URL such as https://HOST/PATH", string(e))
}

// indexedAs is the error about the name of a repo where its URL is wanted; nil if the router does not say that there is such a repo.
func indexedAs(ctx context.Context, at routerAt, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := withClient(ctx, at, func(ctx context.Context, c client) error {
		_, err := c.ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: name})
		return err
	})
	if err != nil {
		return nil // that there is no folder says more
	}
	return fmt.Errorf("%s is the name of a repo, and no folder here: trawl repos reindex %s indexes it again", name, shellWord(name))
}

// isAddress matches what can be the URL of a repository, or user@host:path.
var isAddress = regexp.MustCompile(`^[^/]*:`)

// absolute makes the path of a folder absolute. It leaves a URL as it is, and an absolute path to what is not here: Trawl may run on
// another machine.
func absolute(arg string) (string, error) {
	if isAddress.MatchString(arg) {
		return arg, nil
	}
	info, err := os.Stat(arg)
	switch {
	case arg == "":
		return "", usageError{errors.New("the URL or path is empty: a dot is the working directory")}
	case err != nil && filepath.IsAbs(arg):
		return arg, nil
	case errors.Is(err, os.ErrNotExist):
		return "", noFolder(arg)
	case err != nil:
		return "", fmt.Errorf("looking for the repository: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("%s is a file: a repository is a folder or a URL", arg)
	}
	path, err := filepath.Abs(arg)
	if err != nil {
		return "", fmt.Errorf("finding the folder %s: %w", arg, err)
	}
	switch root := repositoryOf(path); root {
	case path:
		return path, nil
	case "":
		return "", fmt.Errorf("%s is not a Git repository; trawl grep searches any folder. file://%s is the folder on the machine where Trawl runs", arg, path)
	default:
		return "", fmt.Errorf("%s is a folder of the repository %s: index that, and search a part of it with f:PATH", arg, root)
	}
}

// repositoryOf is the folder itself if it may be a repository, or else the working tree that it is in; "" if it is in none. Git does not
// clone a part of a repository, though its commands work in one.
func repositoryOf(folder string) (root string) {
	holds := func(dir, name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name)) // HEAD may be a link to a branch that has no file
		return err == nil
	}
	for dir := folder; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if holds(dir, ".git") || dir == folder && holds(dir, "HEAD") {
			return dir
		}
	}
	return ""
}

func index(ctx context.Context, c client, p Process, req *ingestv1.PutRepoRequest, noWait bool) error {
	began := time.Now()
	name, _ := origin.RepoName(req.GetUrl())
	before := indexOf(ctx, c, cmp.Or(req.GetName(), name), nil)
	put, err := c.ingest.PutRepo(ctx, req)
	if err != nil {
		return err
	}
	if noWait {
		_, err := fmt.Fprintf(p.Out, "%s: request %d accepted\n", put.GetName(), put.GetEpoch())
		return err
	}
	report := render.NewProgress(p.Err, isTerminal(p.Err), indexer.MaxAttempts)
	done, err := awaitIndex(ctx, c, put, report.Update)
	report.Done()
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(p.Err, "%s: indexing goes on without this command\n", put.GetName())
		} else if errors.Is(err, errIndexing) {
			return fmt.Errorf("%w%s", err, afterFailure(ctx, c, put.GetName(), req, before != nil))
		}
		return err
	}
	return printIndexed(ctx, c, p, req, before, done, time.Since(began))
}

// afterFailure is what to know of a request that failed: the branches of before that it kept, what Trawl does next, and how to
// remove a repo that has no index.
func afterFailure(ctx context.Context, c client, name string, req *ingestv1.PutRepoRequest, indexed bool) (text string) {
	if kept := keptBranches(ctx, c, name, req); kept != "" {
		text = fmt.Sprintf("; its branches are those of before: %s; -b HEAD is the default branch alone", kept)
	}
	text += "\n  Trawl tries again by itself after an hour, or after a minute if the host cannot be reached, and then after twice as long each time, up to a day"
	if !indexed {
		text += fmt.Sprintf("\n  if this is not the repository that you mean: trawl delete %s removes it", shellWord(name))
	}
	return text
}

// keptBranches are the branches that a request without any has left as they were; empty if it names them, or if none were named before.
func keptBranches(ctx context.Context, c client, name string, req *ingestv1.PutRepoRequest) string {
	if len(req.GetBranches()) > 0 {
		return ""
	}
	resp, err := c.ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: name})
	if err != nil {
		return "" // the error of the request says more
	}
	return render.Safe([]byte(strings.Join(resp.GetBranches(), " ")))
}

// errIndexing is a request that failed.
var errIndexing = errors.New("not indexed")

// awaitIndex follows a request until it is published or failed, and returns its last status. If
// the router goes away meanwhile it waits for it: the request is safe.
func awaitIndex(ctx context.Context, c client, put *ingestv1.PutRepoResponse, update func(*ingestv1.RepoStatus)) (*ingestv1.RepoStatus, error) {
	const patience = 30 * time.Second
	for lastSeen := time.Now(); ; {
		done, err := follow(ctx, c, put, func(s *ingestv1.RepoStatus) {
			lastSeen = time.Now()
			update(s)
		})
		if done != nil || status.Code(err) != codes.Unavailable && !errors.Is(err, io.EOF) || time.Since(lastSeen) > patience {
			return done, err
		}
		if !wait.Sleep(ctx, time.Second) {
			return nil, ctx.Err()
		}
	}
}

// follow watches a repo over one stream; it ends with an error, or with the status that completes
// the request.
func follow(ctx context.Context, c client, put *ingestv1.PutRepoResponse, update func(*ingestv1.RepoStatus)) (*ingestv1.RepoStatus, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.ingest.WatchRepo(ctx, &ingestv1.WatchRepoRequest{Name: put.GetName()})
	if err != nil {
		return nil, err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		s := m.GetStatus()
		update(s)
		switch {
		case s.GetPublishedEpoch() >= put.GetEpoch():
			return s, nil
		case s.GetState() == ingestv1.State_STATE_DELETED:
			return nil, fmt.Errorf("not indexed: %s was deleted in the meantime", s.GetName())
		case s.GetState() == ingestv1.State_STATE_FAILED && s.GetEpoch() >= put.GetEpoch():
			return nil, fmt.Errorf("%w: %s: %s", errIndexing, s.GetName(), render.Safe([]byte(s.GetReason())))
		}
	}
}

// indexOf is the index of a repo; nil if it has none that can be listed.
func indexOf(ctx context.Context, c client, name string, want *searchv1.Consistency) *searchv1.RepoEntry {
	answer, err := c.search.List(ctx, &searchv1.ListRequest{Query: "repo:" + query.Quote("^"+regexp.QuoteMeta(name)+"$"), Consistency: want})
	if err != nil || len(answer.GetRepos()) != 1 {
		return nil
	}
	return answer.GetRepos()[0]
}

// printIndexed prints what the index of a published repo holds, which wanted branches it lacks, and which it had before and has no longer.
func printIndexed(ctx context.Context, c client, p Process, req *ingestv1.PutRepoRequest, before *searchv1.RepoEntry, s *ingestv1.RepoStatus, took time.Duration) error {
	line := fmt.Sprintf("%s: generation %d in %s", s.GetName(), s.GetGeneration(), render.Duration(took))
	if r := indexOf(ctx, c, s.GetName(), &searchv1.Consistency{Level: &searchv1.Consistency_AtLeast{AtLeast: s.GetRevisionToken()}}); r != nil {
		line += fmt.Sprintf(", %s, %s, index %s", render.Count(r.GetDocuments(), "document", "documents"), searchapi.Bytes(r.GetContentBytes()), searchapi.Bytes(r.GetIndexBytes()))
		if n := r.GetSkippedDocuments(); n > 0 {
			line += fmt.Sprintf(", %d found by name only", n)
		}
		has := func(want string) bool {
			return slices.ContainsFunc(r.GetBranches(), func(b *searchv1.BranchEntry) bool { return origin.MatchBranch([]string{want}, b.GetName()) })
		}
		for _, want := range req.GetBranches() {
			if want != "HEAD" && !has(want) && !strings.Contains(s.GetBuilt(), strconv.Quote(want)) { // which says why it is left out
				fmt.Fprintf(p.Err, "%s: there is no branch %s; it is left out\n", s.GetName(), render.Safe([]byte(want)))
			}
		}
		if _, text, ok := strings.Cut(s.GetBuilt(), "; "); ok {
			fmt.Fprintf(p.Err, "%s: %s\n", s.GetName(), render.Safe([]byte(text)))
		}
		hint := ""
		if len(req.GetBranches()) > 0 {
			hint = "; -b names each branch to index"
		}
		for _, b := range before.GetBranches() {
			if !has(b.GetName()) {
				fmt.Fprintf(p.Err, "%s: branch %s is no longer indexed%s\n", s.GetName(), render.Safe([]byte(b.GetName())), hint)
			}
		}
	}
	_, err := fmt.Fprintln(p.Out, line)
	return err
}
