package processor_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/services/searcher/internal/processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// take takes a slot within the test's time.
func take(t *testing.T, s *processor.Slots) (context.Context, *processor.Slot) {
	t.Helper()
	ctx, slot, err := s.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ctx, slot
}

// free reports whether a slot can be had at once.
func free(t *testing.T, s *processor.Slots) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Nanosecond, cancel)
	_, slot, err := s.Take(ctx)
	if err != nil {
		return false
	}
	slot.Release()
	return true
}

// TestSlotIsFreeWhileItsSearchWaits: others have it meanwhile, and the search goes
// on when they are done. The time that it waited does not count as its own.
func TestSlotIsFreeWhileItsSearchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := processor.NewSlots(1)
		ctx, slot := take(t, s)
		time.Sleep(time.Second)
		if free(t, s) {
			t.Error("a second search has the only slot")
		}
		resume := processor.Pause(ctx)
		time.Sleep(time.Minute)
		if !free(t, s) {
			t.Error("a search that waits has its slot")
		}
		_, other := take(t, s)
		time.AfterFunc(time.Hour, func() { other.Release() })
		began := time.Now()
		if err := resume(); err != nil || time.Since(began) != time.Hour {
			t.Errorf("went on after %v, %v", time.Since(began), err)
		}
		if free(t, s) {
			t.Error("the search goes on without a slot")
		}
		time.Sleep(time.Second)
		if busy := slot.Release(); busy.Round(time.Millisecond) != 2*time.Second {
			t.Errorf("it had the slot for %v", busy)
		}
		if !free(t, s) {
			t.Error("the slot was not given back")
		}
	})
}

// TestNoSlotInTime: a search whose time ends while it waits for a processor gets an error, and no
// slot.
func TestNoSlotInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := processor.NewSlots(1)
		within, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, slot, err := s.Take(within)
		if err != nil {
			t.Fatal(err)
		}
		resume := processor.Pause(ctx)
		_, other := take(t, s)
		if err := resume(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("resume: %v", err)
		}
		if _, _, err := s.Take(within); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("take: %v", err)
		}
		slot.Release()
		other.Release()
		if !free(t, s) {
			t.Error("the slot is lost")
		}
	})
}

// TestPauseWithoutSlot: a Pause outside of a search does nothing.
func TestPauseWithoutSlot(t *testing.T) {
	if err := processor.Pause(t.Context())(); err != nil {
		t.Error(err)
	}
}

// TestManyGoroutines: the goroutines of several searches wait at random. A search has its slot
// whenever none of its goroutines waits, and no slot is lost.
func TestManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := processor.NewSlots(2)
		var computing atomic.Int64
		var searching sync.WaitGroup
		for i := range 20 {
			searching.Go(func() {
				ctx, slot := take(t, s)
				var helpers sync.WaitGroup
				for j := range 3 {
					helpers.Go(func() {
						for k := range 10 {
							resume := processor.Pause(ctx)
							time.Sleep(time.Duration((i+j*k)%7) * time.Millisecond)
							if err := resume(); err != nil {
								t.Error(err)
							}
						}
					})
				}
				helpers.Wait()
				if n := computing.Add(1); n > 2 {
					t.Errorf("%d searches compute on 2 processors", n)
				}
				time.Sleep(time.Millisecond)
				computing.Add(-1)
				slot.Release()
			})
		}
		searching.Wait()
		_, one := take(t, s)
		_, two := take(t, s)
		if free(t, s) {
			t.Error("there are more than two slots")
		}
		one.Release()
		two.Release()
	})
}

// TestFirstComesBeforeOthers: TakeFirst gets the next slot that is given back, however many wait in
// Take.
func TestFirstComesBeforeOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := processor.NewSlots(1)
		_, held := take(t, s)
		var order []string
		var waiting sync.WaitGroup
		wait := func(name string, take func(context.Context) (context.Context, *processor.Slot, error)) {
			waiting.Go(func() {
				_, slot, err := take(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, name)
				slot.Release()
			})
			synctest.Wait()
		}
		wait("search", s.Take)
		wait("search", s.Take)
		wait("show", s.TakeFirst)
		held.Release()
		waiting.Wait()
		if len(order) != 3 || order[0] != "show" {
			t.Errorf("the order is %v", order)
		}
		if !free(t, s) {
			t.Error("a slot was not given back")
		}
	})
}
