package regex

import (
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"sync"
	"testing"
)

// hostile are expressions with far more states than texts have places, or with large programs.
var hostile = []string{
	`(a|b)*a(a|b){12}`, `(a|b)*a(a|b){200}c`, `[\pL]{50}`, `([\pL\d]{1,20}){1,10}c`, `(?:(?:a?b?){20}){20}c`, `(?:x+x+)+y`, `(.*)(.*)(.*)(.*)(.*)c`,
	`(?i)(?:k|s|\pL){100}c`, `(a*)*c`, `(?:\b|a|(?:a|b)*){30}c`, `.{0,500}a.{0,200}c`,
}

func randomText(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, size)
	for i := range text {
		text[i] = "ab"[random.IntN(2)]
	}
	return text
}

// TestStatesAreBounded runs hostile expressions without letting automata give up: memory stays
// within its bound however many states there are.
func TestStatesAreBounded(t *testing.T) {
	text := randomText(20_000)
	cleared := 0
	for _, pattern := range hostile {
		a := mustAutomata(t, pattern)
		p := a.pool.New().(*pair)
		p.forward.gain, p.backward.gain = 0, 0
		p.forward.gained = 1 << 40
		if _, _, paid := a.find(p, text, 0); !paid {
			t.Errorf("%s gave up", pattern)
		}
		if p.forward.gained < 1<<40 {
			cleared++
		}
		if size := p.forward.size() + p.backward.size(); size > 2<<20 {
			t.Errorf("%s: %d bytes", pattern, size)
		}
	}
	if cleared == 0 {
		t.Error("no states were thrown away: the test says little")
	}
}

// size returns the bytes of the states, as far as they can be counted.
func (d *dfa) size() int {
	size := cap(d.rows)*4 + len(d.states)*(2*16+4+8) // two strings' headers, a number, the table around
	for _, state := range d.states {
		size += len(state)
	}
	return size
}

// TestHostileExpressionsAreLeftToTheLibrary counts the states that automata make before they give
// up, which bounds the time that they waste.
func TestHostileExpressionsAreLeftToTheLibrary(t *testing.T) {
	text := randomText(60_000)
	a := mustAutomata(t, `(a|b)*a(a|b){200}c`)
	for range 2 * maxBails {
		if _, _, ok := a.Find(text[:1000], 0); ok {
			t.Fatal("a match without c")
		}
	}
	p := a.pool.New().(*pair)
	if _, _, paid := a.find(p, text, 0); paid {
		t.Error("automata did not give up")
	}
	for range 2 * maxBails {
		a.Find(text[:9000], 0)
	}
	if n := a.bails.Load(); n != maxBails {
		t.Errorf("gave up %d times, want %d", n, maxBails)
	}
}

// TestTooLargeForAutomata has expressions that NewMatcher must leave to the library.
func TestTooLargeForAutomata(t *testing.T) {
	var many strings.Builder
	for i := range 400 {
		fmt.Fprintf(&many, "%c|", rune(0x4E00+2*i))
	}
	for _, pattern := range []string{`(?:abcdefghi\w){1000}`, many.String() + "(?:" + strings.ReplaceAll(many.String(), "|", "x|") + ")", `a\x{D800}`} {
		tree, err := syntax.Parse(pattern, flags)
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewMatcher(tree, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.(*library); !ok {
			t.Errorf("%.20s…: %T", pattern, m)
		}
	}
}

// TestFindAllocatesNothing checks that a search allocates nothing once it has its states.
func TestFindAllocatesNothing(t *testing.T) {
	text := []byte(strings.Repeat("x func  name(日本) \u212Afoo_SUSPEND\n", 50))
	for _, pattern := range []string{`func\s+\w+\(`, `[A-Z_]+_SUSPEND`, `(?i)k\w+`, `\b\w`, `日.`} {
		a := mustAutomata(t, pattern)
		p := a.pool.New().(*pair) // the pool may be emptied at any time
		if n := testing.AllocsPerRun(100, func() {
			for from := 0; from >= 0; {
				_, from, _ = a.find(p, text, from)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", pattern, n)
		}
	}
}

// TestMatcherIsConcurrent is for the race detector: goroutines share a matcher and the Memory of its states.
func TestMatcherIsConcurrent(t *testing.T) {
	m, err := NewMatcherIn(NewMemory(1<<20).Within(1<<19), mustParse(t, `(a|b)*a(a|b){8}`), true)
	if err != nil {
		t.Fatal(err)
	}
	text := randomText(5000)
	_, want, _ := m.Find(text, 0)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, end, ok := m.Find(text, i); !ok || end != want {
				t.Errorf("from %d: %d %v, want %d", i, end, ok, want)
			}
		})
	}
	wg.Wait()
}
