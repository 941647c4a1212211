// Package rounds says how long tests take. By default they use few draws and small corpora. With TRAWL_TEST_ALL=1 they
// use many and large ones.
package rounds

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// All reports whether TRAWL_TEST_ALL asks for the long tests.
func All() bool {
	asked, _ := strconv.ParseBool(os.Getenv("TRAWL_TEST_ALL"))
	return asked
}

// Of returns the first number by default, and the second for the long tests.
func Of[N int | uint64](few, all N) N {
	if All() {
		return all
	}
	return few
}

// Seed returns the seed of a test's random choices: TRAWL_TEST_SEED, or another one in each run. A failure prints it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("TRAWL_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TRAWL_TEST_SEED: %v", err)
		}
	}
	t.Logf("TRAWL_TEST_SEED=%d", seed)
	return seed
}
