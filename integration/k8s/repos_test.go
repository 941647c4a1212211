package k8s

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// repository is a Git repository, with the content that searches must find.
type repository struct {
	*gitsourcetest.Repo
	name string // of the repo in Trawl
	url  string // as the indexers reach it
	push string // as this machine does
	// files are the contents of the newest commit by path.
	files   map[string]string
	commits int
}

// heron finds every file of every repository.
const heron = "heron"

// makeRepositories makes six repositories, enough to reveal a wrong placement. If searchers ignored zones,
// all six would survive the loss of a zone by chance only once in eleven runs.
func (e *e2e) makeRepositories() {
	e.t.Helper()
	for _, name := range []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta"} {
		r := &repository{
			Repo: gitsourcetest.New(e.t), name: "git.git.svc:8080/" + name,
			url: "http://git.git.svc:8080/" + name + ".git", push: "http://" + e.git + "/" + name + ".git",
		}
		e.commit(r)
		e.repos = append(e.repos, r)
	}
}

// commit makes and pushes the next commit. Every file has the word heron and the
// commit's token.
func (e *e2e) commit(r *repository) {
	e.t.Helper()
	r.commits++
	r.files = map[string]string{}
	var list []string
	for i := range 3 + e.rng.IntN(5) {
		var text strings.Builder
		fmt.Fprintf(&text, "// the heron of %s\nfunc main()\n", r.token())
		for range 200 {
			fmt.Fprintf(&text, "%016x %016x\n", e.rng.Uint64(), e.rng.Uint64())
		}
		name := fmt.Sprintf("dir%d/file%d.txt", i%3, i)
		r.files[name] = text.String()
		list = append(list, name, text.String())
	}
	r.Files("main", list...)
	r.Git("push", "--quiet", "--force", r.push, "main")
}

// token is a word in every file of the newest commit, and in no other commit.
func (r *repository) token() string {
	return fmt.Sprintf("token_%s_%d_", path.Base(r.name), r.commits)
}

// index has the newest commits indexed.
func (e *e2e) index(c *caller) {
	e.t.Helper()
	for _, r := range e.repos {
		var put *ingestv1.PutRepoResponse
		eventually(e.t, "the request for "+r.name+" is acknowledged", func(ctx context.Context) error {
			return c.call(ctx, func(ctx context.Context) (err error) {
				put, err = ingestv1.NewIngestServiceClient(c.conn).PutRepo(ctx, &ingestv1.PutRepoRequest{Url: r.url, Name: r.name})
				return err
			})
		})
		eventually(e.t, r.name+" is indexed", func(ctx context.Context) error {
			return c.call(ctx, func(ctx context.Context) error {
				got, err := ingestv1.NewIngestServiceClient(c.conn).GetRepo(ctx, &ingestv1.GetRepoRequest{Name: r.name})
				if err == nil && got.GetStatus().GetPublishedEpoch() < put.GetEpoch() {
					err = fmt.Errorf("its status is %v", got.GetStatus())
				}
				return err
			})
		})
	}
}

// wrong returns what is wrong with an answer to the query heron. The answer must hold every
// file of the newest commits, or name the repos with missing files.
func wrong(answer *searchv1.SearchResponse, repos []*repository) error {
	cov := answer.GetCoverage()
	if cov.GetRequested() != cov.GetSearched()+cov.GetPruned()+cov.GetFailed()+cov.GetNotReached() ||
		cov.GetComplete() != (cov.GetFailed()+cov.GetNotReached() == 0) || uint64(len(cov.GetUncovered())) != cov.GetFailed()+cov.GetNotReached() {
		return fmt.Errorf("the account does not add up: %v", cov)
	}
	missing := map[string]bool{}
	for _, u := range cov.GetUncovered() {
		for _, name := range u.GetRepos() {
			missing[name] = true
		}
	}
	found := map[string]int{}
	for _, f := range answer.GetFiles() {
		found[f.GetRepo()]++
	}
	var errs []error
	for _, r := range repos {
		if found[r.name] != len(r.files) && !missing[r.name] {
			errs = append(errs, fmt.Errorf("of %s %d of %d files were found, and it is not among the uncovered: %v", r.name, found[r.name], len(r.files), cov))
		}
	}
	for _, f := range answer.GetFiles() {
		errs = append(errs, differs(f, repos))
	}
	return errors.Join(errs...)
}

// differs returns how a file found differs from the file in the newest commit.
func differs(f *searchv1.FileMatch, repos []*repository) error {
	for _, r := range repos {
		if r.name != f.GetRepo() {
			continue
		}
		content := r.files[string(f.GetPath())]
		for _, chunk := range f.GetChunks() {
			if at := int(chunk.GetContentStart().GetByteOffset()); !strings.HasPrefix(content[min(at, len(content)):], string(chunk.GetContent())) {
				return fmt.Errorf("%s: %s has not the content %q at %d", r.name, f.GetPath(), chunk.GetContent(), at)
			}
		}
	}
	return nil
}
