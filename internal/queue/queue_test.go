package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
)

func TestEveryJobIsDoneOnce(t *testing.T) {
	q, nc := fresh(t)
	var mu sync.Mutex
	done := map[queue.Job]int{}
	consume(t, q, 4, func(_ context.Context, d *queue.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		done[d.Job]++
		return nil
	})
	for i := range 50 {
		// Names need not fit into a header or a subject.
		publish(t, q, queue.Job{Repo: fmt.Sprintf("host/ö\r\n *>%d", i%10), Epoch: uint64(i / 10)})
	}
	testrun.Until(t, "all jobs settled", func() bool { return left(t, nc, jobStream) == 0 })
	mu.Lock()
	defer mu.Unlock()
	if len(done) != 50 {
		t.Errorf("%d different jobs, want 50", len(done))
	}
	for job, n := range done {
		if n != 1 {
			t.Errorf("%v done %d times", job, n)
		}
	}
}

// TestBulkJobsTakeTurns: while jobs of both kinds wait, they take turns.
func TestBulkJobsTakeTurns(t *testing.T) {
	q, _ := fresh(t)
	for i := range 10 {
		publish(t, q, queue.Job{Repo: fmt.Sprint("bulk", i), Bulk: true})
	}
	started, goOn := make(chan bool), make(chan struct{})
	var running atomic.Int32
	consume(t, q, 1, func(ctx context.Context, d *queue.Delivery) error {
		if n := running.Add(1); n > 1 {
			t.Errorf("one worker runs %d jobs", n)
		}
		defer running.Add(-1)
		for _, step := range []func() bool{
			func() bool {
				select {
				case started <- d.Bulk:
					return true
				case <-ctx.Done():
					return false
				}
			},
			func() bool {
				select {
				case <-goOn:
					return true
				case <-ctx.Done():
					return false
				}
			},
		} {
			if !step() {
				return ctx.Err()
			}
		}
		return nil
	})
	if !receive(t, started, "the first bulk job") {
		t.Fatal("it is no bulk job")
	}
	for i := range 5 {
		publish(t, q, queue.Job{Repo: fmt.Sprint("push", i)})
	}
	bulk := 0
	for done := range 8 {
		testrun.Until(t, "a job waits for the worker", func() bool {
			d, err := q.Depth(t.Context())
			return err == nil && d.Jobs == 15-done && d.Delivered == 2
		})
		goOn <- struct{}{}
		if receive(t, started, "the next job") {
			bulk++
		}
	}
	if bulk < 2 || bulk > 6 { // four, unless a job that was pulled comes too late for its turn
		t.Errorf("%d of 8 jobs are bulk jobs", bulk)
	}
}

// TestYield: a handler that yields keeps its job, and its worker takes the next one.
func TestYield(t *testing.T) {
	q, nc := fresh(t)
	const jobs = 20
	var waiting sync.WaitGroup
	waiting.Add(jobs)
	var all, done atomic.Int32
	consume(t, q, 1, func(ctx context.Context, d *queue.Delivery) error {
		if d.NumDelivered == 1 {
			d.Yield()
			d.Yield()
			waiting.Done()
			waiting.Wait()
			all.Add(1)
		}
		if d.Repo == "7" && d.NumDelivered == 1 {
			return errors.New("once more")
		}
		done.Add(1)
		return nil
	})
	for i := range jobs {
		publish(t, q, queue.Job{Repo: fmt.Sprint(i)})
	}
	testrun.Until(t, "all jobs settled", func() bool { return left(t, nc, jobStream) == 0 })
	if all.Load() != jobs || done.Load() != jobs {
		t.Errorf("%d jobs waited together, %d were done, want %d", all.Load(), done.Load(), jobs)
	}
}

// TestStopWaitsForYielded: Consume does not return before the handlers that yielded.
func TestStopWaitsForYielded(t *testing.T) {
	q, _ := fresh(t)
	started := make(chan struct{}, 1)
	var ended atomic.Bool
	stop := consume(t, q, 1, func(ctx context.Context, d *queue.Delivery) error {
		d.Yield()
		started <- struct{}{}
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond)
		ended.Store(true)
		return ctx.Err()
	})
	publish(t, q, queue.Job{Repo: "a"})
	receive(t, started, "the job")
	stop()
	if !ended.Load() {
		t.Error("the handler goes on")
	}
}

func TestDuplicatesAreDropped(t *testing.T) {
	q, nc := fresh(t)
	publish(t, q, queue.Job{Repo: "a", Epoch: 1}, queue.Job{Repo: "a", Epoch: 1})
	if n := left(t, nc, jobStream); n != 1 {
		t.Errorf("%d messages for one job", n)
	}
	publish(t, q, queue.Job{Repo: "a", Epoch: 2}, queue.Job{Repo: "a", Epoch: 1, Attempt: 1}, queue.Job{Repo: "b", Epoch: 1})
	if n := left(t, nc, jobStream); n != 4 {
		t.Errorf("%d messages for four jobs", n)
	}
}

// takeAndDie takes messages as workers that die do: they never say anything about them.
func takeAndDie(t *testing.T, nc *nats.Conn, messages int) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := js.Consumer(t.Context(), jobStream, "indexers")
	if err != nil {
		t.Fatal(err)
	}
	for range messages {
		if _, err := consumer.Next(jetstream.FetchMaxWait(limit)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestJobComesAgainAfterCrash(t *testing.T) {
	q, nc := freshWith(t, impatient())
	publish(t, q, queue.Job{Repo: "a", Epoch: 1})
	takeAndDie(t, nc, 1)
	again := make(chan queue.Delivery, 1)
	consume(t, q, 1, func(_ context.Context, d *queue.Delivery) error { again <- *d; return nil })
	if d := receive(t, again, "redelivery"); d.Repo != "a" || d.NumDelivered != 2 {
		t.Errorf("redelivered %+v", d)
	}
}

// Jobs take four times as long as they may without a sign of life. If the machine
// stands still, a job may be delivered again, but not in every attempt.
func TestHeartbeatKeepsSlowJob(t *testing.T) {
	cfg := impatient()
	for ; startsOfSlowJob(t, cfg) != 1; cfg.AckWait *= 2 {
		if cfg.AckWait > limit/10 {
			t.Fatalf("a slow job came again although it may be silent for %v", cfg.AckWait)
		}
	}
}

func startsOfSlowJob(t *testing.T, cfg queue.Config) int32 {
	t.Helper()
	q, nc := freshWith(t, cfg)
	var started atomic.Int32
	consume(t, q, 2, func(context.Context, *queue.Delivery) error {
		started.Add(1)
		time.Sleep(4 * cfg.AckWait) // the server's clock cannot be faked
		return nil
	})
	publish(t, q, queue.Job{Repo: "slow"})
	testrun.Until(t, "job settled", func() bool { return left(t, nc, jobStream) == 0 })
	return started.Load()
}

func TestTransientErrorIsTriedAgainAndThenGivenUp(t *testing.T) {
	q, nc := fresh(t)
	var tries atomic.Int32
	consume(t, q, 1, func(_ context.Context, d *queue.Delivery) error {
		if n := int(tries.Add(1)); d.NumDelivered != n {
			t.Errorf("delivery %d says it is number %d", n, d.NumDelivered)
		}
		return fmt.Errorf("try %d: no route", d.NumDelivered)
	})
	publish(t, q, queue.Job{Repo: "a", Epoch: 7})
	testrun.Until(t, "dead letter", func() bool { return len(letters(t, q)) == 1 })
	letter := letters(t, q)[0]
	if letter.Job != (queue.Job{Repo: "a", Epoch: 7}) || letter.NumDelivered != 3 || !strings.Contains(letter.Reason, "try 3: no route") || letter.Time.IsZero() {
		t.Errorf("letter %+v", letter)
	}
	testrun.Until(t, "job gone", func() bool { return left(t, nc, jobStream) == 0 })
	if tries.Load() != 3 {
		t.Errorf("%d tries", tries.Load())
	}
}

func TestPermanentErrorIsGivenUpAtOnce(t *testing.T) {
	q, nc := fresh(t)
	var tries atomic.Int32
	consume(t, q, 1, func(_ context.Context, d *queue.Delivery) error {
		tries.Add(1)
		return fmt.Errorf("job: %w", queue.Permanent(errors.New(strings.Repeat("ö", 4000))))
	})
	// One after the other: a worker takes the next job before the letter of the last one is written.
	for _, job := range []queue.Job{{Repo: "a", Epoch: 1}, {Repo: "a", Epoch: 2}, {Repo: "b", Epoch: 1}} {
		publish(t, q, job)
		testrun.Until(t, "job gone", func() bool { return left(t, nc, jobStream) == 0 })
	}
	got := letters(t, q)
	if len(got) != 2 || got[0].Repo != "a" || got[0].Epoch != 2 || got[1].Repo != "b" || tries.Load() != 3 {
		t.Errorf("%d tries; want the newest letter of each repo, got %+v", tries.Load(), got)
	}
	if one, err := q.DeadLetter(t.Context(), "a"); err != nil || one != got[0] {
		t.Errorf("the letter of a: %+v, %v", one, err)
	}
	if n := len(got[0].Reason); n > 4096 || n < 4000 {
		t.Errorf("reason of %d bytes", n)
	}
	if err := q.Forget(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if one, err := q.DeadLetter(t.Context(), "a"); !errors.Is(err, queue.ErrNoLetter) {
		t.Errorf("a forgotten letter: %+v, %v", one, err)
	}
	if got := letters(t, q); len(got) != 1 || got[0].Repo != "b" {
		t.Errorf("after forgetting a: %+v", got)
	}
	if err := q.Forget(t.Context(), "never heard of"); err != nil {
		t.Error(err)
	}
}

// A job that has to wait for another is never given up, however often it waits.
func TestLaterIsNeverGivenUp(t *testing.T) {
	q, nc := fresh(t)
	var tries atomic.Int32
	consume(t, q, 1, func(context.Context, *queue.Delivery) error {
		if tries.Add(1) <= 10 {
			return queue.Later(errors.New("leased"), time.Millisecond)
		}
		return nil
	})
	publish(t, q, queue.Job{Repo: "a"})
	testrun.Until(t, "job settled", func() bool { return left(t, nc, jobStream) == 0 })
	if n := tries.Load(); n != 11 {
		t.Errorf("%d tries, want 11", n)
	}
	if got := letters(t, q); len(got) != 0 {
		t.Errorf("given up: %+v", got)
	}
}

func TestPanicIsAFailure(t *testing.T) {
	q, _ := fresh(t)
	consume(t, q, 1, func(context.Context, *queue.Delivery) error { panic("out of cheese") })
	publish(t, q, queue.Job{Repo: "a"})
	testrun.Until(t, "dead letter", func() bool { return len(letters(t, q)) == 1 })
	if letter := letters(t, q)[0]; !strings.Contains(letter.Reason, "out of cheese") {
		t.Errorf("%+v", letter)
	}
}

// Workers that die on a job leave no outcome. The job must still be given up.
func TestJobThatKillsWorkersIsGivenUp(t *testing.T) {
	q, nc := freshWith(t, impatient())
	publish(t, q, queue.Job{Repo: "killer", Epoch: 3})
	takeAndDie(t, nc, 4*brisk().MaxDeliver)
	consume(t, q, 1, func(_ context.Context, d *queue.Delivery) error {
		t.Errorf("handed out again: %+v", d)
		return nil
	})
	testrun.Until(t, "dead letter", func() bool { return len(letters(t, q)) == 1 })
	if letter := letters(t, q)[0]; letter.Epoch != 3 || !strings.Contains(letter.Reason, "12 times") {
		t.Errorf("%+v", letter)
	}
}

func TestGarbageIsGivenUp(t *testing.T) {
	q, nc := fresh(t)
	if _, err := nc.Request("trawl.jobs", []byte("not a job"), limit); err != nil {
		t.Fatal(err)
	}
	consume(t, q, 1, func(_ context.Context, d *queue.Delivery) error {
		t.Errorf("handed out: %+v", d)
		return nil
	})
	testrun.Until(t, "dead letter", func() bool { return len(letters(t, q)) == 1 })
}

// A worker that has to stop gives its job back at once and uncounted.
func TestStoppedWorkerGivesItsJobBack(t *testing.T) {
	nc := startNATS(t, t.TempDir(), "").Conn()
	cfg := brisk()
	cfg.AckWait = time.Hour // only giving it back makes it available again
	q := newQueue(t, nc, cfg)
	publish(t, q, queue.Job{Repo: "a"})
	for range 2 * cfg.MaxDeliver {
		begun := make(chan bool, 1)
		stop := consume(t, q, 1, func(ctx context.Context, _ *queue.Delivery) error {
			begun <- true
			<-ctx.Done()
			return ctx.Err()
		})
		receive(t, begun, "job")
		stop()
	}
	done := make(chan bool, 1)
	consume(t, q, 1, func(context.Context, *queue.Delivery) error { done <- true; return nil })
	receive(t, done, "job after the stops")
	if got := letters(t, q); len(got) != 0 {
		t.Errorf("given up: %+v", got)
	}
}

// A job that finishes while the worker stops is settled, not repeated.
func TestFinishedJobIsSettledWhileStopping(t *testing.T) {
	q, nc := fresh(t)
	begun := make(chan bool, 1)
	stop := consume(t, q, 1, func(ctx context.Context, _ *queue.Delivery) error {
		begun <- true
		<-ctx.Done()
		return nil
	})
	publish(t, q, queue.Job{Repo: "a"})
	receive(t, begun, "job")
	stop()
	if n := left(t, nc, jobStream); n != 0 {
		t.Errorf("%d messages left", n)
	}
}

func TestConfigIsChecked(t *testing.T) {
	nc := startNATS(t, t.TempDir(), "").Conn()
	bad := []queue.Config{
		{AckWait: 1}, {MaxDeliver: -1}, {RetryMin: time.Hour, RetryMax: time.Minute}, {Duplicates: 1}, {Replicas: 6},
	}
	for _, cfg := range bad {
		if _, err := queue.New(nc, cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	if err := newQueue(t, nc, brisk()).Consume(t.Context(), 0, nil); err == nil {
		t.Error("consumed with no workers")
	}
	if err := newQueue(t, nc, brisk()).Publish(t.Context(), queue.Job{Repo: strings.Repeat("r", 1<<17)}); err == nil {
		t.Error("published a job over the limit")
	}
	if got := letters(t, newQueue(t, nc, brisk())); len(got) != 0 {
		t.Errorf("letters before there is a stream: %+v", got)
	}
}

func TestMarksKeepTheCause(t *testing.T) {
	cause := errors.New("cause")
	for _, err := range []error{queue.Permanent(cause), queue.Later(cause, 1)} {
		if !errors.Is(err, cause) || err.Error() != "cause" {
			t.Errorf("%v", err)
		}
	}
	if queue.Permanent(nil) != nil || queue.Later(nil, 1) != nil {
		t.Error("a mark made an error of nil")
	}
	if !queue.IsPermanent(fmt.Errorf("x: %w", queue.Permanent(cause))) || queue.IsPermanent(cause) {
		t.Error("IsPermanent")
	}
}
