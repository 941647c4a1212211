package mirrors

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Sweep removes the mirrors that it is not told to keep. It is for one goroutine.
type Sweep struct {
	cache *Cache
	// used has when the mirrors were used last that were there when it began.
	used map[string]time.Time
	keep map[string]bool
}

// Sweep begins to look for mirrors that are not needed. Those that are used from now
// on stay.
func (c *Cache) Sweep() *Sweep {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Sweep{cache: c, used: map[string]time.Time{}, keep: map[string]bool{}}
	for name, m := range c.mirrors {
		s.used[name] = m.used
	}
	return s
}

// Keep keeps the mirror of a repo at a URL, in one of its lives.
func (s *Sweep) Keep(repo, url string, life int64) { s.keep[folder(repo, url, life)] = true }

// Remove removes the others, and returns how many have gone. Busy are those that were
// not kept, but are or were used since the sweep began: by lives that had begun by
// the revision given, so that they may be of what is not desired.
func (s *Sweep) Remove(revision int64) (removed, busy int, err error) {
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	var failed []error
	for name, m := range c.mirrors {
		used, old := s.used[name]
		switch {
		case s.keep[name]:
		case m.life > revision:
		case !old, m.users > 0, m.used.After(used):
			busy++
		default:
			if err := os.RemoveAll(filepath.Join(c.mirrorsDir(), name)); err != nil {
				failed = append(failed, fmt.Errorf("remove a mirror: %w", err))
				continue
			}
			delete(c.mirrors, name)
			removed++
		}
	}
	return removed, busy, errors.Join(failed...)
}
