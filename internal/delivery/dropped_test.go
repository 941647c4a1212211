package delivery

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestDroppedMessagesAreGivenBack: a message that gRPC drops without freeing it, as it does if the caller
// cancels just before, is charged no longer than it is in memory.
func TestDroppedMessagesAreGivenBack(t *testing.T) {
	a, err := New(1<<20, time.Hour, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	left := false
	ctx, call := a.begin(t.Context(), "somebody")
	if !Hold(ctx, "token", func() { left = true }) {
		t.Fatal("the call is not held")
	}
	end, other := net.Pipe()
	defer other.Close()
	conn := a.wrap(end)
	defer conn.Close()
	func() {
		if _, err := conn.encode(call, wrapperspb.String("x")); err != nil {
			t.Fatal(err)
		}
	}()
	call.end()
	if left || a.unread.Taken() == 0 {
		t.Error("the call ended before its answer")
	}
	for a.unread.Taken() > 0 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	call.mu.Lock()
	defer call.mu.Unlock()
	if call.unread != 0 {
		t.Errorf("%d bytes are unread", call.unread)
	}
}
