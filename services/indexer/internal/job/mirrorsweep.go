package job

import (
	"errors"
	"time"
)

// MirrorSweep removes all mirrors but those passed to Keep. It is for one goroutine.
type MirrorSweep struct {
	cache *Mirrors
	// used has the last use of each mirror that existed when the sweep started.
	used map[string]time.Time
	keep map[string]bool
}

// Sweep starts a sweep. It will not remove mirrors that are used from now on.
func (c *Mirrors) Sweep() *MirrorSweep {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &MirrorSweep{cache: c, used: map[string]time.Time{}, keep: map[string]bool{}}
	for name, m := range c.mirrors {
		s.used[name] = m.used
	}
	return s
}

// Keep keeps the mirror of one life of a repo at a URL.
func (s *MirrorSweep) Keep(repo, url string, life int64) {
	s.keep[mirrorFolder(repo, url, life)] = true
}

// Remove removes the mirrors that are not kept, and returns their number. Busy counts
// those that it could not remove because they are in use or were used since the sweep
// started. It leaves out mirrors of lives that began after the given revision, which
// the caller may not have seen.
func (s *MirrorSweep) Remove(revision int64) (removed, busy int, err error) {
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
			if err := c.remove(m); err != nil {
				failed = append(failed, err)
				continue
			}
			removed++
		}
	}
	return removed, busy, errors.Join(failed...)
}
