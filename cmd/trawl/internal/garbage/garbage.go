// Package garbage lets a small heap leave more garbage behind before it is collected. It takes effect as it is initialised.
//
// The packages of all roles are in one binary, and those of others leave as much behind when they are initialised as makes Go collect for
// the first time: before a short command began, that cost it a fifth of its processor time. So main is too late. Go initialises packages in
// the order of their import paths as far as their imports allow, and this one, which imports only a few of the standard library, before
// most others.
package garbage

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// The room for garbage is a share of the memory that the process may have, and at most
// garbageMost bytes.
const (
	garbageShare = 8
	garbageMost  = 128 << 20
)

// A server or command leaves more garbage behind before it is collected, unless the environment sets GOGC.
//
// Go collects when the heap has grown by as much as was live after the last collection.
// Every collection scans all live memory: a server with 30 MB of live heap, as a small
// Trawl has, spends a tenth of its processor time on that under load. So the heap may grow
// by a fixed room or by the live heap, whichever is more. Large heaps are collected as
// before. Most commands end before the first collection.
func init() { //nolint:gochecknoinits // the package's doc says why
	if _, set := os.LookupEnv("GOGC"); !set {
		followCollections(min(garbageMost, processMemory()/garbageShare))
	}
}

// processMemory returns the memory limit of the process: from GOMEMLIMIT or from its control group.
func processMemory() int64 {
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

// collectionMark is garbage from the start, so that its finalizer runs after each collection. It
// is too large for the tiny allocator, which would keep it alive with its neighbours.
type collectionMark struct{ _ [64]byte }

// followCollections sets after each collection how far the heap may grow until the next one.
// Each change stops the world for some microseconds, so it skips small changes.
func followCollections(room int64) {
	last := growthPercent(smallestHeap, room)
	debug.SetGCPercent(last)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var collected func(*collectionMark)
	collected = func(m *collectionMark) {
		metrics.Read(live)
		if now := growthPercent(live[0].Value.Uint64(), room); now < last*9/10 || now > last*11/10 {
			debug.SetGCPercent(now)
			last = now
		}
		runtime.SetFinalizer(m, collected)
	}
	runtime.SetFinalizer(&collectionMark{}, collected)
}

// smallestHeap is the smallest heap at which Go collects, in bytes. Before the first collection nothing counts as live.
const smallestHeap = 4 << 20

// growthPercent returns by how many percent of the live heap the heap may grow.
func growthPercent(live uint64, room int64) int {
	if live == 0 {
		return 100
	}
	return int(min(max(float64(room)/float64(live)*100, 100), math.MaxInt32))
}
