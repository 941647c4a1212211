package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
	// attemptTimeout bounds one registration, so that a silent etcd is tried anew.
	attemptTimeout = 5 * time.Second
)

// errReplaced means that a process that started later has the same name, as when this
// pod shuts down slowly while its replacement already runs.
var errReplaced = errors.New("another process, which started later, has this searcher's name")

// Registration keeps a searcher registered until it is closed. If its lease is lost
// it registers again, unless another process of that name started later. It is safe
// for concurrent use.
type Registration struct {
	client *clientv3.Client
	key    string
	ttl    time.Duration
	logger *slog.Logger
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	record  *catalogv1.Searcher // replaced, never changed
	stored  *catalogv1.Searcher // the record in etcd under a live lease; nil: not registered
	lost    error               // why the last registration ended or failed
	changed wait.Change         // of stored or lost

	wake chan struct{} // holds a token when record has changed
}

// Register starts keeping a searcher registered. It does not wait for etcd: see
// Registered. ttl is how long the record outlives a searcher that died, in whole
// seconds, at least 1 (etcd may grant more). The prefix begins every key. The
// registration ends with Close, or with the context, and then removes the record.
func Register(ctx context.Context, client *clientv3.Client, prefix string, searcher *catalogv1.Searcher, ttl time.Duration, logger *slog.Logger) *Registration {
	ctx, cancel := context.WithCancel(ctx)
	r := &Registration{
		client: client, key: prefix + searcherKind + searcher.GetId(), ttl: ttl,
		logger: logger, cancel: cancel, ended: make(chan struct{}),
		record: proto.CloneOf(searcher), wake: make(chan struct{}, 1),
	}
	go func() {
		defer close(r.ended)
		r.keep(ctx)
	}()
	return r
}

// Registered reports whether the record is in etcd under a lease that is kept alive.
func (r *Registration) Registered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored != nil
}

// SetDraining changes the record and waits until etcd has the change, or until another
// process has the name, so that there is nothing to change. If the context ends first,
// the change is made once etcd can be reached.
func (r *Registration) SetDraining(ctx context.Context, draining bool) error {
	r.want(draining)
	for {
		stored, changed, lost := r.state()
		if stored != nil && stored.Draining == draining || errors.Is(lost, errReplaced) {
			return nil
		}
		select {
		case <-changed:
		case <-r.ended:
			return errors.New("set draining: registration has ended")
		case <-ctx.Done():
			return fmt.Errorf("set draining: %w", context.Cause(ctx))
		}
	}
}

// Close removes the record and waits until that is done, at most until the context ends.
// If etcd does not answer in time, the record expires with its lease.
func (r *Registration) Close(ctx context.Context) error {
	r.cancel()
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end registration: %w", context.Cause(ctx))
	}
}

// want changes the record and wakes the goroutine that stores it.
func (r *Registration) want(draining bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record = proto.CloneOf(r.record)
	r.record.Draining = draining
	select {
	case r.wake <- struct{}{}:
	default: // a wake-up is pending, and the record is read after it
	}
}

func (r *Registration) wanted() *catalogv1.Searcher {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record
}

func (r *Registration) state() (stored *catalogv1.Searcher, changed <-chan struct{}, lost error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored, r.changed.Next(), r.lost
}

// setStored records what etcd has now, or why it has nothing, and wakes all who wait
// for a change.
func (r *Registration) setStored(stored *catalogv1.Searcher, lost error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored, r.lost = stored, lost
	r.changed.Notify()
}

// keep keeps the searcher registered until the context ends.
func (r *Registration) keep(ctx context.Context) {
	for pauses := (wait.Backoff{Least: minBackoff, Most: maxBackoff}); ctx.Err() == nil; {
		registered, err := r.hold(ctx)
		if ctx.Err() != nil {
			return
		}
		if registered {
			pauses.Reset()
		}
		pause := pauses.Next()
		r.logger.Warn("searcher not registered, trying again", "error", err, "wait", pause)
		wait.Sleep(ctx, pause)
	}
}

// hold registers under a new lease and returns when the lease is lost.
func (r *Registration) hold(ctx context.Context) (registered bool, err error) {
	lease, err := grant(ctx, r.client, r.ttl)
	if err != nil {
		return false, fmt.Errorf("grant lease: %w", err)
	}
	defer r.leave(ctx, lease)
	defer func() { r.setStored(nil, err) }()
	beats, err := r.client.KeepAlive(ctx, lease)
	if err != nil {
		return false, fmt.Errorf("keep lease alive: %w", err)
	}
	for {
		record := r.wanted()
		if err := r.put(ctx, lease, record); err != nil {
			return registered, err
		}
		r.setStored(record, nil)
		registered = true
		if _, alive := await(beats, r.wake); !alive {
			return true, errors.New("lease lost")
		}
	}
}

// put writes the record, unless a process that started later has written its own.
func (r *Registration) put(ctx context.Context, lease clientv3.LeaseID, record *catalogv1.Searcher) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	value, err := proto.Marshal(record)
	for stored := false; err == nil && !stored; {
		stored, err = r.tryPut(ctx, lease, record, string(value))
	}
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// tryPut returns false if the record changed between the read and the write.
func (r *Registration) tryPut(ctx context.Context, lease clientv3.LeaseID, record *catalogv1.Searcher, value string) (bool, error) {
	there, err := r.client.Get(ctx, r.key)
	if err != nil {
		return false, err
	}
	var revision int64
	for _, kv := range there.Kvs {
		revision = kv.ModRevision
		if kv.Lease != int64(lease) && later(kv.Value, record) {
			return false, errReplaced
		}
	}
	resp, err := r.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(r.key), "=", revision)).
		Then(clientv3.OpPut(r.key, value, clientv3.WithLease(lease))).Commit()
	if err != nil {
		return false, err
	}
	return resp.Succeeded, nil
}

// later reports whether a record belongs to a process that started after than.
func later(value []byte, than *catalogv1.Searcher) bool {
	var other catalogv1.Searcher
	return proto.Unmarshal(value, &other) == nil && other.StartedAt.AsTime().After(than.StartedAt.AsTime())
}

// leave revokes a lease, so that routers need not wait until the record expires. A record
// under a newer lease stays.
func (r *Registration) leave(ctx context.Context, lease clientv3.LeaseID) {
	if err := revoke(ctx, r.client, lease); err != nil {
		r.logger.Debug("lease not revoked, it expires", "error", err)
	}
}
