package gitsource

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/gitsource/language"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/sandbox"
)

// Repository is a Source of some branches of a local Git repository, as they were when
// it was opened.
type Repository struct {
	gitDir   string
	limits   Limits
	env      []string
	folders  []string // that git reads
	branches []docstore.Branch
	listing  *listing
}

// IsRepository reports whether a folder is a Git repository, bare or with a working
// tree. A folder inside a working tree is not.
func IsRepository(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		return true
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil { // HEAD may be a link to a branch that has no file
			return false
		}
	}
	return true
}

// Open opens a folder as a Repository if it is one, else as a Folder, for which no
// branches may be wanted. The caller closes the source.
func Open(ctx context.Context, dir string, want []string, limits Limits) (Source, error) {
	if IsRepository(dir) {
		return OpenRepository(ctx, dir, want, limits)
	}
	if len(want) > 0 {
		return nil, failure(NoBranch, nil, "a folder that is not a Git repository has no branches")
	}
	return OpenFolder(dir, limits)
}

// OpenRepository lists the documents of the wanted branches of a local repository. None,
// or "HEAD", means the branch that is checked out. The paths and object ids of all
// documents stay in memory, contents do not. Every error is a *Failure, except the cause
// of ctx.
func OpenRepository(ctx context.Context, dir string, want []string, limits Limits) (*Repository, error) {
	r := &Repository{limits: limits.withDefaults(), env: repositoryEnv()}
	if err := outcome(ctx, r.open(ctx, dir, want)); err != nil {
		return nil, err
	}
	return r, nil
}

// OpenBranches lists the documents of branches of the repository at gitDir, at the commits that are
// given. It is otherwise as OpenRepository.
func OpenBranches(ctx context.Context, gitDir string, branches []docstore.Branch, limits Limits) (*Repository, error) {
	r := newRepository(ctx, gitDir, branches, limits)
	var err error
	if r.listing, err = r.list(ctx); err != nil {
		return nil, outcome(ctx, err)
	}
	return r, nil
}

func newRepository(ctx context.Context, gitDir string, branches []docstore.Branch, limits Limits) *Repository {
	return &Repository{gitDir: gitDir, branches: branches, limits: limits.withDefaults(), env: repositoryEnv(), folders: foldersOf(ctx, gitDir)}
}

// repositoryEnv returns the environment of git for a local repository.
func repositoryEnv() []string {
	return gitEnv([][2]string{
		// The caller chose this folder, so its owner does not matter for reading.
		{"safe.directory", "*"},
		{"core.deltaBaseCacheLimit", "256m"},
	})
}

func (r *Repository) open(ctx context.Context, dir string, want []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find %s: %w", dir, err)
	}
	r.env = append(r.env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	r.folders = foldersOf(ctx, dir)
	out, err := r.git(ctx, nil, "-C", dir, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	r.gitDir = strings.TrimSuffix(string(out), "\n")
	if r.branches, err = r.resolve(ctx, want); err != nil {
		return err
	}
	r.listing, err = r.list(ctx)
	return err
}

func (r *Repository) git(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return r.gitRun().run(ctx, bytes.NewReader(stdin), r.within(args)...)
}

func (r *Repository) gitRun() *gitRun {
	return &gitRun{box: r.box(), env: r.env, maxOutput: maxAnswer}
}

func (r *Repository) box() *sandbox.Box { return reading(DefaultMemory, r.folders...) }

// foldersOf returns the folders that git reads of a local repository that the caller
// chose: those of its data and of the object stores that it borrows from, wherever they
// are. It ignores errors: git reports damage.
func foldersOf(ctx context.Context, dir string) []string {
	local := localRepo{ctx: ctx, policy: origin.Policy{Folders: []string{"/"}}, stores: map[string]bool{}}
	_, _ = local.gitDir(dir)
	return append(local.folders, dir)
}

// within returns the arguments that run a command in the repository, once it is found.
func (r *Repository) within(args []string) []string {
	if r.gitDir == "" {
		return args
	}
	return append([]string{"--git-dir=" + r.gitDir}, args...)
}

// resolve finds the commits of the wanted branches.
func (r *Repository) resolve(ctx context.Context, want []string) ([]docstore.Branch, error) {
	if len(want) == 0 {
		want = []string{"HEAD"}
	}
	var branches []docstore.Branch
	seen := make(map[string]bool)
	for _, name := range want {
		if err := origin.CheckBranch(name); err != nil {
			return nil, err
		}
		b, err := r.resolveOne(ctx, name)
		if err != nil {
			return nil, err
		}
		if !seen[b.Name] {
			seen[b.Name] = true
			branches = append(branches, b)
		}
	}
	return branches, nil
}

func (r *Repository) resolveOne(ctx context.Context, name string) (docstore.Branch, error) {
	ref := origin.BranchRef(name)
	if ref == "HEAD" {
		if out, err := r.git(ctx, nil, "symbolic-ref", "--quiet", "HEAD"); err == nil {
			ref = strings.TrimSpace(string(out))
		}
	}
	out, err := r.git(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if err == nil {
		return docstore.Branch{Name: origin.BranchName(ref), Commit: strings.TrimSpace(string(out))}, nil
	}
	refs, listErr := r.git(ctx, nil, "for-each-ref", "--count=1")
	if _, headErr := r.git(ctx, nil, "rev-parse", "--verify", "--quiet", "HEAD"); listErr == nil && len(refs) == 0 && headErr != nil {
		return docstore.Branch{}, failure(Empty, err, "the repository is empty: it has no commits")
	}
	return docstore.Branch{}, failure(NoBranch, err, fmt.Sprintf("the repository has no branch %q", name))
}

// Branches implements Source.
func (r *Repository) Branches() []docstore.Branch { return r.branches }

// Total implements Source.
func (r *Repository) Total() int { return len(r.listing.entries) }

// Omitted implements Source.
func (r *Repository) Omitted() int { return r.listing.omitted }

// Close implements Source.
func (r *Repository) Close() error { return nil }

// Documents implements Source. Each call reads the contents anew.
func (r *Repository) Documents(ctx context.Context) iter.Seq2[*build.Document, error] {
	return func(yield func(*build.Document, error) bool) {
		blobs := &blobs{repo: r, ctx: ctx, out: bufio.NewReaderSize(nil, pipeBuffer)}
		defer blobs.close()
		var detector language.Detector
		for i := range r.listing.entries {
			doc, err := r.document(ctx, &r.listing.entries[i], blobs, &detector)
			if !yield(doc, err) || err != nil {
				return
			}
		}
	}
}

// document returns the document of an entry, with its content from blobs.
func (r *Repository) document(ctx context.Context, e *entry, blobs *blobs, detector *language.Detector) (*build.Document, error) {
	doc := &build.Document{
		Path: []byte(e.path), Size: uint64(max(e.size, 0)), OID: e.oid[:r.listing.oidLen],
		Branches: r.listing.sets.members(e.set), Skip: e.skip,
	}
	if e.skip != docstore.NotSkipped {
		return doc, nil
	}
	content, err := blobs.next()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, errUnreadable):
		doc.Skip = docstore.Unreadable
	case err != nil:
		return nil, asFailure(err)
	default:
		classify(doc, content, r.limits, detector)
	}
	return doc, nil
}
