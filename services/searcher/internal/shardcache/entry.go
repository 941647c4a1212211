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
	waiting state = iota // for its turn, or for the next try
	loading
	ready
)

// entry is one shard. Its fields are guarded by the store's mutex.
type entry struct {
	ref   Ref
	state state
	// current is set while the shard is ready.
	current *opened
	// unwanted is when the shard ceased to be wanted, zero while it is.
	unwanted time.Time
	// failure is why the last load failed, or the damage that was found; nil
	// once it is loaded.
	failure error
	tries   int
	retryAt time.Time
	// asked counts the times it was asked for, lately; growing is set while a
	// whole copy is fetched of a shard that is served by ranges.
	asked   int
	growing bool
}

// opened is an open shard with those who use it. The entry counts as one of
// them while the shard is its current one; the last to leave closes it.
type opened struct {
	shard Shard
	users int
	// whole says that it is a file, which takes so many bytes of the budget until
	// it is closed; if it was put aside under that name, even longer.
	whole bool
	taken int64
	aside string
}

// Handle is the use of a shard. It must be released.
type Handle struct {
	Shard  Shard
	store  *Store
	opened *opened
	digest searchapi.Digest
}

// Acquire gives the use of a shard that is loaded, waiting for one that is
// wanted and not tried yet until ctx ends. Errors are ErrNotCovered, ErrCorrupt
// or ErrUnavailable, saying why.
func (s *Store) Acquire(ctx context.Context, d searchapi.Digest) (*Handle, error) {
	for {
		h, changed, err := s.tryAcquire(d)
		if h != nil || err != nil {
			return h, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w yet: it is being loaded", ErrNotCovered)
		}
	}
}

// tryAcquire gives neither handle nor error while the shard is being loaded.
func (s *Store) tryAcquire(d searchapi.Digest) (*Handle, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[d]
	switch {
	case e == nil:
		return nil, nil, ErrNotCovered
	case e.state == ready:
		e.current.users++
		s.count(e)
		return &Handle{Shard: e.current.shard, store: s, opened: e.current, digest: d}, nil, nil
	case !e.unwanted.IsZero():
		return nil, nil, ErrNotCovered
	case errors.Is(e.failure, ErrCorrupt):
		return nil, nil, e.failure
	case e.failure != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrUnavailable, e.failure)
	}
	return nil, s.changed, nil
}

// Ready says whether Acquire would give the shard at once.
func (s *Store) Ready(d searchapi.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[d]
	return e != nil && e.state == ready
}

// Known says whether the shard is wanted or still held.
func (s *Store) Known(d searchapi.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[d] != nil
}

// Share gives another use of the shard, which must be released too.
func (h *Handle) Share() *Handle {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	h.opened.users++
	shared := *h
	return &shared
}

// Release ends the use of the shard. It must be called once.
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

// leave says whether the caller was the last user. The store's mutex is held.
func (o *opened) leave() bool {
	o.users--
	return o.users == 0
}

func (s *Store) close(o *opened, d searchapi.Digest) {
	if err := o.shard.Close(); err != nil {
		s.log.Warn("close shard", "shard", d.String(), "error", err)
	}
}

// Corrupt reports damage found while the shard was used: its file, if it is a
// whole copy, is moved
// aside and fetched anew, and until then Acquire says ErrCorrupt. Others who
// use the shard go on with what they have.
func (h *Handle) Corrupt(damage error) {
	s := h.store
	s.mu.Lock()
	e := s.entries[h.digest]
	if e == nil || e.current != h.opened {
		s.mu.Unlock()
		return // somebody was faster
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
