package shardcache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trawl-search/trawl/internal/searchapi"
)

type state uint8

const (
	waiting state = iota // to be loaded, or to be tried again
	loading
	ready
)

// entry is one shard. Its fields are guarded by the store's mutex.
type entry struct {
	ref   Ref
	state state
	// current is set while the shard is ready.
	current *opened
	// unwanted is the time since which the shard is not wanted, zero while it is.
	unwanted time.Time
	// failure is the error of the last load, or the damage that was found; nil once the
	// shard is loaded.
	failure error
	tries   int
	retryAt time.Time
	// asked counts recent requests for the shard. growing is set while a whole copy is
	// fetched of a shard that is served by ranges.
	asked   int
	growing bool
}

// opened is an open shard and the number of its users. The entry is one of them while
// the shard is its current one. The last user closes it.
type opened struct {
	shard Shard
	users int
	// whole is set if the shard is a file. The file takes taken bytes of the budget until
	// it is closed, and longer if it is in quarantine, under the name aside.
	whole bool
	taken int64
	aside string
}

// Handle keeps a shard open. It must be released.
type Handle struct {
	Shard  Shard
	store  *Store
	opened *opened
	digest searchapi.Digest
}

// Acquire returns a handle of a loaded shard. It waits until then, or until ctx ends, for a
// shard that is wanted and was not tried yet. Errors wrap ErrNotCovered, ErrCorrupt or
// ErrUnavailable.
func (s *Store) Acquire(ctx context.Context, d searchapi.Digest, until time.Time) (*Handle, error) {
	h, changed, err := s.tryAcquire(d)
	if h != nil || err != nil {
		return h, err
	}
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for h == nil && err == nil {
		select {
		case <-changed:
			h, changed, err = s.tryAcquire(d)
		case <-waiting.Done():
			return nil, fmt.Errorf("%w yet: it is being loaded", ErrNotCovered)
		}
	}
	return h, err
}

// tryAcquire returns neither a handle nor an error while the shard is being loaded.
func (s *Store) tryAcquire(d searchapi.Digest) (*Handle, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[d]
	switch {
	case e == nil:
		return nil, nil, ErrNotCovered
	case e.state == ready:
		s.count(e)
		return s.use(e, d), nil, nil
	case !e.unwanted.IsZero():
		return nil, nil, ErrNotCovered
	case errors.Is(e.failure, ErrCorrupt):
		return nil, nil, e.failure
	case e.failure != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrUnavailable, e.failure)
	}
	return nil, s.changed.Next(), nil
}

// use returns a handle of an entry that is ready. Callers hold mu.
func (s *Store) use(e *entry, d searchapi.Digest) *Handle {
	e.current.users++
	return &Handle{Shard: e.current.shard, store: s, opened: e.current, digest: d}
}

// Ready reports whether Acquire would return the shard at once.
func (s *Store) Ready(d searchapi.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[d]
	return e != nil && e.state == ready
}

// Known reports whether the shard is wanted or still held.
func (s *Store) Known(d searchapi.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[d] != nil
}

// Share returns another handle of the shard, which must be released too.
func (h *Handle) Share() *Handle {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	h.opened.users++
	shared := *h
	return &shared
}

// Release ends the use of the shard. It must be called once for each handle.
func (h *Handle) Release() {
	h.store.mu.Lock()
	last := h.opened.leave()
	crowded := h.store.whole > h.store.wholeLimit // and this one may be idle now
	h.store.mu.Unlock()
	if last {
		h.store.close(h.opened, h.digest)
		h.store.mu.Lock()
		defer h.store.mu.Unlock()
		delete(h.store.lingering, h.opened)
		h.store.giveBack(h.opened)
	} else if crowded {
		h.store.wake()
	}
}

// leave removes a user and reports whether it was the last. Callers hold the store's mutex.
func (o *opened) leave() bool {
	o.users--
	return o.users == 0
}

func (s *Store) close(o *opened, d searchapi.Digest) {
	if err := o.shard.Close(); err != nil {
		s.log.Warn("close shard", "shard", d.String(), "error", err)
	}
}

// Corrupt reports damage found while the shard was used. A whole copy is moved to
// quarantine. The shard is fetched again, and until then Acquire returns ErrCorrupt.
// Other users of the shard continue with the copy that they have.
func (h *Handle) Corrupt(damage error) {
	s := h.store
	s.mu.Lock()
	e := s.entries[h.digest]
	if e == nil || e.current != h.opened {
		s.mu.Unlock()
		return // it was reported already
	}
	e.state, e.current = waiting, nil
	e.failure, e.tries, e.retryAt = fmt.Errorf("%w: %w", ErrCorrupt, damage), 0, time.Time{}
	s.retire(h.opened, h.digest) // it stays: the handle still counts
	s.metrics.corrupt.Inc()
	if h.opened.whole {
		h.opened.aside = s.quarantine(e.ref.Digest, damage)
	}
	s.notify()
	s.mu.Unlock()
}
