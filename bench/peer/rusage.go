package peer

import (
	"os"
	"runtime"
	"syscall"
)

// peakMemory returns the peak resident memory of a process that has ended, in
// bytes. The parent should be small: between fork and exec its own memory
// counts too.
func peakMemory(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return usage.Maxrss
	}
	return usage.Maxrss << 10 // Linux counts in KiB
}
