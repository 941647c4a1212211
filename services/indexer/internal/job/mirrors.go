package job

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
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
}

// mirror is the state of one mirror.
type mirror struct {
	size  int64
	used  time.Time
	users int
	// life of its repo, 0 if an earlier process made the mirror.
	life int64
}

// OpenMirrors locks a cache folder, which it creates if needed, and removes the temporary
// files of an earlier process. The mirrors take about budget bytes; those in use are
// never removed and may exceed it.
func OpenMirrors(dir string, budget int64) (*Mirrors, error) {
	c := &Mirrors{dir: dir, budget: budget, mirrors: make(map[string]*mirror)}
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
	list, err := os.ReadDir(c.mirrorsDir())
	if err != nil {
		return fmt.Errorf("list mirrors: %w", err)
	}
	for _, e := range list {
		m := &mirror{size: folderSize(filepath.Join(c.mirrorsDir(), e.Name()))}
		if info, err := e.Info(); err == nil {
			m.used = info.ModTime()
		}
		c.mirrors[e.Name()] = m
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
		m = &mirror{}
		c.mirrors[name] = m
	}
	m.users++
	m.life = life
	return dir, sync.OnceFunc(func() { c.release(name, dir) })
}

// mirrorFolder returns the name of a mirror's folder.
func mirrorFolder(repo, url string, life int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", repo, url, life))
	return hex.EncodeToString(sum[:16]) + ".git"
}

func (c *Mirrors) release(name, dir string) {
	size, now := folderSize(dir), time.Now()
	_ = os.Chtimes(dir, now, now) // it only decides which mirror is evicted first
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mirrors[name]
	m.users--
	m.size, m.used = size, now
	c.evict()
}

// evict removes the least recently used mirrors until the rest fit the budget.
func (c *Mirrors) evict() {
	var total int64
	var idle []string
	for name, m := range c.mirrors {
		total += m.size
		if m.users == 0 {
			idle = append(idle, name)
		}
	}
	slices.SortFunc(idle, func(a, b string) int {
		return cmp.Or(c.mirrors[a].used.Compare(c.mirrors[b].used), cmp.Compare(a, b))
	})
	for _, name := range idle {
		if total <= c.budget {
			return
		}
		if os.RemoveAll(filepath.Join(c.mirrorsDir(), name)) == nil {
			total -= c.mirrors[name].size
			delete(c.mirrors, name)
		}
	}
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
