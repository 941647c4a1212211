package queue_test

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
)

// deafServer greets as a NATS server and answers no request, like a cluster in which
// the leader of a stream was just killed.
func deafServer(t *testing.T) (url string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go listenOnly(c)
		}
	}()
	return "nats://" + l.Addr().String()
}

func listenOnly(c net.Conn) {
	defer c.Close()
	_, _ = c.Write([]byte(`INFO {"server_id":"deaf","version":"2.11.0","proto":1,"headers":true,"max_payload":1048576}` + "\r\n"))
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "PING") {
			_, _ = c.Write([]byte("PONG\r\n"))
		}
	}
}

// TestNoAnswer: whatever its caller's deadline, an operation gives up if the server
// does not answer. A job that waited for it would keep its repo's lease.
func TestNoAnswer(t *testing.T) {
	nc, err := queue.Connect(deafServer(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	q := newQueue(t, nc, queue.Config{})
	testrun.Until(t, "connected", nc.IsConnected)
	operations := map[string]func(context.Context) error{
		"publish": func(ctx context.Context) error { return q.Publish(ctx, queue.Job{Repo: "r", Epoch: 1}) },
		"depth":   func(ctx context.Context) error { _, err := q.Depth(ctx); return err },
		"forget":  func(ctx context.Context) error { return q.Forget(ctx, "r") },
		"letter":  func(ctx context.Context) error { _, err := q.DeadLetter(ctx, "r"); return err },
		"letters": func(ctx context.Context) error {
			for _, err := range q.DeadLetters(ctx, 0) {
				return err
			}
			return nil
		},
	}
	var all sync.WaitGroup // parallel subtests would wait for each other's processors
	for name, operation := range operations {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := operation(ctx); err == nil || ctx.Err() != nil {
				t.Errorf("%s: got %v, and the caller's context says %v", name, err, ctx.Err())
			}
		})
	}
	all.Wait()
}
