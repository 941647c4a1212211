package engine

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
)

// heap is what is live. Twice, since what is finalised or pooled goes with
// the second collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// resident is the memory of the process in bytes, mapped pages of files
// included; 0 where the system does not say.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	return residentIn(text) * int64(os.Getpagesize())
}

// residentIn reads the pages that are resident: the second number.
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

// mappings is how many memory maps the process has, of which the system allows
// it about 65,000; 0 where the system does not say.
func mappings() int {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0
	}
	return bytes.Count(text, []byte("\n"))
}

// MapsFor is how many memory maps that many repos take when each has average
// bytes and a shard, which is one map, is full at shardBytes: one for each
// shard, and each of them takes the repo that fills it as a whole.
func MapsFor(repos, average, shardBytes int64) int64 {
	average = max(average, 1)
	perShard := max((shardBytes+average-1)/average, 1)
	return (repos + perShard - 1) / perShard
}
