// Package follow keeps a reader up to date with a range of etcd keys: it lists
// the range, watches it from there on, and starts over with a list whenever the
// watch cannot go on (compaction, lost quorum, an etcd that was away).
package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/wait"
)

const (
	listPage = 500
	// Waits between attempts while etcd does not answer.
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
	// listTimeout bounds one listing, and one wait for a change to be readable, so that a silent
	// etcd is asked anew.
	listTimeout = 30 * time.Second
)

// Range is the keys from From up to but not including To.
type Range struct{ From, To string }

// Update is what changed. Updates come in order of revision, and all changes of
// one revision come in one update.
type Update struct {
	// Reset means that Puts are all keys there are: forget everything else.
	Reset bool
	// Revision up to which the reader is current once it has applied the update.
	Revision int64
	// Puts are keys written, in order of key after a reset, else in order of writing.
	Puts []*mvccpb.KeyValue
	// Deletes are keys removed. No key is in both: the last change of each counts.
	Deletes []string
}

// Run lists and watches until the context ends, calling apply for each update
// from this goroutine. While etcd does not answer it tries again with growing
// waits; what was applied stays valid meanwhile, only not current.
func Run(ctx context.Context, client *clientv3.Client, keys Range, logger *slog.Logger, apply func(Update)) {
	for pauses := (wait.Backoff{Least: minBackoff, Most: maxBackoff}); ctx.Err() == nil; {
		listed, err := listAndWatch(ctx, client, keys, apply)
		if ctx.Err() != nil {
			return
		}
		if listed {
			pauses.Reset()
		}
		pause := pauses.Next()
		logger.Warn("following etcd interrupted, listing anew", "from", keys.From, "error", err, "wait", pause)
		wait.Sleep(ctx, pause)
	}
}

func listAndWatch(ctx context.Context, client *clientv3.Client, keys Range, apply func(Update)) (listed bool, err error) {
	reset, err := list(ctx, client, keys)
	if err != nil {
		return false, err
	}
	apply(reset)
	return true, watch(ctx, client, keys, reset.Revision+1, apply)
}

// list reads the range page by page, all pages at the revision of the first.
func list(ctx context.Context, client *clientv3.Client, keys Range) (Update, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	reset := Update{Reset: true}
	for from, more := keys.From, true; more; {
		resp, err := client.Get(ctx, from, clientv3.WithRange(keys.To), clientv3.WithLimit(listPage), clientv3.WithRev(reset.Revision))
		if err != nil {
			return Update{}, fmt.Errorf("list: %w", err)
		}
		// Only the first answer has the revision that is read: later headers
		// carry that of their own moment.
		if reset.Revision == 0 {
			reset.Revision = resp.Header.Revision
		}
		reset.Puts = append(reset.Puts, resp.Kvs...)
		if more = resp.More; more {
			from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
		}
	}
	return reset, nil
}

// watch applies changes until the watch ends, and returns the reason.
func watch(ctx context.Context, client *clientv3.Client, keys Range, from int64, apply func(Update)) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for resp := range client.Watch(ctx, keys.From, clientv3.WithRange(keys.To), clientv3.WithRev(from)) {
		if err := resp.Err(); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if len(resp.Events) == 0 {
			continue
		}
		update := change(resp.Events)
		if err := waitReadable(ctx, client, keys.From, update.Revision); err != nil {
			return err
		}
		apply(update)
	}
	return errors.New("watch ended")
}

// waitReadable waits until etcd's reads have reached a revision. etcd may notify watchers of a
// change before reads see it (https://etcd.io/docs/v3.6/learning/api_guarantees/,
// "Linearizability"). Without this wait, a reader could answer from the change, and a later one
// that asks etcd from the state before it.
func waitReadable(ctx context.Context, client *clientv3.Client, key string, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	for {
		resp, err := client.Get(ctx, key, clientv3.WithCountOnly())
		if err != nil {
			return fmt.Errorf("read revision %d: %w", revision, err)
		}
		if resp.Header.Revision >= revision {
			return nil
		}
	}
}

// change turns events into an update with one change for each key.
func change(events []*clientv3.Event) Update {
	var u Update
	last := make(map[string]int, len(events))
	for i, e := range events {
		last[string(e.Kv.Key)] = i
		u.Revision = max(u.Revision, e.Kv.ModRevision)
	}
	for i, e := range events {
		switch {
		case last[string(e.Kv.Key)] != i:
		case e.Type == clientv3.EventTypeDelete:
			u.Deletes = append(u.Deletes, string(e.Kv.Key))
		default:
			u.Puts = append(u.Puts, e.Kv)
		}
	}
	return u
}
