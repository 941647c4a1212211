package localindex

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
)

const (
	// Fewer changed files, or bytes in them, are searched instead of indexed, which takes some
	// milliseconds.
	fewFiles = 64
	fewBytes = 4 << 20
	// maxSource is how many bytes of files one shard holds.
	maxSource = 256 << 20
	// maxFile is the size of the largest indexed file; larger ones are always searched.
	maxFile = build.DefaultMaxFileSize
	// small is the number of bytes below which a shard is small. When there are more than maxSmall small
	// shards, they become one.
	small    = maxSource / 4
	maxSmall = 8
)

// Update indexes changed files, if there are many. Call it after Candidates. It returns at once if another process
// updates the index. It reports to progress what it will read. When ctx ends, the finished part stays.
func (x *Index) Update(ctx context.Context, progress func(files int, bytes int64)) error {
	if x.opts.Ignore.Globs != nil {
		return nil // globs leave out files that belong in the index
	}
	if x.below != "" {
		if err := removeIndex(place(x.folder, x.opts)); err != nil { // from before there was one above
			return err
		}
	} else {
		x.dropWorn()
	}
	changed := x.changed()
	much := changed.files > fewFiles || changed.bytes > fewBytes || x.damage != nil
	if !much && !x.relisted {
		return nil
	}
	if x.unusable != nil {
		return x.unusable
	}
	if err := x.makeFolder(); err != nil {
		return err
	}
	unlock, ok, err := lock(x.dir)
	if err != nil || !ok {
		return err
	}
	defer unlock()
	if now, err := load(x.dir, x.root); err == nil && now.generation != x.record.generation {
		return nil // another process has updated it
	}
	if !much {
		return x.save()
	}
	if changed.files > 0 {
		progress(changed.files, changed.bytes)
	}
	return x.index(ctx)
}

// makeFolder makes the folder of an index. A new one takes the place of those whose folders are gone.
func (x *Index) makeFolder() error {
	if err := os.MkdirAll(x.opts.Cache, 0o700); err != nil {
		return fmt.Errorf("making the folder of indexes: %w", err)
	}
	switch err := os.Mkdir(x.dir, 0o700); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("making the folder of the index: %w", err)
	}
	return removeGone(x.opts.Cache)
}

// removeGone deletes the indexes of folders that do not exist. It leaves those that another process writes, and those without a
// record.
func removeGone(cache string) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return fmt.Errorf("looking for indexes of folders that are gone: %w", err)
	}
	var errs []error
	for _, e := range entries {
		dir := filepath.Join(cache, e.Name())
		root, ok := rootOf(dir)
		if !ok || !isGone(root) {
			continue
		}
		errs = append(errs, removeIndex(dir))
	}
	return errors.Join(errs...)
}

// removeIndex deletes an index, if there is one, unless another process writes it.
func removeIndex(dir string) error {
	if _, err := os.Lstat(dir); err != nil {
		return nil //nolint:nilerr // there is none
	}
	unlock, ok, err := lock(dir)
	if ok {
		err = os.RemoveAll(dir)
		unlock()
	}
	return err
}

// isGone reports whether there is no folder at a path. One that cannot be looked at may be there.
func isGone(root string) bool {
	info, err := os.Stat(root)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
	}
	return !info.IsDir()
}

// lock takes the lock of an index; not ok if another process has it.
func lock(dir string) (unlock func(), ok bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("locking the index: %w", err)
	}
	unlock = func() { f.Close() } // which also releases the lock
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return unlock, true, nil
	}
	unlock()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("locking the index: %w", err)
}

// dropWorn drops shards with mostly changed files, and small shards if there are many. Their files are indexed
// again, together.
func (x *Index) dropWorn() {
	live := map[uint32]int64{}
	x.record.tree.each(func(f *file) { live[f.shard] += f.stamp.size })
	smalls := 0
	for _, s := range x.record.shards {
		if s.bytes < small {
			smalls++
		}
	}
	for _, s := range slices.Clone(x.record.shards) {
		if live[s.id]*2 < s.bytes || s.bytes < small && smalls > maxSmall {
			x.drop(s.id)
		}
	}
}

// amount is a number of files and of their bytes.
type amount struct {
	files int
	bytes int64
}

// changed is the amount to index.
func (x *Index) changed() (a amount) {
	x.record.tree.below(x.below).each(func(f *file) {
		if x.isToIndex(f) {
			a.files++
			a.bytes += f.stamp.size
		}
	})
	return a
}

func (x *Index) isToIndex(f *file) bool {
	return f.shard == 0 && f.stamp.size <= maxFile && f.stamp.settled(x.opts.Now())
}

// each calls do for each file in a folder and below it.
func (f *folder) each(do func(*file)) {
	for i := range f.files {
		do(&f.files[i])
	}
	for _, below := range f.folders {
		below.each(do)
	}
}

// entry is a file of the tree and its path.
type entry struct {
	path string
	file *file
}

// toIndex returns the files to index, in the order of the bytes of their paths, which is also the order in
// shards.
func (x *Index) toIndex() (todo []entry) {
	var collect func(f *folder, path string)
	collect = func(f *folder, path string) {
		for i := range f.files {
			if x.isToIndex(&f.files[i]) {
				todo = append(todo, entry{joined(path, f.files[i].name), &f.files[i]})
			}
		}
		for _, below := range f.folders {
			collect(below, joined(path, below.name))
		}
	}
	collect(x.record.tree.below(x.below), x.below)
	slices.SortFunc(todo, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return todo
}

// index writes shards of changed files, and the record after each, so that finished work is kept.
func (x *Index) index(ctx context.Context) error {
	todo := x.toIndex()
	for {
		if len(todo) > 0 {
			w := shardWriter{id: x.nextID(), root: x.root}
			err := writeWhole(shardPath(x.dir, w.id), func(f *os.File) error { return w.write(ctx, f, todo) })
			if err != nil {
				return fmt.Errorf("indexing %s: %w", x.root, err)
			}
			for _, f := range w.indexed {
				f.shard = w.id
			}
			todo = todo[w.done:]
			x.record.shards = append(x.record.shards, shardInfo{id: w.id, bytes: w.bytes})
		}
		if err := x.save(); err != nil || len(todo) == 0 {
			return err
		}
	}
}

// nextID is an id that no shard has had.
func (x *Index) nextID() uint32 {
	for {
		x.record.lastID++
		if _, err := os.Lstat(shardPath(x.dir, x.record.lastID)); errors.Is(err, fs.ErrNotExist) {
			return x.record.lastID
		}
	}
}

// save writes the record, and then deletes shards that are not in it.
func (x *Index) save() error {
	if err := x.record.save(x.dir); err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(x.dir, "*.trawl*"))
	if err != nil {
		return fmt.Errorf("listing the index: %w", err)
	}
	for _, path := range paths {
		if !slices.ContainsFunc(x.record.shards, func(s shardInfo) bool { return shardPath(x.dir, s.id) == path }) {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("delete the unused files of the index: %w", err)
			}
		}
	}
	return nil
}

// shardWriter writes one shard.
type shardWriter struct {
	id      uint32
	root    string
	buf     []byte
	done    int // files that were read, of those to be indexed
	indexed []*file
	bytes   int64
}

func (w *shardWriter) write(ctx context.Context, f *os.File, todo []entry) error {
	out := bufio.NewWriterSize(f, 1<<20)
	b, err := build.NewBuilder(out, build.Options{MaxSourceBytes: maxSource})
	if err != nil {
		return err
	}
	err = b.AddRepo(docstore.Repo{Name: "local", Branches: []docstore.Branch{{Name: "HEAD"}}})
	for _, e := range todo {
		if err != nil || b.Full() {
			break
		}
		err = errors.Join(ctx.Err(), w.add(b, e))
		w.done++
	}
	_, closed := b.Close()
	if err := errors.Join(err, closed); err != nil {
		return err
	}
	return out.Flush()
}

// add indexes a file, unless it changed since its stamp was taken or cannot be read: then searches read it.
func (w *shardWriter) add(b *build.Builder, e entry) error {
	content, state, err := ReadFile(filepath.Join(w.root, e.path), w.buf)
	if w.buf = content; err != nil || stampOf(&state) != e.file.stamp { // a file that changes while it is read gets another stamp
		return nil //nolint:nilerr // searches read it
	}
	w.indexed = append(w.indexed, e.file)
	w.bytes += e.file.stamp.size
	text := TextOf(w.buf)
	if len(text.Bytes) == 0 {
		return nil // no line can match: it is known, and in no list
	}
	if len(text.Bytes) > maxFile { // in UTF-8 it may be larger
		w.indexed = w.indexed[:len(w.indexed)-1]
		return nil
	}
	return b.Add(build.Document{Path: []byte(e.path), Content: text.Bytes, Branches: []uint32{0}})
}
