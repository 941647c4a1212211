package gitsource

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/trawl-search/trawl/index/docstore"
)

// entry is one document of a listing, or a line of git ls-tree or git diff-tree, which has no set of branches.
type entry struct {
	path string
	oid  [32]byte
	size int64 // -1 while unknown
	set  uint32
	skip docstore.SkipReason
}

// listing is the union of the trees of several branches, in path order.
type listing struct {
	entries []entry
	oidLen  int
	sets    *branchSets
	omitted int
}

// list returns the union of all branches' trees.
func (r *Repository) list(ctx context.Context) (*listing, error) {
	l := &listing{sets: newBranchSets()}
	submodules, err := r.submodules(ctx)
	if err != nil {
		return nil, err
	}
	var tree []entry
	for i, b := range r.branches {
		if i == 0 || b.Commit != r.branches[i-1].Commit {
			// Sizes cost a look-up for each file; most files are the same on all branches.
			if tree, err = r.tree(ctx, b.Commit, l, i == 0); err == nil {
				tree, err = r.expand(ctx, tree, l, submodules)
			}
			if err != nil {
				return nil, err
			}
		}
		if err := l.merge(tree, uint32(i)); err != nil {
			return nil, err
		}
		if len(l.entries) > r.limits.MaxDocuments {
			return nil, r.tooMany()
		}
	}
	return l, r.measure(ctx, l)
}

func (r *Repository) tooMany() error {
	return failure(TooLarge, nil, fmt.Sprintf("it has more documents than the limit of %d", r.limits.MaxDocuments))
}

// tree reads all entries of a commit's tree, in path order, with the sizes of files if they are wanted.
func (r *Repository) tree(ctx context.Context, commit string, l *listing, sizes bool) ([]entry, error) {
	args := []string{"ls-tree", "-r", "-z", "--full-tree", commit}
	if sizes {
		args = slices.Insert(args, 1, "-l")
	}
	var tree []entry
	paths := 0
	err := r.records(ctx, nil, byZero, func(line []byte) error {
		e, oidLen, err := parseTreeLine(line)
		if err != nil {
			return err
		}
		l.oidLen = oidLen
		if len(e.path) > MaxPath {
			l.omitted++
			return nil
		}
		if paths += len(e.path); paths > maxPaths {
			return failure(TooLarge, nil, fmt.Sprintf("the paths of its documents take more than %d bytes", maxPaths))
		}
		if tree = append(tree, e); len(tree)+l.omitted > r.limits.MaxDocuments {
			return r.tooMany()
		}
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	return inOrder(tree), nil
}

// records runs git and passes its output to each, record by record, without the byte that
// ends a record, which ends returns for the record's first byte. It passes on only the
// beginning of a record longer than maxRecord. An error of each kills git, and is
// returned.
func (r *Repository) records(ctx context.Context, stdin io.Reader, ends func(first byte) byte, each func([]byte) error, args ...string) error {
	var rest []byte // of a record whose end has not come
	return r.gitRun().stream(ctx, stdin, func(p []byte) error {
		for len(p) > 0 {
			first := p[0]
			if len(rest) > 0 {
				first = rest[0]
			}
			record, after, ended := bytes.Cut(p, []byte{ends(first)})
			if rest = append(rest, record[:min(len(record), maxRecord-len(rest))]...); !ended {
				return nil
			}
			if err := each(rest); err != nil {
				return err
			}
			rest, p = rest[:0], after
		}
		return nil
	}, r.within(args)...)
}

// byZero ends all records with a zero byte.
func byZero(byte) byte { return 0 }

// inOrder sorts a listing and removes duplicate paths. Only trees that were not made by
// git need that.
func inOrder(tree []entry) []entry {
	byPath := func(a, b entry) int { return strings.Compare(a.path, b.path) }
	if !slices.IsSortedFunc(tree, byPath) {
		slices.SortStableFunc(tree, byPath)
	}
	return slices.CompactFunc(tree, func(a, b entry) bool { return a.path == b.path })
}

// parseTreeLine reads "MODE SP TYPE SP OID TAB PATH", or with a size before the tab, which is BAD if the object is missing.
func parseTreeLine(line []byte) (entry, int, error) {
	meta, path, ok := bytes.Cut(line, []byte{'\t'})
	fields := bytes.Fields(meta)
	if !ok || len(fields) < 3 || len(fields) > 4 || len(fields[2]) > 64 {
		return entry{}, 0, failure(Damaged, nil, "git listed a tree in a form that cannot be read")
	}
	e := entry{path: string(path), size: -1, skip: skipByMode(string(fields[0]))}
	n, err := hex.Decode(e.oid[:], fields[2])
	if err != nil {
		return entry{}, 0, failure(Damaged, err, "git listed an object name that cannot be read")
	}
	if len(fields) == 4 && e.skip == docstore.NotSkipped {
		if e.size, err = strconv.ParseInt(string(fields[3]), 10, 64); err != nil {
			e.size, e.skip = 0, docstore.Unreadable
		}
	}
	return e, n, nil
}

// skipByMode returns why an entry of this mode has no content.
func skipByMode(mode string) docstore.SkipReason {
	switch mode {
	case "160000":
		return docstore.Submodule
	case "100644", "100755", "100664", "120000":
		return docstore.NotSkipped // the content of a symbolic link is its target
	}
	return docstore.Unreadable
}

// merge adds the entries of a branch's tree. Documents with the same path are in the
// order of their object ids.
func (l *listing) merge(tree []entry, branch uint32) (err error) {
	old := l.entries
	l.entries = make([]entry, 0, max(len(old), len(tree)))
	before := func(e, t *entry) bool {
		return e.path < t.path || e.path == t.path && bytes.Compare(e.oid[:], t.oid[:]) < 0
	}
	for i := range tree {
		t := &tree[i]
		n := 0
		for n < len(old) && before(&old[n], t) {
			n++
		}
		l.entries = append(l.entries, old[:n]...)
		old = old[n:]
		if len(old) == 0 || old[0].path != t.path || old[0].oid != t.oid {
			added := *t
			if added.set, err = l.sets.with(0, branch); err != nil {
				return err
			}
			l.entries = append(l.entries, added)
			continue
		}
		// An object that is a file on one branch and named as a submodule's commit on another
		// counts as a file.
		if old[0].set, err = l.sets.with(old[0].set, branch); err != nil {
			return err
		}
		old[0].skip = min(old[0].skip, t.skip)
	}
	l.entries = append(l.entries, old...)
	return nil
}

// measure finds the sizes of all blobs that are not known yet, and marks those that are too large, too deep or missing.
func (r *Repository) measure(ctx context.Context, l *listing) error {
	var stdin bytes.Buffer
	var asked []*entry
	for i := range l.entries {
		if e := &l.entries[i]; e.size < 0 && e.skip != docstore.Submodule && e.skip != docstore.Unreadable {
			fmt.Fprintf(&stdin, "%x\n", e.oid[:l.oidLen])
			asked = append(asked, e)
		}
	}
	if len(asked) > 0 {
		out, err := r.git(ctx, stdin.Bytes(), "cat-file", "--buffer", "--batch-check=%(objecttype) %(objectsize)")
		if err != nil {
			return err
		}
		lines := strings.Split(string(out), "\n")
		if len(lines) < len(asked) {
			return failure(Damaged, nil, "git did not list the size of every object")
		}
		for i, e := range asked {
			size, isBlob := strings.CutPrefix(lines[i], "blob ")
			if e.size, err = strconv.ParseInt(size, 10, 64); !isBlob || err != nil {
				e.size, e.skip = 0, docstore.Unreadable
			}
		}
	}
	for i := range l.entries {
		switch e := &l.entries[i]; {
		case e.skip != docstore.NotSkipped:
		case r.limits.tooDeep([]byte(e.path)):
			e.skip = docstore.TooDeep
		case e.size > r.limits.MaxFileSize:
			e.skip = docstore.TooLarge
		}
	}
	return nil
}
