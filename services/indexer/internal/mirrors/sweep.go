package mirrors

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Sweep removes the mirrors that it is not told to keep. It is for one goroutine.
type Sweep struct {
	cache *Cache
	// old are the mirrors that were there, and that nobody used, when it began.
	old map[string]*mirror
}

// Sweep begins to look for mirrors that are not needed. Those that are used from now
// on are.
func (c *Cache) Sweep() *Sweep {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Sweep{cache: c, old: map[string]*mirror{}}
	for name, m := range c.mirrors {
		if m.users == 0 {
			copied := *m
			s.old[name] = &copied
		}
	}
	return s
}

// Keep keeps the mirror of a repo at a URL.
func (s *Sweep) Keep(repo, url string) { delete(s.old, folder(repo, url)) }

// Remove removes the others, and returns how many have gone.
func (s *Sweep) Remove() (removed int, err error) {
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	var failed []error
	for name, then := range s.old {
		if now := c.mirrors[name]; now == nil || now.users > 0 || now.used.After(then.used) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(c.mirrorsDir(), name)); err != nil {
			failed = append(failed, fmt.Errorf("remove a mirror: %w", err))
			continue
		}
		delete(c.mirrors, name)
		removed++
	}
	return removed, errors.Join(failed...)
}
