//go:build !linux

package format

const (
	adviceRandom = iota
	adviceWillNeed
)

func madvise([]byte, int) {}
