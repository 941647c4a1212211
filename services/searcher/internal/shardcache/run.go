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
	pause = s.expire(now)
	removes := !now.Before(s.removeAt)
	if removes {
		s.shrink()
		if s.pruned {
			s.stuck(s.prune())
		}
	}
	for _, e := range s.entries {
		if !e.unwanted.IsZero() || e.state != waiting || e.growing || !free {
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

// expire removes the shards whose grace time is over, and returns the time until the next one's is, at most longestRetry.
// Users of a removed shard keep their mapping of it. Callers hold mu.
func (s *Store) expire(now time.Time) (pause time.Duration) {
	pause = longestRetry
	before := len(s.entries)
	for d, e := range s.entries {
		if e.unwanted.IsZero() {
			continue
		}
		if left := e.unwanted.Add(s.cfg.Grace).Sub(now); left > 0 {
			pause = min(pause, left)
		} else if e.state != loading && !e.growing {
			delete(s.entries, d)
			s.unlink(d, e.current)
			if e.current != nil {
				s.retire(e.current, d)
			}
		}
	}
	if len(s.entries) < before { // once for all of them: this reads every entry
		s.resize()
		s.metrics.ready.Set(float64(s.readyCount()))
	}
	return pause
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
