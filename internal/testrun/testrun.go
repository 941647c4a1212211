// Package testrun gives tests their random choices, the number of their rounds, free addresses, the size of
// the heap, programs that end with them, one way to wait for what must happen, and one to compare with a file.
package testrun

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

const (
	seedEnv = "TRAWL_TEST_SEED"
	allEnv  = "TRAWL_TEST_ALL"
)

// Seed returns the seed of TRAWL_TEST_SEED, or a random one, and writes it to the log of the test,
// which is printed if the test fails.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatalf("%s: %v", seedEnv, err)
		}
	}
	tb.Logf("%s=%d", seedEnv, seed)
	return seed
}

// Rand returns a generator with the seed of Seed. It is safe for concurrent use.
func Rand(tb testing.TB) *rand.Rand {
	tb.Helper()
	return Locked(Seed(tb))
}

// Locked returns a generator that is safe for concurrent use.
func Locked(seed uint64) *rand.Rand { return rand.New(&lockedSource{src: rand.NewPCG(seed, 0)}) }

type lockedSource struct {
	mu  sync.Mutex
	src rand.Source
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.src.Uint64()
}

// All reports whether long tests do all they can: TRAWL_TEST_ALL is set.
func All() bool { return os.Getenv(allEnv) != "" }

// NeedAll skips a test that only `make test-all` runs.
func NeedAll(tb testing.TB) {
	tb.Helper()
	if !All() {
		tb.Skip("not run: make test-all runs it (" + allEnv + "=1)")
	}
}

// Rounds returns how many rounds a long test has: the usual number, or that of All.
func Rounds[N int | uint64](usual, all N) N {
	if All() {
		return all
	}
	return usual
}

// Must ends a test at the first error.
func Must(tb testing.TB, errs ...error) {
	tb.Helper()
	for _, err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// LiveHeap returns the live bytes. It collects twice, since the second collection frees what is
// pooled.
func LiveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
