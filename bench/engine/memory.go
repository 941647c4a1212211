package engine

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"strconv"
)

// collections is how many collections end before the least heap counts.
const collections = 4

// heap returns the live heap: its least size after some collections. Pooled objects go with the second one, finalised ones with the one after
// their finalizers, which run at any time.
func heap() int64 {
	least := int64(math.MaxInt64)
	for range collections {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		least = min(least, int64(m.HeapAlloc))
	}
	return least
}

// resident returns the resident memory of the process in bytes, including
// mapped pages of files; 0 if the system does not report it.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	return residentIn(text) * int64(os.Getpagesize())
}

// residentIn returns the resident pages: the second number.
func residentIn(statm []byte) int64 {
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages
}

// mappings returns the number of memory maps of the process, which the system
// limits to about 65,000; 0 if the system does not report it.
func mappings() int {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0
	}
	return bytes.Count(text, []byte("\n"))
}

// MapsFor returns how many memory maps that many repos take, if each has
// average bytes, and a shard, which is one map, is full at shardBytes. The repo
// that fills a shard goes into it as a whole.
func MapsFor(repos, average, shardBytes int64) int64 {
	average = max(average, 1)
	perShard := max((shardBytes+average-1)/average, 1)
	return (repos + perShard - 1) / perShard
}
