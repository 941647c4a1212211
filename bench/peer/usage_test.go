package peer

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestParseUsage(t *testing.T) {
	stat := []byte("42 (a b) 9) S 1 42 42 0 -1 4194560 100 200 7 8 250 50 3 4 20 0 9 0 100 1 2 3\n")
	io := []byte("rchar: 5\nwchar: 6\nread_bytes: 8192\nwrite_bytes: 1\n")
	got, err := parseUsage(stat, io)
	if want := (Usage{CPU: 3 * time.Second, MajorFaults: 7, ReadBytes: 8192}); err != nil || got != want {
		t.Errorf("got %+v, %v, not %+v", got, err, want)
	}
	if d := got.Since(Usage{CPU: time.Second, MajorFaults: 1, ReadBytes: 192}); d != (Usage{2 * time.Second, 6, 8000}) {
		t.Errorf("the difference is %+v", d)
	}
	for _, bad := range [][2]string{{"42 (a) S 1", string(io)}, {"42 (a) S 1 1 1 1 1 1 1 1 x 1 1 1 1 1 1", string(io)}, {string(stat), "rchar: 5\n"}} {
		if got, err := parseUsage([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}

func TestLabelled(t *testing.T) {
	text := []byte("# HELP go_memstats_heap_alloc_bytes x\ngo_memstats_heap_alloc_bytes 1.5e+06\nRssAnon:\t   12 kB\n")
	for label, want := range map[string]int64{"go_memstats_heap_alloc_bytes": 1_500_000, "RssAnon:": 12 << 10} {
		unit := int64(1)
		if label == "RssAnon:" {
			unit = 1 << 10
		}
		if got, err := labelled(text, label, unit); err != nil || got != want {
			t.Errorf("%s is %d, not %d (%v)", label, got, want, err)
		}
	}
	if _, err := labelled(text, "RssFile:", 1); err == nil {
		t.Error("a label that is not there has a value")
	}
}

// TestHeapIsReadAfterCollections: before, garbage and pooled memory count.
func TestHeapIsReadAfterCollections(t *testing.T) {
	heaps, collections := []int{90, 95, 60, 99, 50, 20, 70, 30, 10}, []int{4, 4, 5, 5, 6, 7, 7, 8, 9}
	asked := 0
	s := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "go_memstats_heap_alloc_bytes %d\ngo_gc_duration_seconds_count %d\n", heaps[asked], collections[asked])
		asked++
	})
	if got, err := s.heap(t.Context()); err != nil || got != 20 || asked != 8 {
		t.Errorf("heap of %d after %d readings (%v)", got, asked, err)
	}
}

func TestDropCache(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sub", "file")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := DropCache(dir); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 1<<20 {
		t.Error("the file is not what it was", err)
	}
	if err := DropCache(filepath.Join(dir, "none")); err != nil {
		t.Error(err)
	}
}

func TestCounters(t *testing.T) {
	s := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE x counter\nx{a=\"1\",op=\"get\"} 7\nx{a=\"2\",op=\"get\"} 1e+06\nx{op=\"put\"} 9\nxy{op=\"get\"} 5\n")
	})
	if got, err := s.Counters(t.Context(), Series{"x", `op="put"`}, Series{"x", `op="get"`}); err != nil || !slices.Equal(got, []int64{9, 1_000_007}) {
		t.Errorf("got %v (%v)", got, err)
	}
	if got, err := s.Counters(t.Context(), Series{"x", `op="list"`}); err == nil {
		t.Errorf("a counter that is not there is %v", got)
	}
}
