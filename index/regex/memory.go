package regex

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// SearchBytes is the most bytes for the states of one expression while one goroutine searches with
// it.
const SearchBytes = 2 * maxBytes

// leaseBytes is how much an automaton takes from a Memory at a time.
const leaseBytes = 16 << 10

// Memory bounds the bytes of expressions and of the states of their automata, for one query within
// the bound of a process. At most half of it is for states: a search can do without them, so
// searches never take the room for compiling. It is safe for concurrent use. A nil Memory has no
// bound.
type Memory struct {
	within *Memory // nil for a process

	mu     sync.Mutex
	size   int
	taken  int
	closed bool
}

// mostProcessMemory and processShare bound NewProcessMemory.
const (
	mostProcessMemory = 256 << 20
	processShare      = 8
)

// NewProcessMemory returns the Memory for all queries of a server: 256 MiB, or an eighth of
// GOMEMLIMIT if that is less.
func NewProcessMemory() *Memory {
	return NewMemory(int(min(mostProcessMemory, debug.SetMemoryLimit(-1)/processShare)))
}

// NewMemory returns a Memory of size bytes.
func NewMemory(size int) *Memory { return &Memory{size: size} }

// Within returns a Memory for a part of m, of at most size bytes. Close returns what it has taken.
func (m *Memory) Within(size int) *Memory { return &Memory{within: m, size: size} }

// Reserve takes the bytes of compiled expressions, if at least as much remains for others in m and
// in the Memory that m is within: the larger a query, the earlier it is refused. Close returns
// them.
func (m *Memory) Reserve(bytes int) (ok bool) {
	return m.take(bytes, func(free, _ int) bool { return bytes <= free/2 })
}

// forStates takes bytes for states.
func (m *Memory) forStates(bytes int) (ok bool) {
	return m.take(bytes, func(free, size int) bool { return free-bytes >= size/2 })
}

func (m *Memory) take(bytes int, allowed func(free, size int) bool) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || !allowed(m.size-m.taken, m.size) || !m.within.take(bytes, allowed) {
		return false
	}
	m.taken += bytes
	return true
}

func (m *Memory) give(bytes int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.taken -= bytes
		m.within.give(bytes)
	}
}

// Close returns everything to the Memory that m is within. Later requests fail.
func (m *Memory) Close() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.within.give(m.taken)
	m.taken = 0
}

// lease is what one automaton has taken from a Memory. The collector of garbage returns it.
type lease struct {
	of    *Memory
	bytes int
}

// leaseFor returns nil if there is no bound.
func leaseFor(d *dfa, m *Memory) *lease {
	if m == nil {
		return nil
	}
	l := &lease{of: m}
	runtime.AddCleanup(d, func(l *lease) { l.of.give(l.bytes) }, l)
	return l
}

// covers takes more if needed. ok is false if there is no more.
func (l *lease) covers(bytes int) (ok bool) {
	if l == nil {
		return true
	}
	for l.bytes < bytes {
		if !l.of.forStates(leaseBytes) {
			return false
		}
		l.bytes += leaseBytes
	}
	return true
}
