package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

// Bounds of packs.
const (
	packRepos = 256
	// packBytes bounds the memory that the documents of a pack take.
	packBytes = 64 << 20
	// packWait bounds how long a pack waits for further repos, and packPoll how soon it
	// notices that none waits in the queue.
	packWait = 10 * time.Second
	packPoll = 100 * time.Millisecond
	// openPacks is how many packs of an indexer take memory: one is built while the next
	// one is filled.
	openPacks = 2
)

// errPackNotBuilt is the error of a shard that could not be built of the documents of
// several repos. Any of them may be to blame.
var errPackNotBuilt = errors.New("the shard that the repo was to share could not be built")

// packer lets jobs of small new repos share a shard, their pack. Each job fetches and
// reads its repo, joins the pack that is open, and publishes its own root when the shard
// is uploaded. The zero value is ready.
type packer struct {
	mu    sync.Mutex
	open  *pack         // takes members; nil if none does
	slots chan struct{} // has a value for each pack that takes memory
}

// pack is one shard in the making. It lasts from its first member until all have left.
type pack struct {
	*Worker

	end     context.CancelFunc // of the work on it
	closed  chan struct{}      // no repo joins any more
	built   chan struct{}      // err is known; its documents are neither in memory nor on this disk
	left    chan struct{}      // all members have left
	cleared chan struct{}      // its claim is released
	// claim is what the shard is made under, nil if that is the lease of the only
	// member. It and err are set before built is closed.
	claim *catalog.PackClaim
	err   error

	// Under packer.mu:
	members []*member // until the building starts, those that have not left
	users   int       // members that have not left
	bytes   int64
}

// member is one repo of a pack.
type member struct {
	shardio.Member
	pack  *pack
	lease *catalog.Lease
	bytes int64
	// ref is the reference for the root, set before built is closed; nil if the lease
	// had ended when the shard was begun.
	ref *catalogv1.ShardRef
}

// join puts a repo into the open pack of w. If as many packs as may take memory are full,
// it waits for one of them. The caller must call leave.
func (p *packer) join(ctx context.Context, w *Worker, m *member) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots == nil {
		p.slots = make(chan struct{}, openPacks)
	}
	for p.open == nil || p.open.bytes+m.bytes > packBytes || len(p.open.members) == packRepos {
		p.close(p.open)
		p.mu.Unlock()
		err := p.takeSlot(ctx)
		p.mu.Lock()
		if err != nil {
			return err
		}
		if p.open != nil { // another job was faster
			<-p.slots
			continue
		}
		p.open = newPack(ctx, w)
	}
	m.pack = p.open
	m.pack.members, m.pack.bytes, m.pack.users = append(m.pack.members, m), m.pack.bytes+m.bytes, m.pack.users+1
	return nil
}

func (p *packer) takeSlot(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newPack starts a pack, whose work goes on when the first member's job has ended.
func newPack(ctx context.Context, w *Worker) *pack {
	p := &pack{Worker: w, closed: make(chan struct{}), built: make(chan struct{}), left: make(chan struct{}), cleared: make(chan struct{})}
	ctx, p.end = context.WithCancel(context.WithoutCancel(ctx))
	go p.run(ctx)
	return p
}

// close lets no further repo join a pack; nil is none. The caller holds p.mu.
func (p *packer) close(k *pack) {
	if k != nil && k == p.open {
		p.open = nil
		close(k.closed)
	}
}

// begin closes a pack and returns its members by name. From now on they stay.
func (p *packer) begin(k *pack) []*member {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close(k)
	members := k.members
	k.members = nil
	slices.SortFunc(members, func(a, b *member) int { return cmp.Compare(a.Repo.Name, b.Repo.Name) })
	return members
}

// leave ends the membership. It returns when the documents of m are gone from memory
// and from this disk. The last member ends what is left of the pack.
func (p *packer) leave(m *member) {
	k := m.pack
	p.mu.Lock()
	at := slices.Index(k.members, m)
	if at >= 0 { // it is not being built
		k.members, k.bytes = slices.Delete(k.members, at, at+1), k.bytes-m.bytes
	}
	k.users--
	last := k.users == 0
	if last {
		p.close(k)
		k.end()
		close(k.left)
	}
	p.mu.Unlock()
	switch {
	case last:
		<-k.cleared
	case at < 0:
		<-k.built
	}
}

// run waits for members, builds the shard and keeps its claim until all have left.
func (p *pack) run(ctx context.Context) {
	defer close(p.cleared)
	p.fill(ctx)
	members := p.packs.begin(p)
	p.err = p.build(ctx, members)
	for _, m := range members {
		m.Docs = nil
	}
	<-p.packs.slots
	close(p.built)
	<-p.left
	if p.claim == nil {
		return
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := p.claim.Release(release); err != nil {
		p.Log.WarnContext(ctx, "claim of a pack not released", "error", err)
	}
}

// fill waits for further members as long as repos wait in the queue.
func (p *pack) fill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, packWait)
	defer cancel()
	for p.Waiting(ctx) {
		select {
		case <-time.After(packPoll):
		case <-p.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// build builds and uploads the shard. A panic is its error, as in a job of its own.
func (p *pack) build(ctx context.Context, members []*member) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.Log.ErrorContext(ctx, "building a pack panicked", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: panic: %v", errPackNotBuilt, r)
		}
	}()
	if len(members) > 1 {
		if members, err = p.claimFor(ctx, members); err != nil {
			return err
		}
	}
	if len(members) == 0 {
		return nil
	}
	fence := members[0].lease.Fence()
	if p.claim != nil {
		fence = p.claim.Fence()
	}
	var packed []shardio.Member
	var names []string
	for _, m := range members {
		packed, names = append(packed, m.Member), append(names, m.Repo.Name)
	}
	builder := shardio.Builder{Bucket: p.Bucket, Fence: fence, TempDir: p.Mirrors.TempDir(), Options: p.Build}
	refs, err := builder.Pack(ctx, packed)
	if _, isBuild := errors.AsType[*shardio.BuildError](err); isBuild && len(members) > 1 {
		return fmt.Errorf("%w: %w", errPackNotBuilt, err)
	}
	if err != nil {
		return err
	}
	p.Metrics.uploaded(refs[:1])
	p.Log.InfoContext(ctx, "shard built", "repos", len(refs), "documents", refs[0].GetDocuments(), "bytes", refs[0].GetContentBytes())
	for i, m := range members {
		m.ref = refs[i]
	}
	if p.claim == nil {
		return nil
	}
	return p.claim.NotePack(ctx, &catalogv1.Pack{Key: refs[0].GetKey(), MadeAt: timestamppb.Now(), Repos: names})
}

// claimFor claims the shard and returns the members whose leases are held since.
func (p *pack) claimFor(ctx context.Context, members []*member) (held []*member, err error) {
	if p.claim, err = p.Store.ClaimPack(ctx, p.LeaseTTL); err != nil {
		return nil, err
	}
	leases := make([]*catalog.Lease, len(members))
	for i, m := range members {
		leases[i] = m.lease
	}
	still, err := p.claim.Held(ctx, leases)
	if err != nil {
		return nil, err
	}
	for i, m := range members {
		if still[i] {
			held = append(held, m)
		}
	}
	return held, nil
}

// await returns when the shard is built, with the reference to it. It yields the worker
// of the delivery meanwhile.
func (m *member) await(ctx context.Context, d *queue.Delivery) (*catalogv1.ShardRef, error) {
	d.Yield()
	select {
	case <-m.pack.built:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	switch {
	case m.pack.err != nil:
		return nil, m.pack.err
	case m.ref == nil:
		return nil, catalog.ErrLeaseLost
	}
	return m.ref, nil
}
