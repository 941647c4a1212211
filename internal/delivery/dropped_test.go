package delivery

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/trawl-search/trawl/internal/testrun"
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
	conn.quiet() // after half of an hour
	testrun.Until(t, "a dropped message is no longer charged", func() bool { return a.unread.Taken() == 0 })
	call.mu.Lock()
	defer call.mu.Unlock()
	if call.unread != 0 {
		t.Errorf("%d bytes are unread", call.unread)
	}
	if conn.quiet(); conn.closed {
		t.Error("a connection on which nothing waits was closed")
	}
}

// TestQuietConnections: a connection is closed of which nothing is read for the whole time, and the garbage
// collector runs once for all of them.
func TestQuietConnections(t *testing.T) {
	a, err := New(1<<20, time.Hour, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	_, call := a.begin(t.Context(), "somebody")
	var unread []encoded
	closed := func(c *conn) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.closed
	}
	for range 3 {
		end, other := net.Pipe()
		defer other.Close()
		conn := a.wrap(end)
		defer conn.Close()
		answer, err := conn.encode(call, wrapperspb.String("x"))
		if err != nil {
			t.Fatal(err)
		}
		unread = append(unread, answer)
		conn.quiet()
		another, err := conn.encode(call, wrapperspb.String("y"))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range another {
			part.Free()
		}
		if conn.quiet(); closed(conn) {
			t.Error("a connection was closed in the time after something was read")
		}
		began := a.collected
		if conn.quiet(); !closed(conn) || !a.collected.Equal(began) {
			t.Errorf("nothing was read: closed %v, collected anew %v", closed(conn), !a.collected.Equal(began))
		}
	}
	runtime.KeepAlive(unread)
}
