package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/trawl-search/trawl/internal/wait"
)

// newBackoff returns the pauses between attempts while the server is away.
func newBackoff() wait.Backoff {
	return wait.Backoff{Least: 100 * time.Millisecond, Most: 5 * time.Second}
}

// Ensure makes the streams and the consumer if they are missing, and returns when
// they exist. While the server is away it tries again with growing waits, until the
// context ends.
func (q *Queue) Ensure(ctx context.Context) error {
	for pauses := newBackoff(); ; {
		err := q.ensureOnce(ctx)
		if err == nil {
			return nil
		}
		pause := pauses.Next()
		q.logger.Warn("streams are not ready, trying again", "error", err, "wait", pause)
		if !wait.Sleep(ctx, pause) {
			return fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		}
	}
}

func (q *Queue) ensureOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for _, cfg := range []jetstream.StreamConfig{q.jobStream(), q.deadStream()} {
		if _, err := q.js.CreateOrUpdateStream(ctx, cfg); err != nil {
			return fmt.Errorf("make stream %s: %w", cfg.Name, err)
		}
	}
	for _, bulk := range []bool{false, true} {
		if _, err := q.consumer(ctx, bulk); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) jobStream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        q.cfg.jobStream(),
		Description: "Repos that have work; each message goes to one indexer.",
		Subjects:    []string{q.cfg.jobSubject(false), q.cfg.jobSubject(true)},
		Retention:   jetstream.WorkQueuePolicy,
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardNew, // a full queue is an error; dropping the oldest would be silent
		MaxMsgs:     maxJobs,
		MaxMsgSize:  maxMessage,
		Duplicates:  q.cfg.Duplicates,
		Replicas:    q.cfg.Replicas,
	}
}

func (q *Queue) deadStream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              q.cfg.deadStream(),
		Description:       "Jobs that were given up, with the reason; the newest of each repo.",
		Subjects:          []string{q.cfg.deadSubject() + "*"},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		MaxMsgs:           maxDead,
		MaxMsgsPerSubject: 1,
		MaxMsgSize:        maxMessage,
		MaxAge:            deadAge,
		Replicas:          q.cfg.Replicas,
	}
}

// consumer makes or finds the consumer of bulk jobs, or that of the others, which all indexers share. The server delivers
// without limit, and Consume enforces the limit: a message that the server gave up would
// stay in the work queue for ever, unnoticed.
func (q *Queue) consumer(ctx context.Context, bulk bool) (jetstream.Consumer, error) {
	name := consumerName
	if bulk {
		name = bulkConsumerName
	}
	consumer, err := q.js.CreateOrUpdateConsumer(ctx, q.cfg.jobStream(), jetstream.ConsumerConfig{
		Durable:       name,
		FilterSubject: q.cfg.jobSubject(bulk),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       q.cfg.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: maxJobs, // a job that waits for its next try must not hold back others
	})
	if err != nil {
		return nil, fmt.Errorf("make consumer %s: %w", name, err)
	}
	return consumer, nil
}
