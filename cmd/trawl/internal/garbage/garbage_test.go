package garbage

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/trawl-search/trawl/internal/testrun"
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

// followEnv makes TestFollowCollections follow, in a process of its own: with GOGC, so that the package does
// not follow already, with another room.
const followEnv = "TRAWL_TEST_FOLLOW_COLLECTIONS"

// TestFollowCollections: the allowed growth follows the live heap, collection by collection.
func TestFollowCollections(t *testing.T) {
	if os.Getenv(followEnv) == "" {
		self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFollowCollections$")
		self.Env = append(os.Environ(), followEnv+"=1", "GOGC=100")
		if out, err := self.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	const room = 512 << 20
	followCollections(room)
	wait := func(least, most uint64) {
		t.Helper()
		now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		testrun.Until(t, fmt.Sprintf("a growth of %d to %d %%", least, most), func() bool {
			runtime.GC()
			metrics.Read(now)
			got := now[0].Value.Uint64()
			return least <= got && got <= most
		})
	}
	wait(1000, 1<<31) // this test has less than 50 MB
	func() {
		large := make([]byte, 300<<20)
		wait(100, 200)
		runtime.KeepAlive(large)
	}()
	wait(1000, 1<<31)
}
