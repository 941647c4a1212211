package catalog

import (
	"context"
	"sync"
	"time"

	"github.com/trawl-search/trawl/internal/wait"
)

const (
	// probePause is the time between two reads that show whether etcd answers.
	probePause = time.Second
	// patience is how long etcd may be silent before it counts as away. With etcd's own
	// settings the election of a leader takes one to three seconds.
	patience = 5 * time.Second
)

// contact knows whether etcd answers, as long as keep runs. Otherwise etcd never counts
// as away. It is safe for concurrent use.
type contact struct {
	mu sync.Mutex
	// answered is when etcd last answered, or when keep started.
	answered time.Time
	// link ends with ErrAway while etcd is away. It is nil if KeepContact does not run.
	link context.Context //nolint:containedctx // it is the link's, not that of a call
	lose context.CancelCauseFunc
}

// keep probes etcd until ctx ends. The probe calls noteAnswer when etcd has answered.
func (c *contact) keep(ctx context.Context, probe func(ctx context.Context)) {
	c.connect()
	var watching sync.WaitGroup
	watching.Go(func() { c.watch(ctx) })
	for wait.Sleep(ctx, probePause) {
		probing, cancel := context.WithTimeout(ctx, patience)
		probe(probing)
		cancel()
	}
	watching.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = nil
}

// connect makes a new link.
func (c *contact) connect() {
	link, lose := context.WithCancelCause(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered, c.link, c.lose = time.Now(), link, lose
}

// watch ends the link when etcd has been silent for too long, even while a probe still
// waits.
func (c *contact) watch(ctx context.Context) {
	for left := patience; wait.Sleep(ctx, left); {
		c.mu.Lock()
		if left = patience - time.Since(c.answered); left <= 0 {
			left = probePause
			c.lose(ErrAway)
		}
		c.mu.Unlock()
	}
}

// noteAnswer notes that etcd has answered.
func (c *contact) noteAnswer() {
	c.mu.Lock()
	c.answered = time.Now()
	lost := c.link.Err() != nil
	c.mu.Unlock()
	if lost {
		c.connect()
	}
}

// silence is how long ago etcd last answered.
func (c *contact) silence() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered.IsZero() {
		return 0
	}
	return time.Since(c.answered)
}

// guard wraps read so that it fails with ErrAway while etcd is away: at once, or as
// soon as that shows during the read.
func (c *contact) guard(read func(ctx context.Context) (int64, error)) func(ctx context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		c.mu.Lock()
		link := c.link
		c.mu.Unlock()
		if link == nil {
			return read(ctx)
		}
		if link.Err() != nil {
			return 0, ErrAway
		}
		reading, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(link, cancel)()
		revision, err := read(reading)
		if err != nil && ctx.Err() == nil && link.Err() != nil {
			return 0, ErrAway
		}
		return revision, err
	}
}

// KeepContact reads the newest revision from etcd every second until ctx ends. The view is
// thereby known to be current without any query. Once etcd has been silent for five
// seconds, Current, Reach, and Within where it would ask etcd, fail with ErrAway at once
// until etcd answers again. Only one call may run at a time for each store.
func (v *View) KeepContact(ctx context.Context) {
	c := &v.store.contact
	c.keep(ctx, func(ctx context.Context) {
		began := time.Now()
		revision, err := v.follower.Now(ctx)
		if err != nil {
			return
		}
		c.noteAnswer()
		// The next read does not wait for a watch that is late.
		ctx, cancel := context.WithTimeout(ctx, probePause)
		defer cancel()
		if _, err := v.WaitFor(ctx, revision); err == nil {
			v.prove(began)
		}
	})
}

// Silence is how long ago etcd last answered KeepContact, or KeepContact started; 0
// before.
func (v *View) Silence() time.Duration { return v.store.contact.silence() }
