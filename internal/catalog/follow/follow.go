// Package follow keeps a reader up to date with a range of etcd keys: it lists
// the range, watches it from there on, and starts over with a list whenever the
// watch cannot go on (compaction, lost quorum, an etcd that was away).
//
// It also notices when etcd went back: when it runs on an earlier copy of its data, or on
// none at all. A watch goes on over that without an error, so what was applied may be
// changes that never happened. See Follower.
package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/wait"
)

const (
	// Waits between attempts while etcd does not answer.
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
	// listTimeout bounds the read of one page, and one wait for a change to be readable, so that a silent
	// etcd is asked anew.
	listTimeout = 30 * time.Second
	// lookEvery is the time between two looks whether etcd went back, and bounds each.
	lookEvery = 5 * time.Second
)

// ClockKey is the key of the catalog's clock under a prefix: every change of what is desired or served
// writes it.
func ClockKey(prefix string) string { return prefix + "roots.clock" }

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

// Run is Follower.Run for a range without a clock of its own.
func Run(ctx context.Context, client *clientv3.Client, keys Range, clock string, logger *slog.Logger, apply func(Update)) {
	(&Follower{Client: client, Keys: keys, Clock: clock, Log: logger, Apply: apply}).Run(ctx)
}

// Follower follows a range. Set its fields before Run, and call Run once. It is safe for
// concurrent use.
type Follower struct {
	Client *clientv3.Client
	Keys   Range
	// Clock is a key that is written often, with a value that no other change has, and that nobody
	// deletes. By its values the follower tells histories apart that have the same revisions. If every
	// change of the range writes it, it belongs into the range: then no change of another history is applied.
	// If it is elsewhere, the follower looks at it every five seconds.
	Clock string
	Log   *slog.Logger
	// Page, unless it is nil, takes what is listed page by page, in order of key, so that not all of it is in memory. The reset
	// that follows, once all pages were read, has no puts then. First is true at the beginning of each listing, also if
	// the one before ended with an error.
	Page func(kvs []*mvccpb.KeyValue, first bool)
	// Apply is called for each update.
	Apply func(Update)
	// Lost, unless it is nil, is called when etcd went back: what was applied does not count any
	// more. A reset follows as soon as etcd can be listed.
	Lost func()

	mu     sync.Mutex
	known  *mark       // nil before the first listing, and from a loss to the next; replaced by each
	listed wait.Change // of known
	// giveUp ends the watch of known.
	giveUp context.CancelCauseFunc
}

// mark is how far the history of etcd is known. Follower.mu guards it.
type mark struct {
	cluster uint64
	head    int64 // the newest revision that was seen
	clock   Point // as of the revision looked: that of the last update, or of the last look at a clock elsewhere
	looked  int64
	back    bool // etcd went back since
}

// Point is a version of a clock, the zero value before the first. Points of different histories of etcd
// differ.
type Point struct {
	Revision int64
	Value    string
}

// PointOf returns the version of a clock that a read of it found.
func PointOf(kvs []*mvccpb.KeyValue) Point {
	if len(kvs) == 0 {
		return Point{}
	}
	return Point{kvs[0].ModRevision, string(kvs[0].Value)}
}

// ErrWentBack means that etcd lacks what it had before: it runs on a copy of its data, or on none.
var ErrWentBack = errors.New("etcd went back in time, or lost its data")

// Run lists and watches until the context ends, calling Page, Apply and Lost from this goroutine. While
// etcd does not answer it tries again with growing waits; what was applied stays valid
// meanwhile, only not current.
func (f *Follower) Run(ctx context.Context) {
	var looking sync.WaitGroup
	defer looking.Wait()
	looking.Go(func() { f.look(ctx) })
	for pauses := (wait.Backoff{Least: minBackoff, Most: maxBackoff}); ctx.Err() == nil; {
		listed, err := f.listAndWatch(ctx)
		if ctx.Err() != nil {
			return
		}
		if listed {
			pauses.Reset()
		}
		f.lose()
		pause := pauses.Next()
		f.Log.Warn("following etcd interrupted, listing anew", "from", f.Keys.From, "error", err, "wait", pause)
		wait.Sleep(ctx, pause)
	}
}

// look looks whether etcd went back, until ctx ends.
func (f *Follower) look(ctx context.Context) {
	look := f.compare
	if f.hasClock() {
		look = func(ctx context.Context) { _, _ = f.Now(ctx) }
	}
	for wait.Sleep(ctx, lookEvery) {
		looking, cancel := context.WithTimeout(ctx, lookEvery)
		look(looking) // it starts a listing if need be
		cancel()
	}
}

// hasClock reports whether the clock is in the range.
func (f *Follower) hasClock() bool { return f.Keys.From <= f.Clock && f.Clock < f.Keys.To }

// compare compares the clock outside of the range with what it was at the last look.
func (f *Follower) compare(ctx context.Context) {
	known, before, _ := f.mark()
	if known == nil {
		return
	}
	resp, err := f.Client.Txn(ctx).Then(clientv3.OpGet(f.Clock, clientv3.WithRev(before.looked)), clientv3.OpGet(f.Clock)).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrFutureRev):
		f.restart(known, ErrWentBack)
	case errors.Is(err, rpctypes.ErrCompacted):
		f.restart(known, err)
	case err != nil: // the next look will tell
	case PointOf(resp.Responses[0].GetResponseRange().Kvs) != before.clock, !before.continues(resp.Header.ClusterId, resp.Header.Revision, before.clock):
		f.restart(known, ErrWentBack)
	default:
		f.mu.Lock()
		defer f.mu.Unlock()
		known.looked, known.clock = resp.Header.Revision, PointOf(resp.Responses[1].GetResponseRange().Kvs)
	}
}

// Now returns the revision of the clock, which must be in the range: that of the newest change of the range, 0 before the
// first. It is linearizable: the read begins after the call. If it notices that etcd went back, it waits
// until the range was listed anew. The reader is current once it has applied that revision, unless Lost was called and no reset
// followed yet: in that time nothing that was applied counts, and Now does not wait.
func (f *Follower) Now(ctx context.Context) (int64, error) {
	for {
		known, before, listed := f.mark()
		resp, err := f.Client.Get(ctx, f.Clock)
		if err != nil {
			return 0, err
		}
		now := PointOf(resp.Kvs)
		if before.continues(resp.Header.ClusterId, resp.Header.Revision, now) {
			f.saw(known, resp.Header.Revision)
			return now.Revision, nil
		}
		f.restart(known, ErrWentBack)
		select {
		case <-listed:
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: wait for a new list: %w", ErrWentBack, context.Cause(ctx))
		}
	}
}

// mark returns the mark, a copy of what it says now, and a channel that is closed at the next listing. Without a
// mark the copy is the zero mark, which every answer continues.
func (f *Follower) mark() (known *mark, now mark, listed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known != nil {
		now = *f.known
	}
	return f.known, now, f.listed.Next()
}

// continues reports whether an answer can be of the same history. It is of a read that began
// after what the mark says.
func (m mark) continues(cluster uint64, head int64, clock Point) bool {
	sameCluster := m.cluster == cluster || m.cluster == 0 || cluster == 0 // an etcd of this process does not name its cluster
	return sameCluster && head >= m.head && (clock == m.clock || clock.Revision > m.looked)
}

func (f *Follower) saw(known *mark, head int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known != nil {
		known.head = max(known.head, head)
	}
}

// lose makes nothing that was applied count any more, if etcd went back.
func (f *Follower) lose() {
	if _, now, _ := f.mark(); !now.back {
		return
	}
	f.Log.Error("etcd went back in time, or lost its data: what it said before does not count any more; was it restored?", "from", f.Keys.From)
	if f.Lost != nil {
		f.Lost()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = nil // not before Lost has returned: until then Now must not answer for another history
}

// restart ends the watch with a cause, unless there is a newer listing. The watch may have ended already, so that
// the mark is what keeps in mind that etcd went back.
func (f *Follower) restart(known *mark, cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == known {
		known.back = known.back || errors.Is(cause, ErrWentBack)
		f.giveUp(cause)
	}
}

func (f *Follower) listAndWatch(ctx context.Context) (listed bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	old, before, _ := f.mark() // as of before the list: it may rise meanwhile, beyond the revision that is listed
	reset, cluster, clock, err := f.list(ctx)
	if err != nil {
		return false, err
	}
	known := &mark{cluster: cluster, head: reset.Revision, clock: clock, looked: reset.Revision}
	if !f.hasClock() {
		resp, err := f.Client.Get(ctx, f.Clock, clientv3.WithRev(reset.Revision))
		if err != nil {
			return false, fmt.Errorf("read the clock: %w", err)
		}
		known.clock = PointOf(resp.Kvs)
	}
	if !before.continues(cluster, reset.Revision, known.clock) {
		f.restart(old, ErrWentBack)
	}
	f.lose() // if nobody noticed before the watch had ended
	f.Apply(reset)
	f.mu.Lock()
	f.known, f.giveUp = known, cancel
	f.listed.Notify()
	f.mu.Unlock()
	err = f.watch(ctx, known, reset.Revision+1)
	if errors.Is(err, ErrWentBack) {
		f.restart(known, err)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return true, err
}

// last is the version of the clock among keys; the zero point if it is not there.
func (f *Follower) last(kvs []*mvccpb.KeyValue) Point {
	for _, kv := range kvs {
		if string(kv.Key) == f.Clock {
			return PointOf([]*mvccpb.KeyValue{kv})
		}
	}
	return Point{}
}

// page is an answer of etcd with a part of the range.
type page struct {
	*clientv3.GetResponse

	err error
}

// list reads the range page by page, all pages at the revision of the first. It reads the next page while one is taken in.
func (f *Follower) list(ctx context.Context) (reset Update, cluster uint64, clock Point, err error) {
	var pages Pages
	get := func(from string) <-chan page {
		answer, revision, limit := make(chan page, 1), reset.Revision, pages.Limit()
		go func() {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			resp, err := f.Client.Get(ctx, from, clientv3.WithRange(f.Keys.To), limit, clientv3.WithRev(revision))
			answer <- page{resp, err}
		}()
		return answer
	}
	reset.Reset = true
	for next, first := get(f.Keys.From), true; next != nil; first = false {
		p := <-next
		if p.err != nil {
			return Update{}, 0, Point{}, fmt.Errorf("list: %w", p.err)
		}
		// Only the first answer has the revision that is read: later headers
		// carry that of their own moment.
		if first {
			reset.Revision, cluster = p.Header.Revision, p.Header.ClusterId
		}
		pages.Read(p.GetResponse)
		if next = nil; p.More {
			next = get(string(p.Kvs[len(p.Kvs)-1].Key) + "\x00")
		}
		if at := f.last(p.Kvs); at != (Point{}) {
			clock = at
		}
		if f.Page != nil {
			f.Page(p.Kvs, first)
		} else {
			reset.Puts = append(reset.Puts, p.Kvs...)
		}
	}
	return reset, cluster, clock, nil
}

// watch applies changes until the watch ends, and returns the reason.
func (f *Follower) watch(ctx context.Context, known *mark, from int64) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for resp := range f.Client.Watch(ctx, f.Keys.From, clientv3.WithRange(f.Keys.To), clientv3.WithRev(from)) {
		if err := resp.Err(); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if len(resp.Events) == 0 {
			continue
		}
		update := change(resp.Events)
		if err := f.waitReadable(ctx, known, resp.Events[0].Kv.ModRevision-1, update.Revision); err != nil {
			return err
		}
		f.Apply(update)
		f.mu.Lock()
		known.head = max(known.head, update.Revision)
		if f.hasClock() {
			known.looked = update.Revision
			if clock := f.last(update.Puts); clock != (Point{}) {
				known.clock = clock
			}
		}
		f.mu.Unlock()
	}
	return errors.New("watch ended")
}

// waitReadable waits until etcd's reads have reached a revision. etcd may notify watchers of a
// change before reads see it (https://etcd.io/docs/v3.6/learning/api_guarantees/,
// "Linearizability"). Without this wait, a reader could answer from the change, and a later one
// that asks etcd from the state before it.
//
// It also checks that the change follows on what was applied: that a clock in the range was the same just before.
func (f *Follower) waitReadable(ctx context.Context, known *mark, before, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	for {
		resp, err := f.Client.Get(ctx, f.Clock, clientv3.WithRev(before))
		switch {
		case errors.Is(err, rpctypes.ErrFutureRev):
			continue
		case err != nil:
			return fmt.Errorf("read revision %d: %w", revision, err)
		case f.hasClock() && PointOf(resp.Kvs) != known.clock:
			return ErrWentBack
		case resp.Header.Revision >= revision:
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
