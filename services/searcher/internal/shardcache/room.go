package shardcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// This file decides which shards are whole files. If all fit into the budget, all are.
// Otherwise a part of the budget, the reserve, holds blocks of shards that are read by
// ranges, and the rest holds the shards with the most requests for each byte. A shard
// displaces others only if it has far more requests: a sweep over all shards counts once
// for each of them, and moves none.

// errNoRoom means that a shard has no room as a whole file.
var errNoRoom = errors.New("no room in the disk budget")

const (
	// growPause is the time between two decisions about which shards should be whole.
	growPause = 10 * time.Second
	// leastAsked is how often a shard must have been requested to take the place of others. byFar
	// is the factor by which its requests for each byte must exceed theirs.
	leastAsked, byFar = 8, 2
	// halveAfter is the number of requests for each shard, on average, after which all counts are
	// halved.
	halveAfter = 16
)

// count needs mu.
func (s *Store) count(e *entry) {
	e.asked++
	if e.current.whole {
		s.metrics.fromDisk.Inc()
	} else {
		s.metrics.fromBucket.Inc()
	}
	if s.asked++; s.asked >= halveAfter*len(s.entries) && s.asked >= 1000 {
		s.asked = 0
		for _, e := range s.entries {
			e.asked /= 2
		}
	}
}

// resize computes the space for whole files after the entries changed. Callers hold mu.
func (s *Store) resize() {
	limit := s.budget.Limit()
	if limit == 0 {
		limit = math.MaxInt64
	}
	s.wholeLimit = limit
	var sum, largest int64
	for _, e := range s.entries {
		size := disk.Rounded(e.ref.Size)
		sum, largest = sum+size, max(largest, size)
	}
	if sum <= limit {
		return
	}
	// The reserve covers two searches that read all of the largest shards. It grows with
	// the bytes read by ranges, but takes at most half of the budget.
	s.wholeLimit -= min(limit/2, max(2*largest, min(limit/4, sum-limit)))
}

// takeWhole takes room for a whole file, or returns errNoRoom.
func (s *Store) takeWhole(n int64) error {
	s.mu.Lock()
	claimed := s.claim(n)
	s.mu.Unlock()
	if !claimed {
		return errNoRoom
	}
	return s.reserve(n)
}

// claim keeps room for a whole file from others, if there is any; callers hold mu.
func (s *Store) claim(n int64) bool {
	for !s.hasRoom(n) {
		if !s.dropAside() {
			return false
		}
	}
	s.whole += n
	return true
}

// reserve takes claimed room from the budget, or gives up the claim and returns errNoRoom. It does not hold mu while
// blocks are evicted, which may be many.
func (s *Store) reserve(n int64) error {
	for !s.ranges.Reserve(n) {
		s.mu.Lock()
		dropped := s.dropAside()
		if !dropped {
			s.whole -= n
		}
		s.mu.Unlock()
		if !dropped {
			return errNoRoom
		}
	}
	return nil
}

// hasRoom needs mu.
func (s *Store) hasRoom(n int64) bool { return n <= s.wholeLimit-s.whole }

// giveWhole gives back what takeWhole took.
func (s *Store) giveWhole(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.give(n)
}

// give needs mu.
func (s *Store) give(n int64) {
	s.whole -= n
	s.budget.Give(n)
	s.wake()
}

// giveBack accounts for an open shard that was closed. Callers hold mu.
func (s *Store) giveBack(o *opened) {
	switch {
	case o.aside != "":
		s.keepAside(o.aside, o.taken)
	case o.taken > 0:
		s.give(o.taken)
	}
	o.taken = 0
}

// keepAside accounts for a file that moved to quarantine, or was removed if it has no
// name. Callers hold mu.
func (s *Store) keepAside(name string, taken int64) {
	if name == "" {
		s.give(taken)
		return
	}
	if before, ok := s.aside[name]; ok {
		s.give(before)
	}
	s.aside[name] = taken
}

// dropAside removes a file from quarantine, if there is one; callers hold mu.
func (s *Store) dropAside() bool {
	for name := range s.aside {
		if err := s.removeAside(name); err != nil {
			s.stuck(err)
			continue
		}
		return true
	}
	return false
}

// removeAside removes a file from quarantine; callers hold mu.
func (s *Store) removeAside(name string) error {
	if err := ignoreMissing(os.Remove(filepath.Join(s.cfg.Dir, quarantineDir, name))); err != nil {
		return fmt.Errorf("remove a damaged shard: %w", err) // it stays taken
	}
	s.give(s.aside[name])
	delete(s.aside, name)
	for o := range s.lingering { // a copy in use, which the file replaced
		if o.aside == name {
			o.aside = ""
		}
	}
	return nil
}

// takeLeft hands over a file that an earlier process left, if it is the shard's.
func (s *Store) takeLeft(ref Ref) (taken int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken, ok = s.left[ref.Digest]
	if !ok {
		return 0, false
	}
	if info, err := os.Stat(s.path(ref.Digest)); err != nil || info.Size() != ref.Size {
		if err := s.removeLeft(ref.Digest); err != nil {
			s.log.Error("remove a file that is not the shard's", "shard", ref.Digest.String(), "error", err)
		}
		return 0, false
	}
	delete(s.left, ref.Digest)
	return taken, true
}

// dropLeft removes files that an earlier process left, as long as whole files take too much. First go those of
// shards that are not wanted, then those of shards that were not searched yet. Callers hold mu.
func (s *Store) dropLeft() {
	for _, wanted := range []bool{false, true} {
		for d := range s.left {
			e := s.entries[d]
			if s.whole <= s.wholeLimit || wanted != (e != nil && e.unwanted.IsZero()) {
				continue
			}
			s.stuck(s.removeLeft(d))
		}
	}
}

// stuck takes the error of a removal, which may be nil. Files that cannot be removed are tried again after a pause,
// and one of them is logged. Callers hold mu.
func (s *Store) stuck(err error) {
	if now := time.Now(); err != nil && !now.Before(s.removeAt) {
		s.removeAt = now.Add(growPause)
		s.log.Error("files of the shard cache cannot be removed", "error", err)
	}
}

// unlink removes the file of an open shard, whose room is given back when it is
// closed, or one that is left; callers hold mu.
func (s *Store) unlink(d searchapi.Digest, o *opened) {
	err := s.removeLeft(d)
	if o != nil && o.whole && o.aside == "" {
		err = errors.Join(err, ignoreMissing(os.Remove(s.path(d))))
		if err != nil {
			s.left[d], o.taken = o.taken, 0 // it stays taken
		}
	}
	s.stuck(err)
}

// shrink turns whole files into ranges while there are too many; callers hold mu.
func (s *Store) shrink() {
	for s.whole > s.wholeLimit && s.dropAside() {
	}
	s.dropLeft()
	if s.whole <= s.wholeLimit {
		return
	}
	for _, e := range s.coldestFirst() {
		if s.whole <= s.wholeLimit {
			return
		}
		s.toRanges(e)
	}
}

// heat is the number of recent requests for a shard, for each byte. It is negative if the
// shard is no longer wanted.
func (e *entry) heat() float64 {
	if !e.unwanted.IsZero() {
		return -1
	}
	return (float64(e.asked) + 1) / float64(e.ref.Size+1)
}

// coldestFirst returns the whole shards that no query uses now, the least searched first. Callers hold mu.
func (s *Store) coldestFirst() (idle []*entry) {
	for _, e := range s.entries {
		if e.state == ready && e.current.whole && e.current.users == 1 {
			idle = append(idle, e)
		}
	}
	slices.SortFunc(idle, func(a, b *entry) int { return cmp.Compare(a.heat(), b.heat()) })
	return idle
}

// toRanges serves a shard by ranges from now on, unless its file cannot be removed. Callers hold mu.
func (s *Store) toRanges(e *entry) {
	if err := ignoreMissing(os.Remove(s.path(e.ref.Digest))); err != nil {
		s.stuck(err)
		return
	}
	old := e.current
	old.leave() // the entry was its last user
	s.close(old, e.ref.Digest)
	s.giveBack(old)
	s.metrics.evicted.Inc()
	e.current = &opened{shard: s.ranges.Open(s.object(e.ref)), users: 1}
}

// growable is the hottest shard that is read by ranges and should be a whole file now.
// It claims the room that colder shards made for it, so no later fetch finds that room,
// not even one of those shards. Callers hold mu.
func (s *Store) growable(now time.Time) (hottest *entry) {
	for _, e := range s.entries {
		ranged := e.state == ready && !e.current.whole && e.unwanted.IsZero() && !e.growing && !now.Before(e.retryAt)
		if ranged && (hottest == nil || e.heat() > hottest.heat()) {
			hottest = e
		}
	}
	if hottest == nil || !s.makeRoom(hottest) || !s.claim(disk.Rounded(hottest.ref.Size)) {
		return nil
	}
	return hottest
}

// makeRoom serves shards with far fewer requests by ranges, if that makes enough room.
// Callers hold mu.
func (s *Store) makeRoom(e *entry) bool {
	n := disk.Rounded(e.ref.Size)
	if s.hasRoom(n) {
		return true
	}
	free := s.wholeLimit - s.whole
	for _, other := range s.entries {
		if other.yields(e) {
			free += other.current.taken
		}
	}
	if free < n {
		return false
	}
	for _, other := range s.coldestFirst() {
		if s.hasRoom(n) || !other.yields(e) {
			break
		}
		s.toRanges(other)
	}
	return s.hasRoom(n)
}

// yields reports whether the shard, a whole file, gives way to one that is hotter.
func (e *entry) yields(to *entry) bool {
	return e.state == ready && e.current.whole && e.current.users == 1 &&
		(e.heat() < 0 || to.asked >= leastAsked && byFar*e.heat() < to.heat())
}

// grow fetches a whole copy of a shard that is served by ranges, into the room
// that growable claimed for it.
func (s *Store) grow(ctx context.Context, e *entry) {
	var o *opened
	room := disk.Rounded(e.ref.Size)
	err := s.reserve(room)
	if err == nil {
		o, err = s.fetchWhole(ctx, e.ref, room)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.growing = false
	switch {
	case err != nil && ctx.Err() == nil:
		s.failed(ctx, e, err)
		return
	case err != nil:
		return
	}
	e.tries = 0
	old := e.current
	e.state, e.current, e.failure = ready, o, nil
	if old != nil {
		s.retire(old, e.ref.Digest)
	}
	s.notify()
}
