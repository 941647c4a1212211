package job

import (
	"cmp"
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ErrMirrorsInUse is the error of OpenMirrors if another process uses the cache folder.
var ErrMirrorsInUse = errors.New("cache folder is in use by another process")

// Mirrors are local copies of Git repositories in a folder that also holds temporary files. They
// stay between jobs, within a budget of disk space, so that the next fetch transfers only what is
// new. One process uses a folder at a time; in it, Mirrors are safe for concurrent use.
type Mirrors struct {
	dir    string
	budget int64
	lock   *os.File

	mu      sync.Mutex
	mirrors map[string]*mirror // by folder name
	idle    *list.List         // those that nobody uses, the least recently used first
	size    int64              // of all
}

// mirror is the state of one mirror.
type mirror struct {
	name  string
	size  int64
	used  time.Time
	users int
	place *list.Element // in idle; nil while it is used
	// life of its repo, 0 if an earlier process made the mirror.
	life int64
}

// OpenMirrors locks a cache folder, which it creates if needed, and removes the temporary
// files of an earlier process. The mirrors take about budget bytes; those in use are
// never removed and may exceed it.
func OpenMirrors(dir string, budget int64) (*Mirrors, error) {
	c := &Mirrors{dir: dir, budget: budget, mirrors: make(map[string]*mirror), idle: list.New()}
	if err := os.MkdirAll(c.mirrorsDir(), 0o700); err != nil {
		return nil, fmt.Errorf("create the cache folder: %w", err)
	}
	var err error
	if c.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("open the lock of the cache folder: %w", err)
	}
	if err := syscall.Flock(int(c.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrMirrorsInUse, dir), c.lock.Close())
	}
	if err := errors.Join(c.clearTemp(), c.scan()); err != nil {
		return nil, errors.Join(err, c.lock.Close())
	}
	return c, nil
}

// Close unlocks the folder.
func (c *Mirrors) Close() error { return c.lock.Close() }

func (c *Mirrors) mirrorsDir() string { return filepath.Join(c.dir, "mirrors") }

// TempDir returns a folder for temporary files on the same disk.
func (c *Mirrors) TempDir() string { return filepath.Join(c.dir, "tmp") }

func (c *Mirrors) clearTemp() error {
	if err := os.RemoveAll(c.TempDir()); err != nil {
		return fmt.Errorf("remove temporary files: %w", err)
	}
	return os.MkdirAll(c.TempDir(), 0o700)
}

// scan lists the mirrors of an earlier process.
func (c *Mirrors) scan() error {
	folders, err := os.ReadDir(c.mirrorsDir())
	if err != nil {
		return fmt.Errorf("list mirrors: %w", err)
	}
	for _, f := range folders {
		m := &mirror{name: f.Name(), size: folderSize(filepath.Join(c.mirrorsDir(), f.Name()))}
		if info, err := f.Info(); err == nil {
			m.used = info.ModTime()
		}
		c.mirrors[m.name] = m
		c.size += m.size
	}
	for _, m := range slices.SortedFunc(maps.Values(c.mirrors), func(a, b *mirror) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name))
	}) {
		m.place = c.idle.PushBack(m)
	}
	return nil
}

// Use returns the folder for the mirror of a repo at a URL, which may not exist yet,
// and keeps it until release is called. The caller must hold the repo's lease, so that
// nobody else uses the folder. A repo that was deleted and put again has another life
// and another folder.
func (c *Mirrors) Use(repo, url string, life int64) (dir string, release func()) {
	name := mirrorFolder(repo, url, life)
	dir = filepath.Join(c.mirrorsDir(), name)
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mirrors[name]
	if m == nil {
		m = &mirror{name: name}
		c.mirrors[name] = m
	}
	if m.place != nil {
		c.idle.Remove(m.place)
		m.place = nil
	}
	m.users++
	m.life = life
	return dir, sync.OnceFunc(func() { c.release(m, dir) })
}

// mirrorFolder returns the name of a mirror's folder.
func mirrorFolder(repo, url string, life int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", repo, url, life))
	return hex.EncodeToString(sum[:16]) + ".git"
}

func (c *Mirrors) release(m *mirror, dir string) {
	size, now := folderSize(dir), time.Now()
	_ = os.Chtimes(dir, now, now) // it only decides which mirror is evicted first
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += size - m.size
	m.size, m.used = size, now
	if m.users--; m.users == 0 {
		m.place = c.idle.PushBack(m)
	}
	c.evict()
}

// evict removes the least recently used mirrors until the rest fit the budget.
func (c *Mirrors) evict() {
	for place := c.idle.Front(); place != nil && c.size > c.budget; {
		next := place.Next()
		if m, ok := place.Value.(*mirror); ok {
			_ = c.remove(m) // the next job that ends tries again
		}
		place = next
	}
}

// remove removes a mirror that nobody uses.
func (c *Mirrors) remove(m *mirror) error {
	if err := os.RemoveAll(filepath.Join(c.mirrorsDir(), m.name)); err != nil {
		return fmt.Errorf("remove a mirror: %w", err)
	}
	c.idle.Remove(m.place)
	c.size -= m.size
	delete(c.mirrors, m.name)
	return nil
}

// folderSize returns the size of the files below a folder that can be read.
func folderSize(dir string) int64 {
	var size int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}
