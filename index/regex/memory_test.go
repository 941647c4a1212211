package regex

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestStatesShareTheirMemory: many hostile expressions, searched by several goroutines,
// take no more for states than their Memory allows, and find the same as without a bound.
func TestStatesShareTheirMemory(t *testing.T) {
	const size = 256 << 10
	process := NewMemory(2 * size)
	memory := process.Within(size)
	text := randomText(3_000)
	var matchers, free []Matcher
	for range 4 {
		for _, pattern := range hostile {
			m, err := NewMatcherIn(memory, mustParse(t, pattern), true)
			if err != nil {
				t.Fatal(err)
			}
			matchers, free = append(matchers, m), append(free, mustAutomata(t, pattern))
		}
	}
	var searching sync.WaitGroup
	var most [2]int // bytes taken, as each goroutine saw: the collector of garbage returns what is not in use
	for worker := range most {
		searching.Go(func() {
			for i, m := range matchers {
				if !slices.Equal(found(m, text), found(free[i], text)) {
					t.Errorf("%s finds something else", hostile[i%len(hostile)])
				}
				most[worker] = max(most[worker], takenOf(memory))
			}
		})
	}
	searching.Wait()
	states := 0
	for _, m := range matchers {
		for range 2 {
			p := m.(*automata).pool.Get().(*pair)
			states += p.forward.used + p.backward.used
		}
	}
	taken := max(takenOf(memory), most[0], most[1])
	if room := size/2 + 4*len(matchers)*(4<<10); taken > size/2 || states > room { // each also has a state of its own
		t.Errorf("%d bytes are taken for %d of states, of %d", taken, states, size/2)
	}
	if taken < size/4 {
		t.Errorf("only %d bytes are taken: the test says little", taken)
	}
	runtime.KeepAlive(matchers)
	memory.Close()
	if process.taken != 0 || process.closed {
		t.Errorf("%d bytes are still taken", process.taken)
	}
	runtime.GC() // what automata return now was returned already
	if memory.forStates(1) || process.taken != 0 {
		t.Errorf("after the end %d bytes are taken", process.taken)
	}
}

func takenOf(m *Memory) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken
}

func found(m Matcher, text []byte) (all [][2]int) {
	for start, end := range Ranges(m, text) {
		all = append(all, [2]int{start, end})
	}
	return all
}

// TestMemoryIsCounted: after any operations, the Memory of a process has the sum of its
// parts, none exceeds its size, and there is always room for something small.
func TestMemoryIsCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		process := NewMemory(1 << 20)
		queries := []*Memory{process.Within(1 << 18), process.Within(1 << 19), process.Within(1 << 21)}
		states := make([]int, len(queries))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(queries)-1).Draw(t, "query")
			q, n := queries[i], rapid.IntRange(1, 1<<19).Draw(t, "bytes")
			switch rapid.IntRange(0, 4).Draw(t, "operation") {
			case 0:
				q.Reserve(n)
			case 1, 2:
				if q.forStates(n) {
					states[i] += n
				}
			case 3:
				q.give(states[i])
				states[i] = 0
			case 4:
				q.Close()
				queries[i], states[i] = process.Within(1<<19), 0
			}
			sum := 0
			for _, q := range queries {
				if sum += q.taken; q.taken < 0 || q.taken > q.size {
					t.Fatalf("%d of %d bytes are taken", q.taken, q.size)
				}
			}
			if sum != process.taken || sum >= process.size {
				t.Fatalf("%d bytes are taken, and %d of the process's %d", sum, process.taken, process.size)
			}
		}
	})
}
