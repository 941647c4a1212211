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

// contact knows whether etcd answers while somebody keeps it. Otherwise etcd never counts
// as away. It is safe for concurrent use.
type contact struct {
	mu sync.Mutex
	// heard is when etcd last answered, or when keep started.
	heard time.Time
	// link ends with ErrAway while etcd is away. It is nil if KeepContact does not run.
	link context.Context //nolint:containedctx // it is the link's, not that of a call
	lose context.CancelCauseFunc
}

// keep probes etcd until ctx ends. The probe calls hear when etcd has answered.
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

// connect makes a link that holds.
func (c *contact) connect() {
	link, lose := context.WithCancelCause(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard, c.link, c.lose = time.Now(), link, lose
}

// watch ends the link when etcd has been silent for too long, whatever a probe waits for.
func (c *contact) watch(ctx context.Context) {
	for left := patience; wait.Sleep(ctx, left); {
		c.mu.Lock()
		if left = patience - time.Since(c.heard); left <= 0 {
			left = probePause
			c.lose(ErrAway)
		}
		c.mu.Unlock()
	}
}

// hear notes that etcd has answered.
func (c *contact) hear() {
	c.mu.Lock()
	c.heard = time.Now()
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
	if c.heard.IsZero() {
		return 0
	}
	return time.Since(c.heard)
}

// guard returns read, which fails with ErrAway when etcd is away: at once, or when that
// turns out during the read.
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
// seconds, Current and Reach fail with ErrAway at once, and Within where it would ask etcd,
// until etcd answers again. Only one call may run at a time for each store.
func (v *View) KeepContact(ctx context.Context) {
	c := &v.store.contact
	c.keep(ctx, func(ctx context.Context) {
		began := time.Now()
		revision, err := v.store.readClock(ctx)
		if err != nil {
			return
		}
		c.hear()
		// The next read does not wait for a watch that is late.
		ctx, cancel := context.WithTimeout(ctx, probePause)
		defer cancel()
		if _, err := v.WaitFor(ctx, revision); err == nil {
			v.prove(began)
		}
	})
}

// Silence is how long ago etcd last answered KeepContact, or how long ago that
// started; 0 before.
func (v *View) Silence() time.Duration { return v.store.contact.silence() }
