package bucket

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"syscall"
)

// List implements Bucket. It holds the names of one folder at each level.
func (f *Folder) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		w := walker{f, ctx, prefix, yield}
		err := checkPrefix(prefix)
		if err == nil {
			_, err = w.folder(path.Dir(prefix + "x"))
		}
		if err != nil {
			yield(Info{}, wrap("list", prefix, err))
		}
	}
}

// walker lists the files whose key begins with a prefix.
type walker struct {
	f      *Folder
	ctx    context.Context
	prefix string
	yield  func(Info, error) bool
}

// folder walks one folder and reports whether to go on.
func (w *walker) folder(dir string) (bool, error) {
	entries, err := w.f.readDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// A folder sorts by the common prefix of the keys below it, so that the walk is in
	// the order of whole keys: "a.b" before "a/b".
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortName(a), sortName(b)) })
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil {
			return false, err
		}
		if more, err := w.entry(path.Join(dir, e.Name()), e); !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// entry yields a file or walks a folder. It skips foreign files and files that
// disappeared meanwhile.
func (w *walker) entry(key string, e fs.DirEntry) (bool, error) {
	if !isKey(key) {
		return true, nil
	}
	switch {
	case e.IsDir() && (strings.HasPrefix(key+"/", w.prefix) || strings.HasPrefix(w.prefix, key+"/")):
		return w.folder(key)
	case !e.Type().IsRegular() || !strings.HasPrefix(key, w.prefix):
		return true, nil
	}
	info, err := w.f.root.Lstat(key)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return w.yield(infoOf(key, info), nil), nil
}

// readDir reads all entries of a folder.
func (f *Folder) readDir(dir string) ([]fs.DirEntry, error) {
	d, err := f.root.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(-1)
	return entries, errors.Join(err, d.Close())
}
