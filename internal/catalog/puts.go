package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	"github.com/trawl-search/trawl/internal/wait"
)

// Puts counts the repos that each caller has put, following etcd while it runs. Deleted repos count
// as long as they are remembered (see DropMemories). It is safe for concurrent use.
type Puts struct {
	store *Store
	log   *slog.Logger

	mu     sync.Mutex
	by     map[string]string // callers by name of the repo
	counts map[string]int    // by caller; nil before the first listing
	listed wait.Change
}

// NewPuts makes counts that are unknown until they run.
func NewPuts(store *Store, log *slog.Logger) *Puts { return &Puts{store: store, log: log} }

// Run follows etcd until ctx ends.
func (p *Puts) Run(ctx context.Context) {
	keys := follow.Range{From: p.store.key(putKind, ""), To: p.store.end(putKind)}
	follow.Run(ctx, p.store.client, keys, p.store.clockKey(), p.log, p.apply)
}

// Count is how many repos a caller has put that were not there before. It waits until the counts are known, or until ctx
// ends; then it fails.
func (p *Puts) Count(ctx context.Context, caller string) (n int, err error) {
	if err := p.listed.Until(ctx, &p.mu, func() bool { n = p.counts[caller]; return p.counts != nil }); err != nil {
		return 0, fmt.Errorf("wait for the number of repos put: %w", err)
	}
	return n, nil
}

func (p *Puts) apply(u follow.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u.Reset {
		p.by, p.counts = map[string]string{}, map[string]int{}
		p.listed.Notify()
	}
	for _, key := range u.Deletes {
		p.set(p.store.name(putKind, []byte(key)), "")
	}
	for _, kv := range u.Puts {
		p.set(p.store.name(putKind, kv.Key), string(kv.Value))
	}
}

// set notes who put a repo; "" means nobody. The caller holds mu.
func (p *Puts) set(name, caller string) {
	if old := p.by[name]; old != "" {
		if p.counts[old]--; p.counts[old] == 0 {
			delete(p.counts, old)
		}
	}
	delete(p.by, name)
	if caller != "" {
		p.by[name] = caller
		p.counts[caller]++
	}
}
