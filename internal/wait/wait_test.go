package wait

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestDouble(t *testing.T) {
	for times, want := range []time.Duration{3 * time.Second, 6 * time.Second, 12 * time.Second, 24 * time.Second, 40 * time.Second, 40 * time.Second} {
		if got := Double(3*time.Second, uint32(times), 40*time.Second); got != want {
			t.Errorf("doubled %d times: %v, want %v", times, got, want)
		}
	}
	if got := Double(time.Second, 1<<31, math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("doubled very often: %v", got)
	}
	if got := Double(2*time.Hour, 0, time.Hour); got != time.Hour {
		t.Errorf("more than the most is not doubled: %v", got)
	}
}

func TestJitter(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	for range 1000 {
		d := Jitter(time.Minute, 4)
		least, most = min(least, d), max(most, d)
	}
	if least < 45*time.Second || least > 48*time.Second || most > 75*time.Second || most < 72*time.Second {
		t.Errorf("from %v to %v, want nearly 45s to 75s", least, most)
	}
	if d := Jitter(0, 4); d != 0 {
		t.Errorf("no time became %v", d)
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if !Sleep(ctx, 20*time.Second) || time.Since(start) != 20*time.Second {
			t.Errorf("slept %v", time.Since(start))
		}
		if Sleep(ctx, time.Hour) || time.Since(start) != time.Minute {
			t.Errorf("slept %v under a context of a minute", time.Since(start))
		}
		if Sleep(ctx, 0) {
			t.Error("the context has ended")
		}
	})
}

func TestBackoff(t *testing.T) {
	pauses := Backoff{Least: 100 * time.Millisecond, Most: time.Second}
	for range 2 {
		for _, ms := range []int{100, 200, 400, 800, 1000, 1000} {
			most := time.Duration(ms) * time.Millisecond
			if d := pauses.Next(); d < most/2 || d > most {
				t.Errorf("a pause of %v, want one from %v up to %v", d, most/2, most)
			}
		}
		pauses.Reset()
	}
}

// TestChange: a change wakes everyone who took the channel before it, and nobody who
// took it afterwards.
func TestChange(t *testing.T) {
	var c Change
	closed := func(ch <-chan struct{}) bool {
		select {
		case <-ch:
			return true
		default:
			return false
		}
	}
	c.Notify() // nobody waits
	one, two := c.Next(), c.Next()
	if closed(one) || closed(two) {
		t.Error("woken before the change")
	}
	c.Notify()
	later := c.Next()
	if !closed(one) || !closed(two) || closed(later) {
		t.Errorf("after a change: %v, %v and later %v", closed(one), closed(two), closed(later))
	}
}
