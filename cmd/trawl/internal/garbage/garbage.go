// Package garbage decides how much garbage a process leaves behind before it is collected.
//
// Go collects when the heap has grown by as much as was live after the last
// collection. Every collection looks at all that is live, so that a server with 30 MB
// of live heap, as a small Trawl has, spends a tenth of its processor time on it under
// load. So garbage has room of its own here, which does not depend on what is live: it
// is collected when there is as much of it as is live, or as there is room for,
// whichever is more. Large heaps are collected as ever. Most commands end before the first collection.
package garbage

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The room is a share of the memory that the process may have, and not more than
// enough.
const (
	share  = 8
	enough = 128 << 20
)

var begin sync.Once

// MakeRoom gives garbage its room for the rest of the process. Where the environment
// sets GOGC, that decides instead.
func MakeRoom(environ []string) {
	if slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		return
	}
	begin.Do(func() { follow(min(enough, memory()/share)) })
}

// memory is what the process may have: by GOMEMLIMIT or its control group.
func memory() int64 {
	limit := debug.SetMemoryLimit(-1)
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(raw)) {
		group, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !unified {
			continue
		}
		most, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", group, "memory.max"))
		if err != nil {
			continue
		}
		if bytes, err := strconv.ParseInt(strings.TrimSpace(string(most)), 10, 64); err == nil {
			limit = min(limit, bytes)
		}
	}
	return limit
}

// mark is garbage from the start, so that its finalizer runs after each collection. It
// is large enough not to share its memory with others.
type mark struct{ _ [64]byte }

// follow sets after each collection how far the heap may grow until the next one. The
// time of changing that is some microseconds in which everything stands still, so
// that small changes are left alone.
func follow(room int64) {
	last := percent(smallest, room)
	debug.SetGCPercent(last)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var collected func(*mark)
	collected = func(m *mark) {
		metrics.Read(live)
		if now := percent(live[0].Value.Uint64(), room); now < last*9/10 || now > last*11/10 {
			debug.SetGCPercent(now)
			last = now
		}
		runtime.SetFinalizer(m, collected)
	}
	runtime.SetFinalizer(&mark{}, collected)
}

// smallest is the heap in bytes, live or not, that Go takes for the least when it decides when to collect: before the first
// collection nothing counts as live.
const smallest = 4 << 20

// percent is by how much of what is live the heap may grow.
func percent(live uint64, room int64) int {
	if live == 0 {
		return 100
	}
	return int(min(max(float64(room)/float64(live)*100, 100), math.MaxInt32))
}
