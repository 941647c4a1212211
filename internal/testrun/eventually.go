package testrun

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// Patience bounds a wait for something that must happen. It is large, so that a test fails only when
// nothing moves any more.
// TRAWL_TEST_PATIENCE gives another time, for runs in which tests are expected to fail.
var Patience = patience(os.Getenv("TRAWL_TEST_PATIENCE"))

func patience(text string) time.Duration {
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return 5 * time.Minute
}

// Eventually tries until it gets nil. After Patience the context of try ends, and the test fails with
// the last error.
func Eventually(tb testing.TB, what string, try func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("not after %v: %s: %v", Patience, what, err)
		case <-time.After(pause):
		}
	}
}

// Until waits like Eventually until holds returns true.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	Eventually(tb, what, func(context.Context) error {
		if holds() {
			return nil
		}
		return errors.New("it does not hold")
	})
}
