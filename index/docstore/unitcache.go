package docstore

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// A search reads most units more than once: to find, to rate lines, and to cut out what is shown. The next search is often for something
// similar. So all shards of a process share a cache of decoded units: in sets, as those of processors, each with a lock of its own.
// It takes cacheSets*cacheWays*SuperblockSize bytes at most, and none before they are used: without pointers it is no part of the heap, so
// that the garbage collector neither scans it nor leaves more garbage because of it.
const (
	cacheSets = 1024
	cacheWays = 8
	// mostKept is how many units one reader adds, so that a search that reads all of a large shard does not replace what others need. A search
	// has a reader for each shard, and another one to show what it found.
	mostKept = 1024
)

var unitCache [cacheSets]cacheSet

// cacheKey is a unit, and which text it is of: texts are numbered from 1 as they are opened. The zero
// value stands for none.
type cacheKey struct{ text, unit uint32 }

var texts atomic.Uint32

// cacheSet keeps a few units.
type cacheSet struct {
	mu      sync.Mutex
	keys    [cacheWays]cacheKey
	lengths [cacheWays]uint16
	used    uint8 // bits of the ways that were used since the hand passed
	hand    uint8 // the way that is replaced next, unless it was used
	data    [cacheWays][SuperblockSize]byte
}

func (k cacheKey) set() *cacheSet {
	hash := (uint64(k.text)<<32 | uint64(k.unit)) * hashPrime
	return &unitCache[hash>>(64-bits.Len(cacheSets-1))]
}

func (s *cacheSet) way(k cacheKey) int {
	for i := range s.keys {
		if s.keys[i] == k {
			return i
		}
	}
	return -1
}

// load appends the bytes [from, to) of a unit to dst, if they are there.
func (k cacheKey) load(dst []byte, from, to int) ([]byte, bool) {
	s := k.set()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.way(k)
	if i < 0 || int(s.lengths[i]) < to {
		return dst, false
	}
	s.used |= 1 << i
	return append(dst, s.data[i][from:to]...), true
}

// keep copies a unit into the cache.
func (k cacheKey) keep(unit []byte) {
	s := k.set()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.way(k)
	if i < 0 {
		for s.used>>s.hand&1 != 0 {
			s.used &^= 1 << s.hand
			s.hand = (s.hand + 1) % cacheWays
		}
		i = int(s.hand)
		s.hand = (s.hand + 1) % cacheWays
	}
	copy(s.data[i][:], unit)
	s.keys[i], s.lengths[i] = k, uint16(len(unit))
}
