package shardcache

import (
	"errors"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// Cleared is the newest revision of the roots of which it is known that nothing is on
// this disk that was not wanted then: no file, whole, in parts or in quarantine, nor
// one that is removed but still read. 0: not known. It goes back only where the
// revisions do.
func (s *Store) Cleared() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.wanted
	for d, last := range s.dropping {
		if !s.holds(d) {
			delete(s.dropping, d)
			continue
		}
		now = min(now, last)
	}
	s.cleared = max(s.cleared, now)
	return s.cleared
}

// drop notes what is not wanted any more, with the revision of the last Want that had
// it: between that and this one revisions may be that no Want was of. 0 is of what an
// earlier process left. Callers hold mu.
func (s *Store) drop(revision int64, wanted map[searchapi.Digest]bool) {
	last := s.wanted
	if revision < last { // another etcd
		s.cleared, last = 0, 0
		for d := range s.dropping {
			s.dropping[d] = 0
		}
	}
	s.wanted = revision
	note := func(d searchapi.Digest) {
		if _, noted := s.dropping[d]; !noted && !wanted[d] {
			s.dropping[d] = last
		}
	}
	for d := range s.entries {
		note(d)
	}
	for d := range s.left {
		note(d)
	}
	for name := range s.aside {
		if d, ok := digestOf(name); ok {
			note(d)
		}
	}
	for _, d := range s.lingering {
		note(d)
	}
	for d := range wanted {
		delete(s.dropping, d)
	}
}

// holds says whether anything of a shard may be on the disk; callers hold mu.
func (s *Store) holds(d searchapi.Digest) bool {
	if s.entries[d] != nil {
		return true
	}
	if _, left := s.left[d]; left {
		return true
	}
	if _, aside := s.aside[d.String()+suffix]; aside {
		return true
	}
	for _, used := range s.lingering {
		if used == d {
			return true
		}
	}
	return false
}

// prune removes what is left or put aside of shards that are neither wanted nor
// held; callers hold mu.
func (s *Store) prune() error {
	var errs []error
	for d := range s.left {
		if s.entries[d] == nil {
			errs = append(errs, s.removeLeft(d))
		}
	}
	for name := range s.aside {
		if d, ok := digestOf(name); ok && s.entries[d] == nil {
			errs = append(errs, s.removeAside(name))
		}
	}
	return errors.Join(errs...)
}
