package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/docstore"
)

var (
	// ErrNoCommit is the error of OpenChanges when the repository does not have a
	// commit that was indexed: it was fetched elsewhere, or dropped since.
	ErrNoCommit = errors.New("the repository does not have the commit that was indexed")
	// ErrManyChanges is the error of OpenChanges when more paths changed than wanted.
	ErrManyChanges = errors.New("many paths changed")
)

// Changes is a Source of the documents at those paths at which anything changed
// between two states of the branches of a local Git repository: their content, on
// any branch, whether they are there at all, or what they are. All documents of
// such a path come, those of branches that did not change too.
//
// Files whose mode alone changed are left out: nothing is indexed of it. Nor do
// documents depend on anything but their own path and content: attributes and
// ignore files make no difference.
type Changes struct {
	*Repository

	paths []string
	from  []int
}

// Paths are those at which anything changed, ascending; at some there may be no
// document any more.
func (c *Changes) Paths() []string { return c.paths }

// From says with which of the old branches each was compared: that of its name, or
// else one that differs little.
func (c *Changes) From() []int { return c.from }

// OpenChanges lists what changed between the commits of old branches, of which there
// is one, and those of branches in the repository at gitDir. The time it takes is for
// what changed, not for what is there. Errors are ErrNoCommit,
// ErrManyChanges for more paths than most, a *Failure, or the cause of ctx.
func OpenChanges(ctx context.Context, gitDir string, old, branches []docstore.Branch, most int, limits Limits) (*Changes, error) {
	r := &Repository{gitDir: gitDir, limits: limits.withDefaults(), branches: branches, env: repositoryEnv()}
	c := &Changes{Repository: r}
	err := c.list(ctx, old, most)
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, ErrNoCommit), errors.Is(err, ErrManyChanges):
		return nil, err
	}
	return nil, asFailure(err)
}

func (c *Changes) list(ctx context.Context, old []docstore.Branch, most int) error {
	before, err := c.trees(ctx, old)
	if err != nil {
		return err
	}
	after, err := c.trees(ctx, c.branches)
	if err != nil {
		return err
	}
	if c.from, err = c.ancestors(ctx, old, before, after); err != nil {
		return err
	}
	was := make([]string, len(after))
	for i, from := range c.from {
		was[i] = before[from]
	}
	changes, err := c.diff(ctx, was, after)
	if err != nil {
		return err
	}
	if err := c.lost(ctx, changes, before, after); err != nil {
		return err
	}
	for _, tree := range changes {
		for _, e := range tree {
			c.paths = append(c.paths, e.path)
		}
	}
	slices.Sort(c.paths)
	if c.paths = slices.Compact(c.paths); len(c.paths) > most {
		return fmt.Errorf("%w: %d", ErrManyChanges, len(c.paths))
	}
	if len(c.branches) > 1 { // a change on one of them is about the others too
		if changes, err = c.present(ctx, after); err != nil {
			return err
		}
	}
	c.listing = &listing{sets: newBranchSets(), oidLen: len(after[0]) / 2}
	for i, tree := range after {
		c.listing.merge(c.existing(changes[tree]), uint32(i))
	}
	return c.measure(ctx, c.listing)
}

// trees are the names of the trees of the branches' commits.
func (r *Repository) trees(ctx context.Context, branches []docstore.Branch) ([]string, error) {
	var stdin bytes.Buffer
	for _, b := range branches {
		fmt.Fprintf(&stdin, "%s^{tree}\n", b.Commit)
	}
	out, err := r.git(ctx, stdin.Bytes(), "cat-file", "--buffer", "--batch-check=%(objecttype) %(objectname)")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(branches) {
		return nil, failure(Damaged, nil, "git did not tell the tree of every commit")
	}
	for i := range lines {
		oid, isTree := strings.CutPrefix(lines[i], "tree ")
		if !isTree {
			return nil, fmt.Errorf("%w: %s of branch %q", ErrNoCommit, branches[i].Commit, branches[i].Name)
		}
		lines[i] = oid
	}
	return lines, nil
}

// change is what is at a path now. What was removed there has no object.
type change struct {
	treeEntry

	removed bool
}

// diff compares trees one by one and gives, by the second one of each pair, what
// differs there, in path order. With options that end with paths it looks at nothing
// else, but may give what is below them too.
func (r *Repository) diff(ctx context.Context, before, after []string, options ...string) (map[string][]change, error) {
	var stdin bytes.Buffer
	asked := make(map[[2]string]bool)
	changes := make(map[string][]change)
	for i := range after {
		pair := [2]string{before[i], after[i]}
		if pair[0] != pair[1] && !asked[pair] {
			asked[pair] = true
			fmt.Fprintf(&stdin, "%s %s\n", pair[0], pair[1])
		}
	}
	if stdin.Len() == 0 {
		return changes, nil
	}
	args := append([]string{"--literal-pathspecs", "diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames",
		"--ignore-submodules=none"}, options...)
	out, err := r.git(ctx, stdin.Bytes(), args...)
	if err != nil {
		return nil, err
	}
	return changes, parseDiff(out, changes)
}

// parseDiff reads, for each pair, "TREE SP TREE LF" and then for each change
// ":MODE SP MODE SP OID SP OID SP STATUS NUL PATH NUL".
func parseDiff(out []byte, changes map[string][]change) error {
	tree := ""
	for len(out) > 0 {
		if out[0] != ':' {
			line, rest, ok := bytes.Cut(out, []byte{'\n'})
			_, second, two := bytes.Cut(line, []byte{' '})
			if !ok || !two {
				return errDiff
			}
			tree, out = string(second), rest
			continue
		}
		meta, rest, ok := bytes.Cut(out[1:], []byte{0})
		path, rest, ok2 := bytes.Cut(rest, []byte{0})
		if !ok || !ok2 || tree == "" {
			return errDiff
		}
		out = rest
		c, same, err := parseChange(bytes.Fields(meta), path)
		if err != nil {
			return err
		}
		if !same && len(path) <= MaxPath {
			changes[tree] = append(changes[tree], c)
		}
	}
	return nil
}

var errDiff = failure(Damaged, nil, "git told of changes in a way that cannot be read")

// parseChange reads what is at a path now, and whether it is indexed as before.
func parseChange(fields [][]byte, path []byte) (c change, same bool, err error) {
	if len(fields) != 5 {
		return c, false, errDiff
	}
	line := slices.Concat(fields[1], []byte(" - "), fields[3], []byte{'\t'}, path)
	if c.treeEntry, _, err = parseTreeLine(line); err != nil {
		return c, false, err
	}
	c.removed = string(fields[1]) == "000000"
	same = !c.removed && bytes.Equal(fields[2], fields[3]) && skipByMode(string(fields[0])) == c.skip
	return c, same, nil
}

// emptyTree is the tree without entries, which git knows without having it.
func emptyTree(oidLen int) string {
	if oidLen == 64 {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

// maxPathspec bounds the bytes of paths that git is asked for by its command line.
const maxPathspec = 64 << 10

// present is what is at the changed paths, in each tree.
func (c *Changes) present(ctx context.Context, trees []string) (map[string][]change, error) {
	if len(c.paths) == 0 {
		return nil, nil
	}
	size := 0
	for _, p := range c.paths {
		size += len(p) + 1
	}
	paths := c.paths
	if size > maxPathspec {
		paths = nil // looking at everything takes less than asking often
	}
	empty := make([]string, len(trees))
	for i := range empty {
		empty[i] = emptyTree(len(trees[i]))
	}
	all, err := c.diff(ctx, empty, trees, append([]string{"--"}, paths...)...)
	for tree, list := range all {
		all[tree] = slices.DeleteFunc(list, func(e change) bool {
			_, changed := slices.BinarySearch(c.paths, e.path)
			return !changed
		})
	}
	return all, err
}

// existing are the entries of what is there.
func (c *Changes) existing(changes []change) []treeEntry {
	var tree []treeEntry
	for _, e := range changes {
		if e.removed {
			continue
		}
		if e.skip == docstore.NotSkipped && c.limits.tooDeep([]byte(e.path)) {
			e.skip = docstore.TooDeep
		}
		tree = append(tree, e.treeEntry)
	}
	return inOrder(tree)
}
