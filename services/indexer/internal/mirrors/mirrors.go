// Package mirrors keeps local copies of Git repositories between jobs, so that
// the next fetch brings only what is new, within a budget of disk space.
package mirrors

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

// ErrInUse is returned when another process has the cache folder.
var ErrInUse = errors.New("cache folder is in use by another process")

// Cache is a folder of mirrors and of temporary files, for one process at a
// time. It is safe for concurrent use.
type Cache struct {
	dir    string
	budget int64
	lock   *os.File

	mu      sync.Mutex
	mirrors map[string]*mirror // by folder name
}

// mirror is what the cache knows of one copy.
type mirror struct {
	size  int64
	used  time.Time
	users int
	// life of the repo whose copy it is; 0: of an earlier process.
	life int64
}

// Open takes a cache folder, which is made if needed, and clears away the
// temporary files of an earlier process. Mirrors together have about budget
// bytes: those in use are never removed for it.
func Open(dir string, budget int64) (*Cache, error) {
	c := &Cache{dir: dir, budget: budget, mirrors: make(map[string]*mirror)}
	if err := os.MkdirAll(c.mirrorsDir(), 0o700); err != nil {
		return nil, fmt.Errorf("making the cache folder: %w", err)
	}
	var err error
	if c.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("opening the cache's lock: %w", err)
	}
	if err := syscall.Flock(int(c.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrInUse, dir), c.lock.Close())
	}
	if err := errors.Join(c.clearTemp(), c.scan()); err != nil {
		return nil, errors.Join(err, c.lock.Close())
	}
	return c, nil
}

// Close gives the folder back.
func (c *Cache) Close() error { return c.lock.Close() }

func (c *Cache) mirrorsDir() string { return filepath.Join(c.dir, "mirrors") }

// TempDir is a folder for temporary files, on the same disk.
func (c *Cache) TempDir() string { return filepath.Join(c.dir, "tmp") }

func (c *Cache) clearTemp() error {
	if err := os.RemoveAll(c.TempDir()); err != nil {
		return fmt.Errorf("clearing temporary files: %w", err)
	}
	return os.MkdirAll(c.TempDir(), 0o700)
}

// scan finds the mirrors that are there.
func (c *Cache) scan() error {
	list, err := os.ReadDir(c.mirrorsDir())
	if err != nil {
		return fmt.Errorf("listing mirrors: %w", err)
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

// Use returns the folder for the mirror of a repo at a URL, which may not exist
// yet, and keeps it until release is called. The caller alone may use it: the
// repo's lease sees to that. A repo that is deleted and put again has another life,
// which inherits nothing.
func (c *Cache) Use(repo, url string, life int64) (dir string, release func()) {
	name := folder(repo, url, life)
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

// folder is the name of the folder of a repo's mirror.
func folder(repo, url string, life int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", repo, url, life))
	return hex.EncodeToString(sum[:16]) + ".git"
}

func (c *Cache) release(name, dir string) {
	size, now := folderSize(dir), time.Now()
	_ = os.Chtimes(dir, now, now) // it only orders what is removed first
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mirrors[name]
	m.users--
	m.size, m.used = size, now
	c.evict()
}

// evict removes the mirrors unused for longest until the budget is kept.
func (c *Cache) evict() {
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

// folderSize adds up the files below a folder, as far as they can be seen.
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
