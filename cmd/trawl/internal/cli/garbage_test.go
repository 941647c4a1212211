package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestGrowthPercent: a small heap may grow by the room there is, a large one by itself.
func TestGrowthPercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		room int64
		want int
	}{
		{0, 128 << 20, 100},
		{32 << 20, 128 << 20, 400},
		{128 << 20, 128 << 20, 100},
		{1 << 30, 128 << 20, 100},
		{1, garbageMost, 1<<31 - 1},
	} {
		if got := growthPercent(c.live, c.room); got != c.want {
			t.Errorf("%d live bytes with room for %d: %d %%, want %d %%", c.live, c.room, got, c.want)
		}
	}
}

// TestFollowCollections: the allowed growth follows the live heap, collection by collection.
func TestFollowCollections(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const room = 512 << 20
	followCollections(room)
	wait := func(least, most uint64) {
		t.Helper()
		now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		for {
			runtime.GC()
			metrics.Read(now)
			if got := now[0].Value.Uint64(); least <= got && got <= most {
				return
			}
			runtime.Gosched()
		}
	}
	wait(1000, 1<<31) // a test has less than 50 MB
	func() {
		large := make([]byte, 300<<20)
		wait(100, 200)
		runtime.KeepAlive(large)
	}()
	wait(1000, 1<<31)
}
