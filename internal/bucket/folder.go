package bucket

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// Folder is a Bucket of files below one folder; the key is the path. Objects are on
// the disk before Put returns, and survive a loss of power. No key and no symbolic
// link leads out of the folder.
type Folder struct {
	root  *os.Root
	limit int64
}

var _ Bucket = (*Folder)(nil)

const (
	// tempDir holds incomplete objects. No key begins with a dot.
	tempDir = ".tmp"
	// tempAge is how long a process may take to write a file. An older incomplete file is
	// left over from a process that ended.
	tempAge = 24 * time.Hour
)

// OpenFolder opens a folder, or makes it, readable by its owner only. Its objects
// have at most limit bytes each. Several processes may use one folder at once. Close
// releases it.
func OpenFolder(dir string, limit int64) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the bucket's folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the bucket's folder: %w", err)
	}
	f := &Folder{root: root, limit: limit}
	if err := f.prepareTemp(); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the bucket's folder: %w", err), root.Close())
	}
	return f, nil
}

// prepareTemp makes the folder of incomplete files and removes old ones from it.
func (f *Folder) prepareTemp() error {
	if err := f.root.MkdirAll(tempDir, 0o700); err != nil {
		return err
	}
	entries, err := f.readDir(tempDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > tempAge {
			err = f.root.Remove(path.Join(tempDir, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close releases the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Put implements Bucket.
func (f *Folder) Put(ctx context.Context, key string, r io.Reader, opts PutOptions) error {
	return wrap("put", key, f.put(ctx, key, r, opts))
}

func (f *Folder) put(ctx context.Context, key string, r io.Reader, opts PutOptions) error {
	if err := checkPut(key, opts.Size, f.limit); err != nil {
		return err
	}
	if opts.IfAbsent {
		if _, err := f.root.Lstat(key); err == nil {
			return cmp.Or(f.syncDirs(path.Dir(key)), ErrExists)
		}
	}
	temp := path.Join(tempDir, rand.Text())
	defer func() {
		_ = f.root.Remove(temp) // after a rename there is nothing left to remove
	}()
	if err := f.write(temp, newExact(ctx, r, opts)); err != nil {
		return err
	}
	return f.place(temp, key, opts.IfAbsent)
}

// write makes a file with everything from r, and syncs it to disk.
func (f *Folder) write(name string, r io.Reader) error {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// place gives a complete file its key. A link fails if the name is taken, a rename
// replaces; both are atomic.
func (f *Folder) place(temp, key string, ifAbsent bool) error {
	dir := path.Dir(key)
	if err := f.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	move := f.root.Rename
	if ifAbsent {
		move = f.root.Link
	}
	err := move(temp, key)
	taken := ifAbsent && errors.Is(err, fs.ErrExist)
	if err != nil && !taken {
		return err
	}
	if err := f.syncDirs(dir); err != nil || !taken {
		return err
	}
	return ErrExists
}

// syncDirs syncs a folder and those above it to the disk: another Put may have made any of them, or the file, and not be done. It takes
// next to no time for those that have not changed.
func (f *Folder) syncDirs(dir string) error {
	for ; dir != "."; dir = path.Dir(dir) {
		if err := f.syncDir(dir); err != nil {
			return err
		}
	}
	return f.syncDir(dir)
}

func (f *Folder) syncDir(dir string) error {
	d, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // some network file systems cannot sync folders, and need not
	}
	return errors.Join(err, d.Close())
}

// stat finds a key's file. Only regular files are objects.
func (f *Folder) stat(ctx context.Context, key string) (fs.FileInfo, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := f.root.Lstat(key)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.Mode().IsRegular() {
		return nil, ErrNotFound
	}
	return info, err
}

// open opens a key's file, and returns the information of that same file.
func (f *Folder) open(ctx context.Context, key string) (*os.File, fs.FileInfo, error) {
	if _, err := f.stat(ctx, key); err != nil {
		return nil, nil, err
	}
	file, err := f.root.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrNotFound
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// Get implements Bucket.
func (f *Folder) Get(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	file, info, err := f.open(ctx, key)
	if err != nil {
		return nil, Info{}, wrap("get", key, err)
	}
	return boundReader{ctx, file, file}, infoOf(key, info), nil
}

// GetRange implements Bucket.
func (f *Folder) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	file, info, err := f.open(ctx, key)
	if err != nil {
		return nil, wrap("get", key, err)
	}
	n, err = clip(off, n, info.Size())
	if err != nil {
		return nil, wrap("get", key, errors.Join(err, file.Close()))
	}
	return boundReader{ctx, io.NewSectionReader(file, off, n), file}, nil
}

// Stat implements Bucket.
func (f *Folder) Stat(ctx context.Context, key string) (Info, error) {
	info, err := f.stat(ctx, key)
	if err != nil {
		return Info{}, wrap("stat", key, err)
	}
	return infoOf(key, info), nil
}

// Delete implements Bucket. Folders stay: removing an empty one could make a
// concurrent Put fail.
func (f *Folder) Delete(ctx context.Context, key string) error {
	_, err := f.stat(ctx, key)
	if err == nil {
		err = f.root.Remove(key)
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return wrap("delete", key, err)
}

func infoOf(key string, info fs.FileInfo) Info {
	return Info{Key: key, Size: info.Size(), ModTime: info.ModTime()}
}
