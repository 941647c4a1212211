package catalog

import (
	"context"
	"fmt"
	"iter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/wait"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// watchRetry is the wait before a watch begins again after etcd broke it off.
const watchRetry = 250 * time.Millisecond

// WatchRepo yields how far a repo is, now and at every change, until the context
// ends or the caller stops. Changes that follow each other closely may be yielded
// as one. A repo that is deleted meanwhile is yielded as STATE_DELETED, and goes
// on if it is put again. While etcd is away it waits. A repo that is not desired
// at the start is ErrNotFound; after an error it ends.
func (s *Store) WatchRepo(ctx context.Context, name string) iter.Seq2[*ingestv1.RepoStatus, error] {
	return func(yield func(*ingestv1.RepoStatus, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if err := checkName(name); err != nil {
			yield(nil, fmt.Errorf("watch repo: %w", err))
			return
		}
		w := &repoWatch{store: s, name: name, yield: yield}
		for {
			err := w.run(ctx)
			if w.stopped || ctx.Err() != nil {
				return
			}
			if err != nil && !IsTransient(err) {
				yield(nil, err)
				return
			}
			if !wait.Sleep(ctx, watchRetry) {
				return
			}
		}
	}
}

// repoWatch is one WatchRepo, with its last status and where it yields.
type repoWatch struct {
	store   *Store
	name    string
	yield   func(*ingestv1.RepoStatus, error) bool
	last    *ingestv1.RepoStatus
	stopped bool // the caller wants no more
}

// run yields the status and then its changes, until the watches end. Events only
// trigger a new read: the four records come from four watches, and only a transaction
// reads them as of one moment.
func (w *repoWatch) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	revision, err := w.show(ctx)
	if err != nil || w.stopped {
		return err
	}
	var channels [4]clientv3.WatchChan
	for i, k := range []kind{desiredKind, rootKind, statusKind, seenKind} {
		channels[i] = w.store.client.Watch(ctx, w.store.key(k, w.name), clientv3.WithRev(revision+1))
	}
	for {
		var change clientv3.WatchResponse
		var open bool
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case change, open = <-channels[0]:
		case change, open = <-channels[1]:
		case change, open = <-channels[2]:
		case change, open = <-channels[3]:
		}
		if !open {
			return nil // compacted or without a leader: begin again
		}
		// Reads may be behind the watch for a moment: see follow.Run.
		for read := int64(0); read < change.Header.GetRevision(); {
			if read, err = w.show(ctx); err != nil || w.stopped {
				return err
			}
		}
	}
}

// show yields the status if it differs from the last.
func (w *repoWatch) show(ctx context.Context) (revision int64, err error) {
	state, err := w.store.readRepo(ctx, w.name)
	if err != nil {
		return 0, err
	}
	now := state.compose()
	if state.desired.Record == nil {
		if w.last == nil {
			return 0, fmt.Errorf("watch repo %q: %w", w.name, ErrNotFound)
		}
		now = &ingestv1.RepoStatus{Name: w.name, Url: w.last.Url, Epoch: w.last.Epoch, State: ingestv1.State_STATE_DELETED}
	}
	if !proto.Equal(now, w.last) {
		w.last = now
		// The caller may keep and change what it is given.
		w.stopped = !w.yield(proto.CloneOf(now), nil)
	}
	return state.revision, nil
}
