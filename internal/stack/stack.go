// Package stack saves goroutines that go deep from growing their stack step by step.
package stack

// room is what a search takes of a stack, in bytes: with less it grows again in the search.
const room = 12 << 10

// Grow makes room on the stack of a new goroutine that is about to search, whose stack is nearly empty. Later the
// runtime would copy it each time that it doubles, and correct the pointers of every frame, which takes a tenth of the
// time of a short search.
func Grow() { _ = frame(room - 1) }

// frame has a frame of that size, which the compiler cannot leave out.
//
//go:noinline
func frame(at int) byte {
	var bytes [room]byte
	bytes[at] = 1
	return bytes[at/2]
}
