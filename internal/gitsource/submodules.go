package gitsource

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/docstore"
)

const (
	// submoduleRefs are the refs of a mirror that name the commits of submodules it has.
	submoduleRefs = "refs/submodules/"
	// maxSubmodules bounds the commits of submodules in a mirror, and the folders that are asked for them.
	maxSubmodules = 1024
)

var errManySubmodules = failure(TooLarge, nil, fmt.Sprintf("it has more than %d submodules", maxSubmodules))

// submodules returns the folders in which git keeps the submodules that were checked out in a local
// repository: below its own folder of data, so that whoever may read that may read them.
func (l *localRepo) submodules(gitDir string) (folders []string, err error) {
	root := filepath.Join(gitDir, "modules")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(path, "HEAD")); err != nil {
			return nil //nolint:nilerr // a folder on the way to others, as the name of a submodule may have slashes
		}
		if folders = append(folders, path); len(folders) > maxSubmodules {
			return errManySubmodules
		}
		return cmp.Or(l.check(path), fs.SkipDir)
	})
	return folders, err
}

// fetchSubmodules fetches the commits of submodules that the branches name from the folders that
// have them. It leaves out those that no folder has, or that git cannot read there: a submodule that is not whole
// does not keep the rest out.
func (s *session) fetchSubmodules(ctx context.Context, mirror string, branches []docstore.Branch) error {
	if len(s.submodules) == 0 {
		return nil
	}
	wanted := make(map[string]bool)
	repo := newRepository(ctx, mirror, nil, Limits{})
	for _, b := range branches {
		err := repo.records(ctx, nil, byZero, func(line []byte) error {
			if commit, ok := bytes.CutPrefix(line, []byte("160000 commit ")); ok {
				commit, _, _ = bytes.Cut(commit, []byte("\t"))
				wanted[string(commit)] = true
			}
			if len(wanted) > maxSubmodules {
				return errManySubmodules
			}
			return nil
		}, "ls-tree", "-r", "-z", "--full-tree", b.Commit)
		if err != nil {
			return err
		}
	}
	for _, folder := range s.submodules {
		err := s.fetchSubmodule(ctx, mirror, folder, wanted)
		if fail, ok := errors.AsType[*Failure](err); err != nil && (!ok || slices.Contains([]Kind{NoSpace, TimedOut, TooLarge, Killed}, fail.Kind)) {
			return err
		}
		if len(wanted) == 0 {
			return nil
		}
	}
	return nil
}

// fetchSubmodule fetches those of the wanted commits that a folder has, and takes them off the wanted ones.
func (s *session) fetchSubmodule(ctx context.Context, mirror, folder string, wanted map[string]bool) error {
	asked := strings.NewReader(strings.Join(slices.Sorted(maps.Keys(wanted)), "\n") + "\n")
	// Without a working tree named here git looks for that of the submodule, which may be gone.
	out, err := s.remote(ctx, "", asked, nil, "--git-dir="+folder, "--work-tree="+folder, "cat-file", "--buffer", "--batch-check=%(objectname) %(objecttype)")
	if err != nil {
		return err
	}
	var refs strings.Builder
	var found []string
	for line := range strings.Lines(string(out)) {
		if commit, ok := strings.CutSuffix(line, " commit\n"); ok {
			fmt.Fprintf(&refs, "+%s:%s%[1]s\n", commit, submoduleRefs)
			found = append(found, commit)
		}
	}
	if len(found) == 0 {
		return nil
	}
	if err := s.fetchRefs(ctx, mirror, folder, refs.String(), nil, "--depth=1"); err != nil {
		return err
	}
	for _, commit := range found {
		delete(wanted, commit)
	}
	return nil
}

// submodules returns the commits of submodules that the mirror has.
func (r *Repository) submodules(ctx context.Context) (map[string]bool, error) {
	if _, err := os.Stat(filepath.Join(r.gitDir, submoduleRefs)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // fetches write a file for each ref, and nothing packs these
	}
	out, err := r.git(ctx, nil, "for-each-ref", "--format=%(objectname)", submoduleRefs)
	have := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		have[strings.TrimSuffix(line, "\n")] = true
	}
	return have, err
}

// expand replaces the submodules of a tree that the mirror has by their files. Submodules of
// submodules stay what they are.
func (r *Repository) expand(ctx context.Context, tree []entry, l *listing, have map[string]bool) ([]entry, error) {
	if len(have) == 0 {
		return tree, nil
	}
	files := make(map[string][]entry)
	var expanded []entry
	paths := 0
	for _, e := range tree {
		commit := fmt.Sprintf("%x", e.oid[:l.oidLen])
		if e.skip != docstore.Submodule || !have[commit] {
			expanded = append(expanded, e)
			continue
		}
		if files[commit] == nil {
			var err error
			if files[commit], err = r.tree(ctx, commit, l, false); err != nil {
				return nil, err
			}
		}
		for _, file := range files[commit] {
			file.path = e.path + "/" + file.path
			if paths += len(file.path); paths > maxPaths || len(expanded) >= r.limits.MaxDocuments {
				return nil, r.tooMany()
			}
			if len(file.path) > MaxPath {
				l.omitted++
				continue
			}
			expanded = append(expanded, file)
		}
	}
	return inOrder(expanded), nil
}
