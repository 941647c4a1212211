package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// settle reports the outcome of a job to the server.
func (q *Queue) settle(ctx context.Context, msg jetstream.Msg, d *Delivery, outcome error) error {
	stopping := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	later, isLater := errors.AsType[laterError](outcome)
	switch {
	case outcome == nil:
		return msg.DoubleAck(ctx)
	case IsPermanent(outcome):
		return q.bury(ctx, msg, d, outcome)
	case stopping:
		// The worker stops, which is not the job's fault: another worker gets it.
		return q.again(ctx, msg, d, 0)
	case isLater:
		return q.again(ctx, msg, d, later.delay)
	case d.NumDelivered >= q.cfg.MaxDeliver:
		return q.bury(ctx, msg, d, fmt.Errorf("failed %d times, last: %w", d.NumDelivered, outcome))
	default:
		q.logger.Info("job failed, trying again", "repo", d.Repo, "epoch", d.Epoch, "delivered", d.NumDelivered, "error", outcome)
		return msg.NakWithDelay(q.cfg.backoff(d.NumDelivered))
	}
}

// again puts a job back without counting the delivery as a failure. The server counts
// deliveries, so when the count is used up a copy replaces the message.
func (q *Queue) again(ctx context.Context, msg jetstream.Msg, d *Delivery, delay time.Duration) error {
	if d.NumDelivered < q.cfg.MaxDeliver {
		return msg.NakWithDelay(delay)
	}
	if err := q.publish(ctx, d.Job, nuid.Next()); err != nil {
		return errors.Join(err, msg.NakWithDelay(max(delay, q.cfg.RetryMin)))
	}
	return msg.DoubleAck(ctx)
}

// bury writes a dead letter and only then takes the job out of the queue: a crash in
// between causes a second letter, but never loses the reason.
func (q *Queue) bury(ctx context.Context, msg jetstream.Msg, d *Delivery, reason error) error {
	letter := DeadLetter{Job: d.Job, NumDelivered: d.NumDelivered, Reason: clip(reason.Error()), Time: time.Now().UTC()}
	if err := q.writeLetter(ctx, letter); err != nil {
		return errors.Join(err, msg.NakWithDelay(q.cfg.backoff(d.NumDelivered)))
	}
	q.logger.Warn("job given up", "repo", d.Repo, "epoch", d.Epoch, "reason", letter.Reason)
	return msg.TermWithReason("dead letter written")
}
