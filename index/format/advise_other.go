//go:build !linux

package format

const (
	adviceRandom = iota
	adviceWillNeed
)

func madvise([]byte, int) {}

func inMemory([]byte) bool { return true }
