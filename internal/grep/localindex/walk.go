package localindex

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/trawl-search/trawl/internal/grep/ignore"
)

// folder is what is known of a folder: what of it is searched.
type folder struct {
	name    string
	stamp   stamp // zero: it is listed anew next time
	rules   []ruleFile
	files   []file    // by name
	folders []*folder // by name
}

// file is one that is searched.
type file struct {
	name  string
	stamp stamp
	shard uint32 // that holds what it holds; 0 for none
}

// ruleFile is a file of which it depends what is searched.
type ruleFile struct {
	path  string
	stamp stamp
}

// walker brings a folder up to date.
type walker struct {
	ctx    context.Context
	opts   *ignore.Options
	began  time.Time
	shown  string // path of the folder as it is shown
	passBy string // a folder that is not searched

	group  *errgroup.Group
	listed atomic.Int64 // folders that had to be listed
	mu     sync.Mutex
	errs   []error
}

// walk returns the folder at dir, an absolute path, as it is now. Old is how it was, nil if that is not known.
func (w *walker) walk(dir string, old *folder, rulesChanged bool) (*folder, error) {
	w.group = new(errgroup.Group)
	w.group.SetLimit(2 * runtime.GOMAXPROCS(0))
	now := new(folder)
	w.visit(now, dir, w.shown, old, rulesChanged, &lazyRules{dir: dir, opts: w.opts})
	if err := w.group.Wait(); err != nil {
		return nil, err
	}
	return now, w.ctx.Err()
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

// fail notes what could not be read, and goes on.
func (w *walker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

// visit fills in what the folder at dir is now. Old may be nil.
func (w *walker) visit(now *folder, dir, shown string, old *folder, rulesChanged bool, rules *lazyRules) {
	if w.ctx.Err() != nil {
		return
	}
	handle, err := os.Open(dir)
	if err != nil {
		w.fail(err)
		return
	}
	defer handle.Close()
	fd := int(handle.Fd())
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		w.fail(fmt.Errorf("looking at %s: %w", dir, err))
		return
	}
	if now.stamp = stampOf(&s); !now.stamp.settled(w.began) {
		now.stamp = stamp{}
	}
	same := old != nil && now.stamp != stamp{} && now.stamp == old.stamp
	w.lookAtRules(now, dir, old, same)
	rulesChanged = rulesChanged || old == nil || !slices.Equal(now.rules, old.rules)
	var names, folders []string
	if same && !rulesChanged {
		for _, f := range old.files {
			names = append(names, f.name)
		}
		for _, f := range old.folders {
			folders = append(folders, f.name)
		}
	} else {
		w.listed.Add(1)
		if names, folders, err = w.list(handle, dir, shown, rules.get()); err != nil {
			now.stamp = stamp{}
			w.fail(err)
		}
	}
	w.stat(now, fd, names, old)
	handle.Close() // before those below: a path may have more folders than a process open files
	w.visitBelow(now, folders, dir, shown, old, rulesChanged, rules)
}

// visitBelow visits the folders in one.
func (w *walker) visitBelow(now *folder, names []string, dir, shown string, old *folder, rulesChanged bool, rules *lazyRules) {
	now.folders = make([]*folder, len(names))
	for i, name := range names {
		below := &folder{name: name}
		now.folders[i] = below
		var was *folder
		if old != nil {
			was = old.folder(name)
		}
		path := filepath.Join(dir, name)
		visit := func() error {
			w.visit(below, path, JoinShown(shown, name), was, rulesChanged, &lazyRules{parent: rules, dir: path, opts: w.opts})
			return nil
		}
		if !w.group.TryGo(visit) {
			_ = visit() // it has no error
		}
	}
}

// JoinShown is the path of an entry of a folder as it is shown: below the path of the folder as it was given.
func JoinShown(folder, name string) string {
	if folder == "" || folder[len(folder)-1] == '/' {
		return folder + name
	}
	return folder + "/" + name
}

// lookAtRules fills in the files with rules. If the folder is the same as before they are those it had.
func (w *walker) lookAtRules(now *folder, dir string, old *folder, same bool) {
	if w.opts.NoRules {
		return
	}
	if same {
		for _, r := range old.rules {
			now.rules = append(now.rules, w.rule(r.path, dir))
		}
		return
	}
	for _, name := range ignore.RuleFiles {
		if r := w.rule(name, dir); r.stamp != (stamp{}) {
			now.rules = append(now.rules, r)
		}
	}
	if exclude, ok := ignore.ExcludeFile(dir); ok {
		now.rules = append(now.rules, w.rule(exclude, dir))
	}
}

// rule looks at a file with rules. One that changed just now counts as changed again next time.
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

// list returns the names of regular files and of folders in a folder, each ascending, that are not passed over.
func (w *walker) list(handle *os.File, dir, shown string, rules *ignore.Tree) (files, folders []string, err error) {
	entries, err := handle.ReadDir(-1)
	for _, e := range entries {
		isDir := e.IsDir()
		if !isDir && !e.Type().IsRegular() || rules.PassesOver(e.Name(), JoinShown(shown, e.Name()), isDir) {
			continue
		}
		switch {
		case !isDir:
			files = append(files, e.Name())
		case filepath.Join(dir, e.Name()) != w.passBy:
			folders = append(folders, e.Name())
		}
	}
	slices.Sort(files)
	slices.Sort(folders)
	return files, folders, err
}

// stat fills in the files, as they are now. Those that did not change are in the shard that they were in.
func (w *walker) stat(now *folder, fd int, names []string, old *folder) {
	now.files = make([]file, 0, len(names))
	var before []file
	if old != nil {
		before = old.files
	}
	for _, name := range names {
		var s unix.Stat_t
		if err := unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG {
			continue // it is gone
		}
		f := file{name: name, stamp: stampOf(&s)}
		for len(before) > 0 && before[0].name < name {
			before = before[1:]
		}
		if len(before) > 0 && before[0].name == name && before[0].stamp == f.stamp {
			f.shard = before[0].shard
		}
		now.files = append(now.files, f)
	}
}

// folder is the folder of that name in f, nil if there is none.
func (f *folder) folder(name string) *folder {
	i, ok := slices.BinarySearchFunc(f.folders, name, func(f *folder, name string) int { return cmp.Compare(f.name, name) })
	if !ok {
		return nil
	}
	return f.folders[i]
}
