package stack

import (
	"testing"
	"unsafe"
)

// TestGrownStacksStay: calls that take less than room do not move a stack that has grown.
func TestGrownStacksStay(t *testing.T) {
	moved := make(chan bool)
	go func() {
		Grow()
		var here byte
		before := uintptr(unsafe.Pointer(&here))
		deep(room / 256)
		moved <- uintptr(unsafe.Pointer(&here)) != before
	}()
	if <-moved {
		t.Error("the stack was copied")
	}
}

// deep makes nested calls, each with a frame of more than 64 and less than 256 bytes.
//
//go:noinline
func deep(calls int) byte {
	var bytes [64]byte
	bytes[calls%len(bytes)] = 1
	if calls > 0 {
		bytes[0] += deep(calls - 1)
	}
	return bytes[calls%len(bytes)]
}
