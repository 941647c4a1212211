package searcher

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/trawl-search/trawl/internal/registry"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/services/searcher/internal/placement"
	"github.com/trawl-search/trawl/services/searcher/internal/store"
)

// registrationPoll is how often the registration is looked at for readiness.
const registrationPoll = 200 * time.Millisecond

// conditions are what must hold before a searcher is ready: it knows the roots,
// routers know it, and it has its shards or has tried each of them.
type conditions struct{ etcd, registered, shards *server.Condition }

// follow keeps the conditions current until ctx ends. The shards' condition
// stays met once it was: later ones are loaded while others are served.
func (c conditions) follow(ctx context.Context, f *placement.Follower, r *registry.Registration, s *store.Store, log *slog.Logger) {
	c.etcd.Unmet("the roots and searchers were not read yet")
	c.registered.Unmet("not registered in etcd yet")
	c.shards.Unmet("which shards belong here is not known yet")
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
	c.watchRegistration(ctx, r)
}

func (c conditions) waitForShards(ctx context.Context, s *store.Store) {
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

func (c conditions) watchRegistration(ctx context.Context, r *registry.Registration) {
	tick := time.NewTicker(registrationPoll)
	defer tick.Stop()
	for {
		if r.Registered() {
			c.registered.Met()
		} else {
			c.registered.Unmet("not registered in etcd; routers do not know this searcher")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
