package testrun

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a test that may fail.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.notef(format, args...)
	runtime.Goexit()
}

func (f *failing) notef(format string, args ...any) { f.said = fmt.Sprintf(format, args...) }

func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Until(t, "a time", func() bool { return time.Since(began) > Patience-time.Second })
		f := &failing{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Eventually(f, "the sea", func(context.Context) error { return errors.New("no fish") })
		}()
		<-ended
		if !strings.Contains(f.said, "the sea: no fish") {
			t.Errorf("it failed with %q", f.said)
		}
	})
}
