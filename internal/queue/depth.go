package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Depth is the number of jobs and letters in the queue.
type Depth struct {
	// Jobs counts the jobs that are not done yet, Delivered those of them that an indexer
	// works on or that wait for their next try.
	Jobs, Delivered int
	// Dead counts the dead letters.
	Dead int
}

// Depth counts the jobs and letters in the queue. It returns an error if the queue
// cannot be used.
func (q *Queue) Depth(ctx context.Context) (d Depth, err error) {
	if err := q.connected(); err != nil {
		return d, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for name, n := range map[string]*int{q.cfg.jobStream(): &d.Jobs, q.cfg.deadStream(): &d.Dead} {
		stream, err := q.js.Stream(ctx, name)
		if err != nil {
			return d, fmt.Errorf("look at stream %s: %w", name, err)
		}
		*n = int(stream.CachedInfo().State.Msgs)
	}
	for _, name := range []string{consumerName, bulkConsumerName} {
		consumer, err := q.js.Consumer(ctx, q.cfg.jobStream(), name)
		if err != nil {
			return d, fmt.Errorf("look at consumer %s: %w", name, err)
		}
		d.Delivered += consumer.CachedInfo().NumAckPending
	}
	return d, nil
}

// errSilent means that the client has not reported why there is no connection, as
// while its first attempts fail.
var errSilent = errors.New("no server answers")

// connected returns an error that says why there is no connection, or nil.
func (q *Queue) connected() error {
	nc := q.js.Conn()
	if nc.IsConnected() {
		return nil
	}
	err := nc.LastError()
	if err == nil {
		err = errSilent
	}
	return fmt.Errorf("connect to NATS at %s: %w", strings.Join(nc.Servers(), ", "), err)
}
