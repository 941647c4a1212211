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
)

var (
	// ErrNoCommit is the error of OpenChanges if the repository lacks an indexed commit:
	// another indexer fetched it, or it was dropped since.
	ErrNoCommit = errors.New("the repository does not have the commit that was indexed")
	// ErrManyChanges is the error of OpenChanges if more paths changed than allowed.
	ErrManyChanges = errors.New("many paths changed")
)

// Changes is a Source of the documents at changed paths. A path changed if between two
// states of a local Git repository's branches its content, existence or type changed on
// any branch. All documents at such a path are included, also those of unchanged
// branches.
//
// A change of a file's mode alone does not count, since modes are not indexed. A
// document depends only on its own path and content: attributes and ignore files have
// no effect.
type Changes struct {
	*Repository

	paths []string
	from  []int
}

// Paths returns the changed paths in ascending order, including those of deleted
// documents.
func (c *Changes) Paths() []string { return c.paths }

// From returns for each branch the index of the old branch that it was compared with:
// the one of the same name, or else one that differs little.
func (c *Changes) From() []int { return c.from }

// OpenChanges lists the changes between the commits of the old branches, at least one,
// and those of branches in the repository at gitDir. Its time grows with the changes,
// not with the repository. Errors are ErrNoCommit, ErrManyChanges for more paths than
// most, a *Failure, or the cause of ctx.
func OpenChanges(ctx context.Context, gitDir string, old, branches []docstore.Branch, most int, limits Limits) (*Changes, error) {
	c := &Changes{Repository: newRepository(ctx, gitDir, branches, limits)}
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
	if submodules, err := c.submodules(ctx); err != nil || len(submodules) > 0 {
		return cmp.Or(err, fmt.Errorf("%w: any file of a submodule may have changed", ErrManyChanges))
	}
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
	if len(c.branches) > 1 { // also the documents of the other branches at these paths
		if changes, err = c.present(ctx, after); err != nil {
			return err
		}
	}
	c.listing = &listing{sets: newBranchSets(), oidLen: len(after[0]) / 2}
	for i, tree := range after {
		if err := c.listing.merge(existing(changes[tree]), uint32(i)); err != nil {
			return err
		}
	}
	return c.measure(ctx, c.listing)
}

// trees returns the names of the trees of the branches' commits.
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
		return nil, failure(Damaged, nil, "git did not list the tree of every commit")
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

// change is the new state of a path. A removed entry has no object.
type change struct {
	entry

	removed bool
}

// diff compares pairs of trees and returns the differences by the second tree of each
// pair, in path order. Options may end with paths: then it returns differences only at
// these paths and below them.
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
	d := diffReader{changes: changes}
	if err := r.records(ctx, &stdin, d.ends, d.record, args...); err != nil {
		return nil, err
	}
	return changes, nil
}

// diffReader reads, for each pair, "TREE SP TREE LF" and then for each change
// ":MODE SP MODE SP OID SP OID SP STATUS NUL PATH NUL".
type diffReader struct {
	changes map[string][]change
	tree    string
	// meta are the fields of the change whose path comes next; nil if no path comes next.
	meta  [][]byte
	count int
	bytes int // of paths
}

// ends returns the byte that ends the next record.
func (d *diffReader) ends(first byte) byte {
	if d.meta == nil && first != ':' {
		return '\n'
	}
	return 0
}

// record reads the names of two trees, the fields of a change, or a path.
func (d *diffReader) record(record []byte) error {
	switch {
	case d.meta != nil:
		meta := d.meta
		d.meta = nil
		return d.add(meta, record)
	case len(record) > 0 && record[0] == ':' && d.tree != "":
		d.meta = bytes.Fields(bytes.Clone(record[1:]))
		return nil
	}
	_, second, two := bytes.Cut(record, []byte{' '})
	if !two {
		return errDiff
	}
	d.tree = string(second)
	return nil
}

// add adds the change of a path.
func (d *diffReader) add(meta [][]byte, path []byte) error {
	c, same, err := parseChange(meta, path)
	if err != nil || same || len(path) > MaxPath {
		return err
	}
	if d.bytes += len(path); d.bytes > maxPaths {
		return failure(TooLarge, nil, fmt.Sprintf("the paths of its changes take more than %d bytes", maxPaths))
	}
	if d.count++; d.count > maxChanges {
		return failure(TooLarge, nil, fmt.Sprintf("it has more than %d changes", maxChanges))
	}
	d.changes[d.tree] = append(d.changes[d.tree], c)
	return nil
}

// maxChanges bounds the changes that one comparison of trees may list.
const maxChanges = 1 << 23

var errDiff = failure(Damaged, nil, "git listed changes in a form that cannot be read")

// parseChange reads the new state of a path, and whether it is indexed as before.
func parseChange(fields [][]byte, path []byte) (c change, same bool, err error) {
	if len(fields) != 5 {
		return c, false, errDiff
	}
	line := slices.Concat(fields[1], []byte(" - "), fields[3], []byte{'\t'}, path)
	if c.entry, _, err = parseTreeLine(line); err != nil {
		return c, false, err
	}
	c.removed = string(fields[1]) == "000000"
	same = !c.removed && bytes.Equal(fields[2], fields[3]) && skipByMode(string(fields[0])) == c.skip
	return c, same, nil
}

// emptyTree returns the name of the empty tree, which git knows in every repository.
func emptyTree(oidLen int) string {
	if oidLen == 64 {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
}

// maxPathspec bounds the bytes of paths on git's command line.
const maxPathspec = 64 << 10

// present returns the entries at the changed paths, by tree.
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
		paths = nil // one listing of everything is cheaper than many of parts
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

// existing returns the entries that were not removed.
func existing(changes []change) (tree []entry) {
	for _, e := range changes {
		if !e.removed {
			tree = append(tree, e.entry)
		}
	}
	return inOrder(tree)
}
