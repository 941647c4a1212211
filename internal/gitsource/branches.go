package gitsource

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Branches converts a root's branches, in their order, so that they can be compared
// with those of a Fetcher.
func Branches(records []*catalogv1.Branch) []docstore.Branch {
	branches := make([]docstore.Branch, len(records))
	for i, b := range records {
		branches[i] = docstore.Branch{Name: b.GetName(), Commit: b.GetCommit()}
	}
	return branches
}

// refs are the refs of a remote repository.
type refs struct {
	head    string            // the branch that HEAD names, else HEAD itself; empty if HEAD names no commit
	commits map[string]string // by ref
}

// listRefs lists the remote repository's branches, and HEAD and the tags if they are wanted, if the default branch may
// come first or if there are no branches.
func (s *session) listRefs(ctx context.Context, want []string) (refs, error) {
	r := refs{commits: make(map[string]string)}
	// With --heads and --tags the server need not send other refs, which can be a hundred times
	// as many. They do not include HEAD.
	args := []string{"ls-remote", "--quiet", "--heads", "--tags", "--", s.url}
	if !slices.ContainsFunc(want, func(name string) bool { return strings.HasPrefix(name, tagPrefix) }) {
		args = slices.Delete(args, 3, 4)
	}
	all := len(want) == 0 || slices.Contains(want, "HEAD") || headFirst(want)
	if all {
		// These patterns also match ends of names, such as refs/remotes/origin/HEAD.
		args = []string{"ls-remote", "--quiet", "--symref", "--", s.url, "HEAD", "refs/heads/*", "refs/tags/*"}
	}
	out, err := s.remote(ctx, "", nil, nil, args...)
	if err != nil {
		return r, err
	}
	for line := range bytes.Lines(out) {
		value, ref, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		if ok && (ref == "HEAD" || strings.HasPrefix(ref, "refs/heads/") || strings.HasPrefix(ref, tagPrefix)) {
			r.add(ref, value)
		}
	}
	if len(r.commits) == 0 && !all {
		return s.listRefs(ctx, nil) // a repository without branches need not be empty
	}
	if r.head == "HEAD" && headFirst(want) && !slices.Contains(want, "HEAD") && r.hasBranch() {
		delete(r.commits, r.head) // the pattern stands for branches, and HEAD is on none
	}
	return r, nil
}

// headFirst reports whether the first wanted name is a pattern that may stand for the default branch.
func headFirst(want []string) bool {
	return len(want) > 0 && strings.Contains(want[0], "*") && !strings.HasPrefix(want[0], tagPrefix)
}

func (r *refs) hasBranch() bool {
	for ref := range r.commits {
		if strings.HasPrefix(ref, "refs/heads/") {
			return true
		}
	}
	return false
}

const tagPrefix = "refs/tags/"

// add adds a line of git ls-remote. The line of a tag is followed by that of the object that it
// tags, with ^{} after its name.
func (r *refs) add(ref, value string) {
	target, symbolic := strings.CutPrefix(value, "ref: ")
	switch {
	case symbolic && ref == "HEAD" && strings.HasPrefix(target, "refs/heads/"):
		r.head = target
	case !hexOID(value) || strings.Trim(value, "0") == "": // the file of a ref that a crash left empty is a name of zeros
	case ref == "HEAD":
		if r.head == "" {
			r.head = ref
		}
		r.commits[r.head] = value
	case strings.HasPrefix(ref, tagPrefix):
		r.commits[strings.TrimSuffix(ref, "^{}")] = value
	case !strings.HasSuffix(ref, "^{}"): // a branch that names a tag is none, as git fetches no such branch
		r.commits[ref] = value
	}
}

func hexOID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// maxBranches bounds the branches of one repo.
const maxBranches = 1024

var errManyBranches = failure(TooLarge, nil, fmt.Sprintf("more than %d branches are wanted, which is the limit", maxBranches))

// choose returns the wanted branches, those of one pattern in the order of their names; the default branch comes before them. It leaves
// out those that do not exist, which may have been deleted since they were wanted, unless
// none is left. The repository chose the number of its branches: each is looked at once for each pattern, until
// there are too many or ctx ends.
func (r refs) choose(ctx context.Context, want []string) ([]docstore.Branch, error) {
	if len(want) == 0 {
		want = []string{"HEAD"}
	}
	if len(r.commits) == 0 {
		return nil, failure(Empty, nil, "the repository is empty: it has no commits")
	}
	var chosen []docstore.Branch
	var missing error
	has := make(map[string]bool)
	for _, name := range want {
		selected, err := r.selected(ctx, name)
		if fail, ok := errors.AsType[*Failure](err); ok && fail.Kind == NoBranch {
			missing = cmp.Or(missing, err)
		} else if err != nil {
			return nil, err
		}
		for _, ref := range selected {
			if !has[ref] {
				has[ref] = true
				chosen = append(chosen, docstore.Branch{Name: origin.BranchName(ref), Commit: r.commits[ref]})
			}
		}
		if len(chosen) > maxBranches {
			return nil, errManyBranches
		}
	}
	if len(chosen) == 0 {
		return nil, missing
	}
	return chosen, nil
}

// selected returns the refs that a wanted name or pattern selects.
func (r refs) selected(ctx context.Context, want string) ([]string, error) {
	if err := origin.CheckBranchPattern(want); err != nil {
		return nil, err
	}
	if strings.Contains(want, "*") {
		return r.matching(ctx, want)
	}
	ref := origin.BranchRef(want)
	if ref == "HEAD" {
		ref = r.head
	}
	switch _, ok := r.commits[ref]; {
	case ok:
		return []string{ref}, origin.CheckBranch(origin.BranchName(ref)) // the remote chose the name of its default branch
	case ref == r.head:
		return nil, failure(NoBranch, nil, "the repository's default branch does not exist; name the branches to index")
	case ref == want:
		return nil, failure(NoBranch, nil, fmt.Sprintf("the repository has no %q", want))
	}
	return nil, failure(NoBranch, nil, fmt.Sprintf("the repository has no branch %q; for a tag write %s%s", want, tagPrefix, strings.TrimPrefix(want, "tags/")))
}

// matching returns the refs that a pattern selects: the default branch, if HEAD was listed, then the others in the order of their names.
func (r refs) matching(ctx context.Context, pattern string) (refs []string, err error) {
	for ref := range r.commits {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if name := origin.BranchName(ref); origin.CheckBranch(name) == nil && origin.MatchBranch([]string{pattern}, name) {
			refs = append(refs, ref)
		}
		if len(refs) > maxBranches {
			return nil, errManyBranches
		}
	}
	if len(refs) == 0 {
		return nil, failure(NoBranch, nil, "the repository has no branch like "+pattern)
	}
	slices.Sort(refs)
	if at := slices.Index(refs, r.head); at > 0 {
		refs = slices.Insert(slices.Delete(refs, at, at+1), 0, r.head)
	}
	return refs, nil
}
