package engine

import (
	"os"
	"runtime"
	"testing"

	"github.com/trawl-search/trawl/index/build"
)

func TestResidentIn(t *testing.T) {
	for text, want := range map[string]int64{"10 7 3 1 0 4 0\n": 7, "": 0, "10": 0, "a b": 0} {
		if got := residentIn([]byte(text)); got != want {
			t.Errorf("%q: %d pages, not %d", text, got, want)
		}
	}
}

// TestOneMapForEachShard: opening a shard adds one memory map, and no file
// stays open.
func TestOneMapForEachShard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory maps are counted in /proc")
	}
	done, err := Index(t.Context(), twoRepos(t), t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	files := openFiles(t)
	e, err := OpenEngine(done.Shards)
	if err != nil {
		t.Fatal(err)
	}
	if got := openFiles(t); got != files {
		t.Errorf("%d files are open, %d were before", got, files)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	// Adjacent maps of one file could be merged, so they are counted over many.
	const held = 500
	o, err := Open(t.Context(), done.Shards, held)
	if err != nil {
		t.Fatal(err)
	}
	if o.Maps < held*9/10 || o.Maps > held*11/10 {
		t.Errorf("%d shards are %d memory maps", held, o.Maps)
	}
	if got := resident(); got < 1<<20 {
		t.Errorf("this process takes %d bytes", got)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestMapsOfManySmallRepos: 100,000 repos of half a megabyte need fewer than
// 1,000 maps at the default size of a full shard. The pieces of the corpus
// packed are smaller: 95 kB.
func TestMapsOfManySmallRepos(t *testing.T) {
	for _, c := range []struct{ repos, average, shard, want int64 }{
		{100_000, 500_000, build.DefaultMaxSourceBytes, 187},
		{100_000, 95_000, build.DefaultMaxSourceBytes, 36},
		{10, 3, 10, 3}, {10, 100, 10, 10}, {0, 100, 10, 0}, {10, 0, 10, 1},
	} {
		got := MapsFor(c.repos, c.average, c.shard)
		if got != c.want || got >= 1000 {
			t.Errorf("%d repos of %d bytes in shards of %d are %d maps, not %d", c.repos, c.average, c.shard, got, c.want)
		}
	}
}
