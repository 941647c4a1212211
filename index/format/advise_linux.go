package format

import "syscall"

const (
	adviceRandom   = syscall.MADV_RANDOM
	adviceWillNeed = syscall.MADV_WILLNEED
)

func madvise(data []byte, advice int) { _ = syscall.Madvise(data, advice) }
