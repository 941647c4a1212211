package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
)

func TestMessagesSurviveRestart(t *testing.T) {
	dir := t.TempDir()
	n := startNATS(t, dir, "")
	q := newQueue(t, n.Conn(), impatient())
	stop := consume(t, q, 1, func(_ context.Context, d *queue.Delivery) error {
		return queue.Permanent(errors.New("reason"))
	})
	publish(t, q, queue.Job{Repo: "dead"})
	testrun.Until(t, "dead letter", func() bool { return left(t, n.Conn(), jobStream) == 0 })
	stop()
	publish(t, q, queue.Job{Repo: "waiting"})
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = startNATS(t, dir, "")
	q = newQueue(t, n.Conn(), impatient())
	if got := letters(t, q); len(got) != 1 || got[0].Repo != "dead" || !strings.Contains(got[0].Reason, "reason") {
		t.Errorf("letters after restart: %+v", got)
	}
	got := make(chan string, 10)
	consume(t, q, 1, func(_ context.Context, d *queue.Delivery) error { got <- d.Repo; return nil })
	if repo := receive(t, got, "job after restart"); repo != "waiting" {
		t.Errorf("got %s", repo)
	}
}

// The server goes away under a running Consume, twice: first it comes back with its
// data, then without.
func TestConsumeSurvivesServerRestart(t *testing.T) {
	dir := t.TempDir()
	address := testrun.Address(t)
	n := startNATS(t, dir, address)
	nc, err := queue.Connect(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	q := newQueue(t, nc, impatient())
	got := make(chan string, 100)
	stop := consume(t, q, 2, func(_ context.Context, d *queue.Delivery) error { got <- d.Repo; return nil })
	defer stop()
	for i, next := range []string{dir, t.TempDir()} {
		repo := fmt.Sprintf("before %d", i)
		testrun.Until(t, "publication", func() bool { return q.Publish(t.Context(), queue.Job{Repo: repo}) == nil })
		for receive(t, got, repo) != repo {
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := q.Publish(ctx, queue.Job{Repo: "nobody there"}); err == nil {
			t.Error("published without a server")
		}
		cancel()
		n = startNATS(t, next, address)
		repo = fmt.Sprintf("after %d", i)
		testrun.Until(t, "publication", func() bool { return q.Publish(t.Context(), queue.Job{Repo: repo}) == nil })
		for receive(t, got, repo) != repo {
		}
	}
}

func TestStartsBeforeTheServer(t *testing.T) {
	dir := t.TempDir()
	address := testrun.Address(t)
	nc, err := queue.Connect("nats://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	q := newQueue(t, nc, impatient())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	if err := q.Ensure(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ensured without a server: %v", err)
	}
	if _, err := q.Depth(ctx); err == nil {
		t.Error("ready without a server")
	}
	cancel()
	startNATS(t, dir, address)
	if err := q.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if depth, err := q.Depth(t.Context()); err != nil || depth != (queue.Depth{}) {
		t.Errorf("not ready and empty: %v, %v", depth, err)
	}
}
