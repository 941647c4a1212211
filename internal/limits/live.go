package limits

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	"github.com/trawl-search/trawl/internal/wait"
)

// Live holds the limits that are set in memory, following etcd while it runs. It is safe for concurrent use. A nil one has
// none.
type Live struct {
	store  *Store
	log    *slog.Logger
	values atomic.Pointer[map[Key]float64] // replaced, never changed; nil before the first listing

	mu      sync.Mutex
	changed wait.Change
}

// NewLive returns limits that are empty until they run.
func NewLive(store *Store, log *slog.Logger) *Live { return &Live{store: store, log: log} }

// Run follows etcd until ctx ends.
func (l *Live) Run(ctx context.Context) {
	follow.Run(ctx, l.store.client, l.store.keys(), l.store.clockKey(), l.log, l.apply)
}

// Number returns the limit that is in force: that of the token with this ID, or that of all, or else the setting. An
// empty ID is that of callers who need not identify themselves.
func (l *Live) Number(name Name, token string, setting float64) float64 {
	if value, ok := l.get(Key{token, name}); ok {
		return value
	}
	if value, ok := l.get(Key{"", name}); ok {
		return value
	}
	return setting
}

// Whole is Number for a limit that is a whole number.
func (l *Live) Whole(name Name, token string, setting int) int {
	return int(l.Number(name, token, float64(setting)))
}

// Duration returns the limit that is in force, or else the setting.
func (l *Live) Duration(name Name, setting time.Duration) time.Duration {
	return time.Duration(l.Number(name, "", float64(setting)))
}

func (l *Live) get(key Key) (value float64, ok bool) {
	if l == nil {
		return 0, false
	}
	values := l.values.Load()
	if values == nil {
		return 0, false
	}
	value, ok = (*values)[key]
	return value, ok
}

// Changed returns a channel that is closed at the next change.
func (l *Live) Changed() <-chan struct{} {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed.Next()
}

// apply applies a change. Only the following goroutine calls it.
func (l *Live) apply(u follow.Update) {
	next := make(map[Key]float64)
	if before := l.values.Load(); before != nil && !u.Reset {
		maps.Copy(next, *before)
	}
	for _, name := range u.Deletes {
		if key, _, err := ParseKey(strings.TrimPrefix(name, l.store.key(""))); err == nil {
			delete(next, key)
			l.log.Info("limit unset, the setting is in force", "limit", key.String())
		}
	}
	for _, kv := range u.Puts {
		name, ok := strings.CutPrefix(string(kv.Key), l.store.key(""))
		if !ok {
			continue // the clock
		}
		l.put(next, name, kv.Value)
	}
	before := l.values.Swap(&next)
	if before == nil && len(next) == 0 || before != nil && maps.Equal(*before, next) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed.Notify()
}

// put applies a record. One that this version cannot use counts as unset: the setting is in force.
func (l *Live) put(next map[Key]float64, name string, raw []byte) {
	key, limit, err := ParseKey(name)
	if err != nil {
		l.log.Warn("limit ignored", "limit", name, "error", err)
		return
	}
	delete(next, key)
	var record Record
	var value float64
	if err = json.Unmarshal(raw, &record); err == nil {
		value, err = limit.parse(record.Value)
	}
	if err != nil {
		l.log.Error("limit ignored, the setting is in force", "limit", name, "error", err)
		return
	}
	next[key] = value
	l.log.Info("limit in force", "limit", name, "value", record.Value, "by", record.By)
}
