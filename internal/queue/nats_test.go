package queue_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long a test waits for an event; far longer than the event takes.
const limit = time.Minute

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// brisk is a configuration with short waits, for tests.
func brisk() queue.Config {
	return queue.Config{
		AckWait: 2 * limit, MaxDeliver: 3, // no job is repeated on a slow machine
		RetryMin: 10 * time.Millisecond, RetryMax: 40 * time.Millisecond, Logger: quiet(),
	}
}

// impatient is brisk with a short AckWait: jobs without a sign of life soon go to
// others.
func impatient() queue.Config {
	cfg := brisk()
	cfg.AckWait = 300 * time.Millisecond
	return cfg
}

// jobStream is the stream of jobs with the default prefix.
const jobStream = "TRAWL_JOBS"

func startNATS(t *testing.T, dir, listen string) *embedded.NATS {
	t.Helper()
	n, err := embedded.StartNATS(t.Context(), embedded.Config{NoSync: true, Dir: dir, NATSListen: listen, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func newQueue(t *testing.T, nc *nats.Conn, cfg queue.Config) *queue.Queue {
	t.Helper()
	q, err := queue.New(nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// fresh is a brisk queue on a server of its own.
func fresh(t *testing.T) (*queue.Queue, *nats.Conn) {
	t.Helper()
	return freshWith(t, brisk())
}

func freshWith(t *testing.T, cfg queue.Config) (*queue.Queue, *nats.Conn) {
	t.Helper()
	nc := startNATS(t, t.TempDir(), "").Conn()
	q := newQueue(t, nc, cfg)
	if err := q.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q, nc
}

func publish(t *testing.T, q *queue.Queue, jobs ...queue.Job) {
	t.Helper()
	for _, job := range jobs {
		if err := q.Publish(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
}

// consume runs Consume until the test ends or stop is called, which waits for it.
func consume(t *testing.T, q *queue.Queue, workers int, handle queue.Handler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := q.Consume(ctx, workers, handle); err != nil {
			t.Errorf("consume: %v", err)
		}
	})
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(limit):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// left counts the messages in a stream.
func left(t *testing.T, nc *nats.Conn, stream string) uint64 {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

func letters(t *testing.T, q *queue.Queue) []queue.DeadLetter {
	t.Helper()
	var all []queue.DeadLetter
	for letter, err := range q.DeadLetters(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, letter)
	}
	return all
}
