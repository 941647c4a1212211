package shardcache

import (
	"cmp"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// PurgedThrough is the newest revision of the roots at which this disk holds nothing
// unwanted: no file, whole, in parts or in quarantine, and no removed file that is still
// read. 0 means unknown. It decreases only if the revisions do.
func (s *Store) PurgedThrough() int64 {
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
	s.purged = max(s.purged, now)
	return s.purged
}

// drop records the shards that are no longer wanted, with the revision of the last Want
// that named them: some revisions between that and this one may never have been wanted.
// Files of an earlier process have revision 0. Callers hold mu.
func (s *Store) drop(revision int64, wanted map[searchapi.Digest]bool) {
	last := s.wanted
	if revision < last { // another etcd
		s.purged, last = 0, 0
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

// holds reports whether any part of a shard may be on the disk; callers hold mu.
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

// prune removes old and quarantined files of shards that are neither wanted nor held;
// callers hold mu. The error is the first one.
func (s *Store) prune() (err error) {
	for d := range s.left {
		if s.entries[d] == nil {
			err = cmp.Or(err, s.removeLeft(d))
		}
	}
	for name := range s.aside {
		if d, ok := digestOf(name); ok && s.entries[d] == nil {
			err = cmp.Or(err, s.removeAside(name))
		}
	}
	return err
}
