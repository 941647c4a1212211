package shardcache

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/trawl-search/trawl/internal/searchapi"
)

const (
	// scrubRate bounds how fast Scrub reads, in bytes a second. An hour is enough for 56 GiB.
	scrubRate = 16 << 20
	// scrubPause is the time between two passes.
	scrubPause = time.Minute
)

// rechecker is a shard whose bytes are verified only when they are first read, as those of whole
// files are. A search by ranges verifies whatever it reads.
type rechecker interface {
	Recheck(from int64) (next, read int64, err error)
}

// Scrub verifies once more what searches have read of whole files, at a bounded rate. A damaged
// shard is fetched again. It ends early if ctx does.
func (s *Store) Scrub(ctx context.Context) {
	s.mu.Lock()
	digests := slices.Collect(maps.Keys(s.entries))
	s.mu.Unlock()
	pace := rate.NewLimiter(scrubRate, scrubRate)
	for _, d := range digests {
		for block, more := int64(0), true; more; more = block > 0 {
			var read int64
			block, read = s.recheck(d, block)
			if pace.WaitN(ctx, int(read)) != nil {
				return
			}
		}
	}
	s.metrics.scrubbedAt.SetToCurrentTime()
}

// recheck verifies a piece of a shard, from a block on. It returns the next block, 0 if there is
// none, and the bytes that it read. It keeps the shard open only meanwhile.
func (s *Store) recheck(d searchapi.Digest, block int64) (next, read int64) {
	h, file := s.wholeFile(d)
	if h == nil {
		return 0, 0
	}
	defer h.Release()
	next, read, err := file.Recheck(block)
	s.metrics.scrubbed.Add(float64(read))
	if err != nil {
		h.Corrupt(err)
		return 0, read
	}
	return next, read
}

// wholeFile returns a handle of a shard that is a whole file, and otherwise nil. It does not count as
// a request for the shard.
func (s *Store) wholeFile(d searchapi.Digest) (*Handle, rechecker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[d]
	if e == nil || e.state != ready || !e.current.whole {
		return nil, nil
	}
	file, ok := e.current.shard.(rechecker)
	if !ok {
		return nil, nil
	}
	return s.use(e, d), file
}
