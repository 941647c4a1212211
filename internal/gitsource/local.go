package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/lazyregexp"
)

const (
	// maxPointer bounds a file of git that names another folder, in bytes.
	maxPointer = 64 << 10
	// maxStores bounds the object stores from which a local repository and its submodules borrow; git follows
	// alternates to a depth of five.
	maxStores = 64
	// maxFolders bounds the folders that a local repository leads to: each is one that git may read.
	maxFolders = 4096
	// maxConfig bounds a file of configuration that is searched for includes, in bytes, and maxIncludes their number.
	maxConfig, maxIncludes = 1 << 20, 64
)

// localRepo finds what git would read of a local repository. It resolves symbolic links
// and checks that every folder is an allowed one: a file .git, commondir, alternates and
// links can lead git anywhere. The check holds for its own moment only: anyone who may
// write to an allowed folder can change it afterwards.
type localRepo struct {
	ctx    context.Context //nolint:containedctx // it ends with the check
	policy origin.Policy
	stores map[string]bool
	own    int // stores that are not borrowed from, at most
	// included counts the keys of configuration that include a file.
	included int
	// folders are what git reads: folders of data, object stores, and where links lead.
	folders []string
}

// gitDir returns the folder of the repository's data that git would use for a path.
func (l *localRepo) gitDir(path string) (string, error) {
	dir := path
	for range 2 { // a file .git names the folder itself
		next := filepath.Join(dir, ".git")
		info, err := os.Stat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return dir, l.check(dir)
		case err != nil:
			return "", failure(Unknown, err, "the folder cannot be read: "+err.Error())
		case info.IsDir():
			dir, err = l.resolve(next)
		default:
			dir, err = l.pointer(next, filepath.Dir(next), "gitdir: ")
		}
		if err != nil {
			return "", err
		}
	}
	return "", failure(Refused, nil, "the repository holds another one where git looks for its data")
}

// check checks where a folder of data leads.
func (l *localRepo) check(dir string) error {
	common := dir
	l.folders = append(l.folders, dir)
	if _, err := os.Lstat(filepath.Join(dir, "commondir")); err == nil {
		if common, err = l.pointer(filepath.Join(dir, "commondir"), dir, ""); err != nil {
			return err
		}
	}
	for _, folder := range []string{dir, common} {
		for _, name := range []string{"HEAD", "config", "config.worktree", "packed-refs", "shallow"} {
			if err := l.links(filepath.Join(folder, name), 0); err != nil {
				return err
			}
		}
		if err := l.links(filepath.Join(folder, "refs"), fs.ModeDir); err != nil {
			return err
		}
		l.includes(filepath.Join(folder, "config"))
		l.includes(filepath.Join(folder, "config.worktree"))
	}
	l.own++
	return l.store(filepath.Join(common, "objects"))
}

// store checks an object store, and the stores that it borrows from.
func (l *localRepo) store(dir string) error {
	dir, err := l.resolve(dir)
	if errors.Is(err, fs.ErrNotExist) || l.stores[dir] {
		return nil // git will report what is missing
	}
	if err != nil {
		return err
	}
	if l.stores[dir] = true; len(l.stores)-l.own > maxStores {
		return failure(Refused, nil, "the repository borrows objects from too many others")
	}
	if err := l.links(dir, fs.ModeDir); err != nil {
		return err
	}
	text, err := readPointer(filepath.Join(dir, "info", "alternates"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '"':
			return failure(Refused, nil, "the repository borrows objects from a folder with a quoted name")
		case !filepath.IsAbs(line):
			line = filepath.Join(dir, line)
		}
		if err := l.store(line); err != nil {
			return err
		}
	}
	return nil
}

// configLine matches a line of git's configuration: the name of a section that begins there, and the value of a key path, quoted or not.
var configLine = lazyregexp.New(`(?im)^[ \t]*(?:\[([^\s"\]]*)[ \t]*(?:"(?:\\.|[^"\\\n])*")?\][ \t]*)?(?:path[ \t]*=[ \t]*(?:"([^"\n]*)"|([^#;"\r\n]*)))?`)

// includes adds the files that a file of configuration includes, for git ends at one that it may not read. Those out of
// the allowed folders are left out: git does not read each of them, as some have a condition.
func (l *localRepo) includes(file string) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxConfig {
		return // git will report it
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	section := ""
	for _, m := range configLine().FindAllStringSubmatch(string(text), -1) {
		if m[1] != "" {
			section = strings.ToLower(m[1])
		}
		path := strings.ReplaceAll(strings.TrimRight(m[2]+m[3], " \t"), `\\`, `\`)
		if path == "" || section != "include" && section != "includeif" || l.included == maxIncludes {
			continue
		}
		l.included++
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(file), path)
		}
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil || slices.Contains(l.folders, resolved) || l.policy.CheckResolvedFolder(resolved) != nil {
			continue
		}
		if info, err := os.Stat(resolved); err != nil || !info.Mode().IsRegular() {
			continue // git would wait at a pipe
		}
		l.folders = append(l.folders, resolved)
		l.includes(path)
	}
}

// links checks every symbolic link at and below a path, and that nothing but plain files is there, and folders if other
// is fs.ModeDir. At a pipe or a device git would wait.
func (l *localRepo) links(path string, other fs.FileMode) error {
	return filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			var info fs.FileInfo
			if path, err = l.resolve(path); err == nil {
				info, err = os.Stat(path)
				d = fs.FileInfoToDirEntry(info)
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err == nil && d.Type()&^other != 0:
			return failure(Refused, nil, fmt.Sprintf("%q in the repository's data is not a plain file", filepath.Base(path)))
		}
		return err
	})
}

// pointer resolves the path that a file holds, which is relative to a folder.
func (l *localRepo) pointer(file, folder, prefix string) (string, error) {
	if _, err := l.resolve(file); err != nil {
		return "", err
	}
	text, err := readPointer(file)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(strings.TrimRight(text, "\r\n"), prefix)
	if !ok || path == "" || strings.ContainsAny(path, "\r\n\x00") {
		return "", failure(Damaged, nil, "a file that names the repository's folder cannot be read")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	return l.resolve(path)
}

// resolve resolves symbolic links and checks that they do not lead out of the allowed
// folders.
func (l *localRepo) resolve(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if l.folders = append(l.folders, resolved); len(l.folders) > maxFolders {
		return "", failure(Refused, nil, "links in the repository's data lead to too many places")
	}
	return resolved, l.policy.CheckResolvedFolder(resolved)
}

// readPointer reads a small file; "" if there is none.
func readPointer(file string) (string, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxPointer:
		return "", failure(Refused, nil, "a file that names other folders is not a small plain file")
	}
	text, err := os.ReadFile(file)
	return string(text), err
}
