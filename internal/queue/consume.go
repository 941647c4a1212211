package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"github.com/trawl-search/trawl/internal/wait"
)

const (
	// pullWait is how long one request for a job waits at the server. It bounds how long
	// a worker waits in vain after the server restarted.
	pullWait = 5 * time.Second
	// settleTimeout bounds the report of a job's outcome to the server. It also applies
	// after the context ended, so that a finished job is not done again.
	settleTimeout = 5 * time.Second
	// lostFactor times Config.MaxDeliver is how often a job is delivered if its workers
	// die.
	lostFactor = 4
)

// Delivery is a job in the hands of a handler.
type Delivery struct {
	Job
	// NumDelivered counts deliveries of this message, from 1.
	NumDelivered int

	yield func() // frees the worker
}

// Yield lets the delivery's worker take another job while its handler waits for
// something that costs nothing. The handler must bound how many of them do so at once.
// Further calls have no effect.
func (d *Delivery) Yield() {
	if d.yield != nil {
		d.yield()
	}
}

// Handler does a job. Its error decides what follows: nil settles the job, Permanent
// makes it a dead letter, Later repeats it after a while, and any other error repeats
// it after a growing wait, until MaxDeliver. A job may be delivered more than once,
// also after success, and to two handlers at once: handlers must be idempotent.
type Handler func(ctx context.Context, d *Delivery) error

// Consume lets that many workers run handle, one job each at a time unless it yields. Bulk jobs
// and others take turns while both wait. It ends with the context; then it waits for the running handlers and returns nil. While a
// handler runs, signs of life keep the job from being given to others. If the server
// goes away, Consume waits until it is back, with or without its data. A handler that
// panics has failed with the panic as its error.
func (q *Queue) Consume(ctx context.Context, workers int, handle Handler) error {
	if workers < 1 {
		return fmt.Errorf("consume: %d workers, at least 1", workers)
	}
	c := &consumption{Queue: q, handle: handle, workers: semaphore.NewWeighted(int64(workers))}
	for range workers {
		c.running.Go(func() { c.work(ctx, false) })
		c.running.Go(func() { c.work(ctx, true) })
	}
	c.running.Wait()
	return nil
}

// consumption is a call of Consume.
type consumption struct {
	*Queue

	handle  Handler
	workers *semaphore.Weighted
	running sync.WaitGroup
}

// work pulls one job of a kind after the other. Pulling single jobs leaves waiting ones at the
// server, where other workers can get them. A job that was pulled is next, so that pulling for each kind lets both take turns.
func (q *consumption) work(ctx context.Context, bulk bool) {
	for pauses := newBackoff(); ctx.Err() == nil; {
		err := q.pull(ctx, bulk)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			pauses.Reset()
			continue
		}
		pause := pauses.Next()
		q.logger.Warn("cannot get jobs, trying again", "error", err, "wait", pause)
		wait.Sleep(ctx, pause)
	}
}

// pull handles jobs until the connection or the streams fail.
func (q *consumption) pull(ctx context.Context, bulk bool) error {
	if err := q.ensureOnce(ctx); err != nil {
		return err
	}
	consumer, err := q.consumer(ctx, bulk)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		msg, err := next(ctx, consumer)
		if err != nil {
			return err
		}
		if msg != nil {
			free := make(chan struct{})
			q.running.Go(func() {
				next := sync.OnceFunc(func() { close(free) })
				defer next()
				q.deliver(ctx, msg, next)
			})
			<-free
		}
	}
	return nil
}

// next waits for a job; it returns nil if none came in time.
func next(ctx context.Context, consumer jetstream.Consumer) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, pullWait)
	defer cancel()
	msg, err := consumer.Next(jetstream.FetchContext(ctx))
	if errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrNoMessages) || errors.Is(err, context.DeadlineExceeded) {
		return nil, nil
	}
	return msg, err
}

// deliver hands one message to the handler when a worker is free, and settles it by the outcome. It calls next when the next one can be pulled.
func (q *consumption) deliver(ctx context.Context, msg jetstream.Msg, next func()) {
	d, err := decode(msg)
	switch {
	case err != nil:
		err = Permanent(err)
	case d.NumDelivered > lostFactor*q.cfg.MaxDeliver:
		// The limit is reached without an outcome: each time the worker died. Only handlers
		// can find out which of a worker's jobs is to blame, so lostFactor gives them time
		// for it.
		err = Permanent(fmt.Errorf("delivered %d times, and no worker reported an outcome", d.NumDelivered-1))
	default:
		err = q.run(ctx, msg, d, next)
	}
	if err := q.settle(ctx, msg, d, err); err != nil {
		// The job is delivered again after AckWait; handlers are idempotent.
		q.logger.Warn("outcome of job not stored", "repo", d.Repo, "epoch", d.Epoch, "error", err)
	}
}

// decode always returns a delivery, so that a letter can be written even for a
// message that is not a job.
func decode(msg jetstream.Msg) (*Delivery, error) {
	d := &Delivery{NumDelivered: 1}
	meta, err := msg.Metadata()
	if err != nil {
		return d, fmt.Errorf("read message metadata: %w", err)
	}
	d.NumDelivered = int(meta.NumDelivered)
	if err := json.Unmarshal(msg.Data(), &d.Job); err != nil {
		return d, fmt.Errorf("decode job: %w", err)
	}
	return d, nil
}

// run waits for a worker and calls the handler, while signs of life go out.
func (q *consumption) run(ctx context.Context, msg jetstream.Msg, d *Delivery, next func()) (err error) {
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() { q.beat(msg, d, stop) })
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			q.logger.Error("job panicked", "repo", d.Repo, "panic", r, "stack", string(debug.Stack()))
		}
		close(stop)
		beating.Wait()
	}()
	if err := q.workers.Acquire(ctx, 1); err != nil {
		return err
	}
	d.yield = sync.OnceFunc(func() {
		q.workers.Release(1)
		next()
	})
	defer d.yield()
	return q.handle(ctx, d)
}

// beat reports to the server every third of AckWait that the job is in progress: two
// reports may be lost before the job is given to another worker.
func (q *Queue) beat(msg jetstream.Msg, d *Delivery, stop <-chan struct{}) {
	ticker := time.NewTicker(q.cfg.AckWait / 3)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			if err := msg.InProgress(); err != nil {
				q.logger.Warn("sign of life not sent", "repo", d.Repo, "error", err)
			}
		}
	}
}
