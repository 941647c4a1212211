// Package processor shares the processors of a searcher among its searches.
//
// A search has a slot while it computes, and none while it waits for the bucket: Pause
// gives the slot back for that time. So slow reads of some shards do not delay the search
// of others.
package processor

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Slots are as many as searches may compute at once. They are safe for concurrent
// use.
type Slots struct {
	taken chan struct{}
	// first hands a slot to a waiter that goes before those that wait for taken.
	first chan struct{}
}

// NewSlots makes n free slots.
func NewSlots(n int) *Slots { return &Slots{make(chan struct{}, n), make(chan struct{})} }

// Count is how many slots there are.
func (s *Slots) Count() int { return cap(s.taken) }

// Take waits for a slot. Release must follow. Code that runs under the returned context
// can give the slot back for a while. The error reports that ctx ended.
func (s *Slots) Take(ctx context.Context) (context.Context, *Slot, error) {
	return s.slot(ctx, s.take(ctx, nil))
}

// TakeFirst is Take for work that completes an earlier search: it goes before all that
// wait in Take.
func (s *Slots) TakeFirst(ctx context.Context) (context.Context, *Slot, error) {
	return s.slot(ctx, s.take(ctx, s.first))
}

func (s *Slots) slot(ctx context.Context, err error) (context.Context, *Slot, error) {
	if err != nil {
		return nil, nil, err
	}
	slot := &Slot{of: s, held: true, since: time.Now()}
	return context.WithValue(ctx, key{}, slot), slot, nil
}

// take waits for a slot that is free, or that is handed over.
func (s *Slots) take(ctx context.Context, handed <-chan struct{}) error {
	select {
	case s.taken <- struct{}{}:
		return nil
	case <-handed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a processor: %w", ctx.Err())
	}
}

type key struct{}

// Slot is a search's share of the processors. It is safe for concurrent use.
type Slot struct {
	of *Slots

	mu sync.Mutex
	// waiting counts the goroutines of the search that wait. Several goroutines can
	// compute concurrently under one slot. It is given back when the first of them starts
	// to wait, and taken again when none waits any more.
	waiting int
	// held is set while the search has the slot, and taking while it waits to get it
	// back.
	held, taking bool
	since        time.Time
	// busy is how long it had the slot before.
	busy time.Duration
}

// Release gives the slot back for good, and returns how long the search had it. The
// search must have ended.
func (s *Slot) Release() (busy time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveBack()
	return s.busy
}

// giveBack needs mu.
func (s *Slot) giveBack() {
	if !s.held {
		return
	}
	s.held = false
	s.busy += time.Since(s.since)
	select {
	case s.of.first <- struct{}{}:
	default:
		<-s.of.taken
	}
}

// Pause gives back the slot that ctx is under, if it is under one, while the
// caller waits for something that needs no processor. Resume must follow, on the
// same goroutine: it waits for a slot again, and its error says that ctx ended.
func Pause(ctx context.Context) (resume func() error) {
	s, ok := ctx.Value(key{}).(*Slot)
	if !ok {
		return func() error { return nil }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	s.giveBack()
	return func() error { return s.resume(ctx) }
}

func (s *Slot) resume(ctx context.Context) error {
	s.mu.Lock()
	s.waiting--
	last := s.waiting == 0 && !s.held && !s.taking
	s.taking = s.taking || last
	s.mu.Unlock()
	if !last {
		return nil
	}
	err := s.of.take(ctx, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taking = false
	if err != nil {
		return err
	}
	s.held, s.since = true, time.Now()
	if s.waiting > 0 { // another goroutine began to wait meanwhile
		s.giveBack()
	}
	return nil
}
