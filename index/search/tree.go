package search

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// TreeOptions say which part of a repo's tree is listed.
type TreeOptions struct {
	Branch string
	// Folder is the path of a folder with a slash at its end; empty for the root.
	Folder []byte
	// Depth is how many levels are listed; at least 1. Of a folder on a higher level only its contents are entries.
	Depth uint32
	// After is the path of the entry that ended the previous part; nil to begin at the first one.
	After []byte
	// MaxEntries bounds the entries, and MaxBytes the bytes of their paths. There is always room for one.
	MaxEntries, MaxBytes int
}

// Tree is a part of a repo's tree.
type Tree struct {
	// Entries are in the order of their paths.
	Entries []TreeEntry
	// More is set if others follow.
	More bool
}

// TreeEntry is a file or a folder.
type TreeEntry struct {
	// Path is the whole path in the repo. That of a folder ends with a slash.
	Path []byte
	// Files is the number of files in a folder and below it; 0 for a file.
	Files uint64
	// Size, Language and Skip are those of a file, as in File.
	Size     uint64
	Language string
	Skip     docstore.SkipReason
}

// Tree lists the files and folders of a repo on a branch, as far as they are in the shard. It reads
// paths and no content. Of the search options it uses Repos and Overlays.
func (s *Shard) Tree(ctx context.Context, repo string, of Options, opts TreeOptions) (tree *Tree, err error) {
	err = s.with(ctx, nil, Options{Repos: of.Repos, Overlays: of.Overlays}, func(run *search) error {
		tree, err = run.tree(repo, &opts)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the tree of %s in shard %s: %w", repo, s.Name(), err)
	}
	return tree, nil
}

func (s *search) tree(repo string, opts *TreeOptions) (*Tree, error) {
	tree := new(Tree)
	i, ok, err := s.docs.FindRepo(repo)
	if err != nil || !ok {
		return tree, err
	}
	view, err := s.branchesNow(i)
	if err != nil {
		return nil, err
	}
	on := treeBranch{place: slices.IndexFunc(view.now, func(b docstore.Branch) bool { return b.Name == opts.Branch }), has: map[uint32]bool{}}
	if on.place < 0 {
		return tree, nil
	}
	s.docs.AnnounceNames()
	doc, end, err := s.docs.SeekPath(i, opts.start())
	if err != nil {
		return nil, err
	}
	for size := 0; doc < end && !tree.More; doc++ {
		if err := s.tick(); err != nil {
			return nil, err
		}
		s.doc.reset(doc, 0, i)
		path, err := s.doc.loadPath()
		if err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(path, opts.Folder) {
			break
		}
		if !s.repos.shows(doc, i) {
			continue
		}
		if held, err := on.holds(s); err != nil {
			return nil, err
		} else if !held {
			continue
		}
		path = path[:opts.entry(path)]
		if last := len(tree.Entries) - 1; last >= 0 && bytes.Equal(tree.Entries[last].Path, path) {
			tree.Entries[last].Files++ // only a folder has several documents of one branch
			continue
		}
		if size += len(path); len(tree.Entries) > 0 && (len(tree.Entries) >= opts.MaxEntries || size > opts.MaxBytes) {
			tree.More = true
			break
		}
		entry, err := s.treeEntry(doc, path)
		if err != nil {
			return nil, err
		}
		tree.Entries = append(tree.Entries, entry)
	}
	return tree, nil
}

// start is the least path that a document of the listing can have.
func (o *TreeOptions) start() []byte {
	after := bytes.Clone(o.After)
	switch n := len(after); {
	case n == 0:
	case after[n-1] == '/':
		after[n-1]++ // after all that is in the folder
	default:
		after = append(after, 0)
	}
	if bytes.Compare(after, o.Folder) < 0 {
		return o.Folder
	}
	return after
}

// entry is the length of the entry of a path: the path itself, or the folder at the deepest level.
func (o *TreeOptions) entry(path []byte) int {
	n := len(o.Folder)
	for range o.Depth {
		slash := bytes.IndexByte(path[n:], '/')
		if slash < 0 {
			return len(path)
		}
		n += slash + 1
	}
	return n
}

// treeEntry is the entry of a document, which is the first one in a folder.
func (s *search) treeEntry(doc uint32, path []byte) (e TreeEntry, err error) {
	e.Path = bytes.Clone(path)
	if path[len(path)-1] == '/' {
		e.Files = 1
		return e, nil
	}
	if e.Size, err = s.docs.Size(doc); err != nil {
		return e, err
	}
	if e.Skip, err = s.docs.Skip(doc); err != nil {
		return e, err
	}
	e.Language, err = s.docs.Language(doc)
	return e, err
}

// treeBranch is a branch of a repo, and which sets of branches have it.
type treeBranch struct {
	place int
	has   map[uint32]bool
}

// holds reports whether the branch has the search's current document.
func (b *treeBranch) holds(s *search) (bool, error) {
	set, err := s.docs.BranchSet(s.doc.id)
	if err != nil {
		return false, err
	}
	has, known := b.has[set]
	if !known {
		branches, err := s.doc.loadBranches()
		if err != nil {
			return false, err
		}
		has = slices.Contains(branches, uint32(b.place))
		b.has[set] = has
	}
	return has, nil
}
