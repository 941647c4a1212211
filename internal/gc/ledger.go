package gc

import (
	"context"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// ledger is what a pass learns about bytes that are gone for ever, for callers that
// wait for a deletion.
type ledger struct {
	// before is what earlier passes noted.
	before *catalogv1.Collection
	// disks were read before the bucket was listed: a process that had reported that its
	// disk holds nothing of a deleted repo puts no more objects of the repo. They were read
	// after the leases and claims: a process whose record is away for a while has those.
	disks []*catalogv1.Disk
	// oldest is the least After of the batches that are not all deleted.
	oldest int64
	// packs are those that no root names, by key, and that were not seen in the bucket.
	packs map[string]catalog.Pack
	// newest is the highest fencing token of an object that no root names.
	newest int64
}

// openLedger must run before the batches are read, so that they include everything
// that the ledger counts as condemned.
func (p *pass) openLedger(ctx context.Context) (err error) {
	p.ledger.oldest, p.ledger.packs = math.MaxInt64, map[string]catalog.Pack{}
	p.ledger.before, err = p.Store.Collection(ctx)
	return err
}

// outstanding notes a batch that is not all deleted.
func (l *ledger) outstanding(after int64) { l.oldest = min(l.oldest, after) }

// findPacks finds the packs that are garbage, and notes since when. It must run
// before the bucket is listed: a pack is noted after its object was put.
func (p *pass) findPacks(ctx context.Context, reach *catalog.Reach) error {
	for pack, err := range p.Store.ListPacks(ctx) {
		if err != nil {
			return err
		}
		if !reach.Garbage(pack.Record.GetKey()) {
			continue
		}
		p.ledger.packs[pack.Record.GetKey()] = pack
		if pack.Record.GetLeftAt() == 0 && !p.DryRun {
			if err := p.Store.LeavePack(ctx, pack, reach.Changed); err != nil {
				return err
			}
		}
	}
	return nil
}

// saw notes an object of the bucket.
func (l *ledger) saw(reach *catalog.Reach, key string) {
	delete(l.packs, key)
	if fence, ok := catalog.KeyFence(key); ok && !reach.Named(key) {
		l.newest = max(l.newest, fence)
	}
}

// closeLedger removes the records of packs that are gone, and notes how far the
// collection came.
func (p *pass) closeLedger(ctx context.Context, reach *catalog.Reach) error {
	l := &p.ledger
	for _, pack := range l.packs {
		left := pack.Record.GetLeftAt() // 0: it is being noted for the next pass
		if left == 0 || membership.PurgedThrough(l.disks, membership.SearcherDisk, left) < left {
			continue
		}
		if err := p.Store.ForgetPack(ctx, pack); err != nil {
			return err
		}
	}
	condemned := l.before.GetCondemned()
	known, err := p.known(ctx, reach)
	if err != nil {
		return err
	}
	if known && p.report.Excess.Objects == 0 {
		condemned = max(condemned, membership.PurgedThrough(l.disks, membership.IndexerDisk, reach.Settled))
	}
	var within Bounds
	if p.Bounds != nil {
		within = p.Bounds()
	}
	return p.Store.NoteCollection(ctx, &catalogv1.Collection{
		Condemned: condemned, Deleted: min(condemned, l.oldest),
		OwnWithin: bound(within.Own), SharedWithin: bound(within.Shared),
	})
}

// known reports whether every object in the bucket is known to be garbage or not.
// Objects made under an earlier etcd are unknown: their tokens are higher than any that
// this one has given.
func (p *pass) known(ctx context.Context, reach *catalog.Reach) (bool, error) {
	if p.ledger.newest <= reach.Revision {
		return true, nil
	}
	now, err := p.Store.Revision(ctx)
	return p.ledger.newest <= now, err
}

func bound(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
