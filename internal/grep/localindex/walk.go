package localindex

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/trawl-search/trawl/internal/grep/ignore"
)

// folder records the searched files and folders in a folder. Without a stamp it may be incomplete.
type folder struct {
	name    string
	stamp   stamp // zero: it is listed anew next time
	rules   []ruleFile
	files   []file    // by name
	folders []*folder // by name
}

// file is a searched file.
type file struct {
	name  string
	stamp stamp
	shard uint32 // the shard with its present content; 0 for none
}

// ruleFile is a file whose rules decide which files are searched.
type ruleFile struct {
	path  string
	stamp stamp
}

// walker brings a folder up to date.
type walker struct {
	ctx    context.Context
	opts   *ignore.Options
	began  time.Time
	passBy string // a folder to skip

	group  *errgroup.Group
	listed atomic.Int64 // folders that had to be listed
	mu     sync.Mutex
	errs   []error
}

// walk brings the record f of the folder at dir, an absolute path, up to date. It may be empty
// before. Path is the folder's from the working directory, "" for that itself.
func (w *walker) walk(f *folder, dir, path string, rulesChanged bool) error {
	w.group = new(errgroup.Group)
	w.group.SetLimit(2 * runtime.GOMAXPROCS(0))
	w.visit(f, dir, path, rulesChanged, &lazyRules{dir: dir, opts: w.opts})
	if err := w.group.Wait(); err != nil {
		return err
	}
	return w.ctx.Err()
}

// rulesChanged reports whether the files with rules changed in f, the folder at dir, or on the way down from it to the folder at a path below.
func (w *walker) rulesChanged(f *folder, dir, below string) bool {
	for name := range strings.SplitSeq(below, "/") {
		now := folder{}
		if w.lookAtRules(&now, dir, false); !slices.Equal(now.rules, f.rules) {
			return true
		}
		f, dir = f.below(name), filepath.Join(dir, name)
	}
	return false
}

// below is the folder at a path in f, "" being f itself; nil if f has none there.
func (f *folder) below(path string) *folder {
	if path == "" {
		return f
	}
	for name := range strings.SplitSeq(path, "/") {
		i, ok := slices.BinarySearchFunc(f.folders, name, func(f *folder, name string) int { return cmp.Compare(f.name, name) })
		if !ok {
			return nil
		}
		f = f.folders[i]
	}
	return f
}

// lazyRules are the rules of a folder, which are read only if it, or one in it, is listed.
type lazyRules struct {
	parent *lazyRules
	dir    string
	opts   *ignore.Options
	once   sync.Once
	tree   *ignore.Tree
}

func (l *lazyRules) get() *ignore.Tree {
	l.once.Do(func() {
		if l.parent == nil {
			l.tree = ignore.Root(l.dir, l.opts)
			return
		}
		l.tree = l.parent.get().Below(l.dir)
	})
	return l.tree
}

// fail records an error of reading. The walk continues.
func (w *walker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

// visit brings f, the folder at dir, up to date, and the folders in it.
func (w *walker) visit(f *folder, dir, path string, rulesChanged bool, rules *lazyRules) {
	if w.ctx.Err() != nil {
		return
	}
	fd, err := openFolder(dir)
	if err != nil {
		*f = folder{name: f.name}
		w.fail(err)
		return
	}
	rulesChanged = w.look(f, fd, dir, path, rulesChanged, rules)
	_ = unix.Close(fd) // before descending: a path may have more folders than a process may have open files
	for _, below := range f.folders {
		dir := filepath.Join(dir, below.name)
		visit := func() error {
			w.visit(below, dir, joined(path, below.name), rulesChanged, &lazyRules{parent: rules, dir: dir, opts: w.opts})
			return nil
		}
		if !w.group.TryGo(visit) {
			_ = visit() // it has no error
		}
	}
}

// openFolder opens a folder to stat its entries. An os.File would take three more system calls.
func openFolder(dir string) (fd int, err error) {
	fd, err = again(func() (int, error) { return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return fd, nil
}

// look brings f, which is open as fd, up to date, without the folders in it. It reports whether the rules for these
// changed.
func (w *walker) look(f *folder, fd int, dir, path string, rulesChanged bool, rules *lazyRules) bool {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		*f = folder{name: f.name}
		w.fail(fmt.Errorf("looking at %s: %w", dir, err))
		return rulesChanged
	}
	now := stampOf(&s)
	if !now.settled(w.began) {
		now = stamp{}
	}
	same := f.stamp != stamp{} && now == f.stamp
	f.stamp = now
	before := f.rules
	w.lookAtRules(f, dir, same)
	rulesChanged = rulesChanged || !slices.Equal(f.rules, before)
	if !same || rulesChanged {
		w.listed.Add(1)
		if err := w.list(f, dir, path, rules.get()); err != nil {
			f.stamp = stamp{}
			w.fail(err)
		}
	}
	w.stat(f, fd)
	return rulesChanged
}

// lookAtRules fills in the files with rules. In an unchanged folder they are the same as before.
func (w *walker) lookAtRules(f *folder, dir string, same bool) {
	if w.opts.NoRules {
		return
	}
	var now []ruleFile
	if same {
		for _, r := range f.rules {
			now = append(now, w.rule(r.path, dir))
		}
		f.rules = now
		return
	}
	for _, name := range ignore.RuleFiles {
		if r := w.rule(name, dir); r.stamp != (stamp{}) {
			now = append(now, r)
		}
	}
	if exclude, ok := ignore.ExcludeFile(dir); ok {
		now = append(now, w.rule(exclude, dir))
	}
	f.rules = now
}

// rule returns the present state of a file with rules. A file that changed just now counts as
// changed again next time.
func (w *walker) rule(path, dir string) ruleFile {
	at := path
	if !filepath.IsAbs(path) {
		at = filepath.Join(dir, path)
	}
	r := ruleFile{path: path, stamp: statFile(at)}
	if r.stamp != (stamp{}) && !r.stamp.settled(w.began) {
		r.stamp.inode, r.stamp.changed = 0, w.began.UnixNano()
	}
	return r
}

// outside are the files with rules above the folder, and those for all repositories.
func (w *walker) outside(dir string) []ruleFile {
	if w.opts.NoRules {
		return nil
	}
	var found []ruleFile
	if w.opts.GlobalGit != "" {
		found = append(found, w.rule(w.opts.GlobalGit, dir))
	}
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		for _, name := range ignore.RuleFiles {
			found = append(found, w.rule(filepath.Join(up, name), dir))
		}
		if exclude, ok := ignore.ExcludeFile(up); ok {
			found = append(found, w.rule(exclude, dir))
		}
		if up == filepath.Dir(up) {
			return found
		}
	}
}

// list updates which regular files and folders are in f, without skipped ones. It keeps the records of those that stay.
func (w *walker) list(f *folder, dir, path string, rules *ignore.Tree) error {
	entries, err := os.ReadDir(dir) // sorted by name; with an error, the entries before it
	oldFiles, oldFolders := f.files, f.folders
	f.files, f.folders = nil, nil
	for _, e := range entries {
		name, isDir := e.Name(), e.IsDir()
		if !isDir && !e.Type().IsRegular() || rules.PassesOver(name, joined(path, name), isDir) {
			continue
		}
		switch {
		case !isDir:
			i, ok := slices.BinarySearchFunc(oldFiles, name, func(f file, name string) int { return cmp.Compare(f.name, name) })
			if ok {
				f.files = append(f.files, oldFiles[i])
			} else {
				f.files = append(f.files, file{name: name})
			}
		case filepath.Join(dir, name) != w.passBy:
			i, ok := slices.BinarySearchFunc(oldFolders, name, func(f *folder, name string) int { return cmp.Compare(f.name, name) })
			if ok {
				f.folders = append(f.folders, oldFolders[i])
			} else {
				f.folders = append(f.folders, &folder{name: name})
			}
		}
	}
	return err //nolint:wrapcheck // it names the folder
}

// stat updates the stamps of the files of f, which is open as fd. It takes changed files out of their shard, and
// removes files that are gone or no longer regular files.
func (w *walker) stat(f *folder, fd int) {
	var s unix.Stat_t
	left := f.files[:0]
	for _, file := range f.files {
		if err := unix.Fstatat(fd, file.name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if now := stampOf(&s); now != file.stamp {
			file.stamp, file.shard = now, 0
		}
		left = append(left, file)
	}
	f.files = left
}
