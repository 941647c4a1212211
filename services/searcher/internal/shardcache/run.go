package shardcache

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/wait"
)

// longestRetry bounds the pause between tries to load a shard.
const longestRetry = time.Minute

// Run fetches wanted shards, scrubs open ones, and removes unwanted ones, until ctx ends. Then
// it closes every unused shard; the last user of any other closes that one. A store runs once.
func (s *Store) Run(ctx context.Context) {
	var working sync.WaitGroup
	slots := make(chan struct{}, s.cfg.Loads)
	working.Go(func() {
		for wait.Sleep(ctx, scrubPause) {
			s.Scrub(ctx)
		}
	})
	for ctx.Err() == nil {
		work, pause := s.next(time.Now(), len(slots) < cap(slots))
		if work != nil {
			slots <- struct{}{}
			working.Go(func() {
				work(ctx)
				<-slots
				s.wake()
			})
			continue
		}
		select {
		case <-s.wakeups:
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	working.Wait()
	s.closeAll()
	s.ranges.Close()
}

// wake has Run look again at what there is to do.
func (s *Store) wake() {
	select {
	case s.wakeups <- struct{}{}:
	default:
	}
}

// next returns the next load, whose entry it marks, or how long to wait for one. It also
// removes shards that are neither wanted nor used.
func (s *Store) next(now time.Time, free bool) (work func(context.Context), pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause = longestRetry
	removes := !now.Before(s.removeAt)
	if removes {
		s.shrink()
		if s.pruned {
			s.stuck(s.prune())
		}
	}
	for d, e := range s.entries {
		if !e.unwanted.IsZero() {
			if left := e.unwanted.Add(s.cfg.Grace).Sub(now); left > 0 {
				pause = min(pause, left)
			} else if e.state != loading && !e.growing {
				s.remove(d, e)
			}
			continue
		}
		if e.state != waiting || e.growing || !free {
			continue
		}
		if left := e.retryAt.Sub(now); left > 0 {
			pause = min(pause, left)
			continue
		}
		e.state = loading
		return func(ctx context.Context) { s.load(ctx, e) }, 0
	}
	if s.budget.Limit() == 0 {
		return nil, pause
	}
	if free && removes {
		if e := s.growable(now); e != nil {
			e.growing = true
			return func(ctx context.Context) { s.grow(ctx, e) }, 0
		}
	}
	return nil, min(pause, growPause)
}

// remove removes the entry and its file. Users of the shard keep their mapping of it.
// Callers hold mu.
func (s *Store) remove(d searchapi.Digest, e *entry) {
	delete(s.entries, d)
	s.wake() // to remove its file in quarantine, too
	s.resize()
	s.unlink(d, e.current)
	if e.current != nil {
		s.retire(e.current, d)
	}
	s.metrics.ready.Set(float64(s.readyCount()))
}

// retire detaches an open shard from its entry and closes it once it is unused. Callers
// hold mu.
func (s *Store) retire(o *opened, d searchapi.Digest) {
	if !o.leave() {
		s.lingering[o] = d
		return
	}
	s.close(o, d)
	s.giveBack(o)
}

// load fetches and opens the entry's shard and records the outcome.
func (s *Store) load(ctx context.Context, e *entry) {
	start := time.Now()
	opened, err := s.fetchAndOpen(ctx, e.ref)
	s.metrics.loaded(time.Since(start), err)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	if err == nil {
		e.state, e.failure, e.tries = ready, nil, 0
		e.current = opened
		s.metrics.ready.Set(float64(s.readyCount()))
		return
	}
	e.state = waiting
	if ctx.Err() != nil {
		return
	}
	e.failure = err
	s.failed(ctx, e, err)
}

// failed records a failed load and when to try again. Callers hold mu.
func (s *Store) failed(ctx context.Context, e *entry, err error) {
	e.tries++
	e.retryAt = time.Now().Add(wait.Double(s.cfg.Retry, e.tries-1, longestRetry))
	s.log.WarnContext(ctx, "load shard", "shard", e.ref.Digest.String(), "key", e.ref.Key, "try", e.tries, "error", err)
}

// readyCount counts the open shards. Callers hold mu.
func (s *Store) readyCount() (n int) {
	for _, e := range s.entries {
		if e.state == ready {
			n++
		}
	}
	return n
}

func (s *Store) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d, e := range s.entries {
		if e.current != nil && e.current.leave() {
			s.close(e.current, d)
		}
		delete(s.entries, d)
	}
}

// IsDamage reports whether the error is about the content of a shard, and not about
// reading it.
func IsDamage(err error) bool {
	return errors.Is(err, format.ErrCorrupt) || errors.Is(err, ErrCorrupt)
}
