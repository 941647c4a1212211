package searcher

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/wait"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

const (
	// registrationPoll is how often readiness checks the registration.
	registrationPoll = 200 * time.Millisecond
	// bucketPoll is how often readiness checks the bucket, and bucketTime bounds one
	// check.
	bucketPoll = time.Second
	bucketTime = 5 * time.Second
)

// conditions are what must hold before a searcher is ready: it knows the roots,
// routers know it, it has its shards or has tried each of them, and it has seen
// the bucket or holds shards of it already.
type conditions struct{ etcd, registered, shards, bucket *server.Condition }

// follow keeps the conditions current until ctx ends. The shards' condition
// stays met once it was: later ones are loaded while others are served.
func (c conditions) follow(ctx context.Context, f *shardcache.Follower, r *membership.Registration, b bucket.Bucket, s *shardcache.Store, log *slog.Logger) {
	c.etcd.Unmet("the roots and searchers have not been read yet")
	c.registered.Unmet("not registered in etcd yet")
	c.shards.Unmet("the shards that belong here are not known yet")
	c.bucket.Unmet("the bucket has not been checked yet")
	var loading sync.WaitGroup
	defer loading.Wait()
	loading.Go(func() {
		if f.WaitApplied(ctx, 1) != nil {
			return
		}
		c.etcd.Met()
		if err := s.Prune(); err != nil {
			log.WarnContext(ctx, "remove shards of an earlier run", "error", err)
		}
		c.waitForShards(ctx, s)
	})
	loading.Go(func() { c.waitForBucket(ctx, b, s) })
	c.watchRegistration(ctx, r)
}

// waitForBucket reports a missing bucket before the first shard needs it. Shards on
// disk can be searched without the bucket, so the condition stays met once it was.
func (c conditions) waitForBucket(ctx context.Context, b bucket.Bucket, s *shardcache.Store) {
	for ctx.Err() == nil {
		looked, cancel := context.WithTimeout(ctx, bucketTime)
		err := bucket.Reachable(looked, b)
		cancel()
		if counts, _ := s.Counts(); err == nil || counts.Ready > 0 {
			c.bucket.Met()
			return
		}
		c.bucket.Unmet(err.Error())
		wait.Sleep(ctx, bucketPoll)
	}
}

func (c conditions) waitForShards(ctx context.Context, s *shardcache.Store) {
	for {
		counts, changed := s.Counts()
		if counts.Settled() {
			c.shards.Met()
			return
		}
		reason := fmt.Sprintf("%d of %d shards are loaded", counts.Ready, counts.Ready+counts.Pending+counts.Failed)
		if counts.Failed > 0 {
			reason += fmt.Sprintf(", %d could not be: %s", counts.Failed, counts.Reason)
		}
		c.shards.Unmet(reason)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (c conditions) watchRegistration(ctx context.Context, r *membership.Registration) {
	for ctx.Err() == nil {
		if r.Registered() {
			c.registered.Met()
		} else {
			c.registered.Unmet("not registered in etcd; routers do not know this searcher")
		}
		wait.Sleep(ctx, registrationPoll)
	}
}
