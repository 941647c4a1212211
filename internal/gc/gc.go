// Package gc deletes the objects of the bucket that are no longer reachable:
// the shards and manifests of replaced generations, of deleted repos and of
// attempts that did not publish.
//
// A pass first deletes what earlier passes condemned and has waited long enough, then
// condemns what it finds:
//
//	condemn  read roots and leases (R1), list the bucket: garbage as of R1 is noted, with a hold
//	wait     until etcd has ended the hold
//	delete   read roots and leases again (R2): what is garbage as of R2 is deleted
//
// No root will ever name an object that is garbage, whatever clocks say (see package
// catalog). The wait is for queries that began before R1: a hold is longer than the
// longest query and the age of the oldest roots that it may read, together. Passes
// may run at any time, several at once, and may be broken off anywhere.
package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/owner"
	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// deleters is how many deletions run at once.
const deleters = 16

// Collector collects garbage. It is safe for concurrent use.
type Collector struct {
	Store  *catalog.Store
	Bucket bucket.Bucket
	Config
	// Bounds returns what is reported to callers that wait for a deletion; nil, or empty ones, change nothing.
	Bounds func() Bounds
	// DryRun changes nothing: the Report says what a pass would do.
	DryRun bool
	// Metrics may be nil.
	Metrics *Metrics
	Log     *slog.Logger
}

// Bounds are the times within which the bytes of a deleted repo leave the bucket: those in
// its own objects, and those in shards that it shared with others. Zero means no bound.
type Bounds struct{ Own, Shared time.Duration }

// Report is what a pass did.
type Report struct {
	// Deleted is what earlier passes condemned and this pass deleted.
	Deleted Count `json:"deleted"`
	// Condemned is garbage that this pass found, to be deleted when it has waited.
	Condemned Count `json:"condemned"`
	// Waiting is what earlier passes condemned and must wait longer, or was above the
	// limit.
	Waiting Count `json:"waiting"`
	// Excess is garbage above the limit, left for the next pass.
	Excess Count `json:"excess"`
	// Spared counts condemned objects that turned out to be in use. They are kept; any
	// number above 0 is a fault.
	Spared int `json:"spared"`
	// Kept is all other objects of the bucket.
	Kept Count `json:"kept"`
	// Forgotten counts repos that were deleted long ago and whose records are now removed.
	Forgotten int `json:"forgotten"`
}

// Count is a number of objects and their size.
type Count struct {
	Objects int    `json:"objects"`
	Bytes   uint64 `json:"bytes"`
}

func (c *Count) add(size uint64) {
	c.Objects++
	c.Bytes += size
}

// Pass deletes what has waited and condemns what is new. A failure of the bucket
// or of etcd ends it; the next pass goes on. The report says how far it came.
func (c *Collector) Pass(ctx context.Context) (Report, error) {
	p := &pass{Collector: c, waiting: map[string]bool{}}
	err := p.run(ctx)
	if err != nil {
		err = fmt.Errorf("collect garbage: %w", err)
	}
	if c.Metrics != nil {
		c.Metrics.observe(p.report, err)
	}
	return p.report, err
}

// Run makes a pass at once and then one every so often, until ctx ends.
func (c *Collector) Run(ctx context.Context, every time.Duration) {
	for ctx.Err() == nil {
		report, err := c.Pass(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			c.Log.WarnContext(ctx, "garbage collection failed, trying again", "error", err)
		default:
			c.Log.InfoContext(ctx, "garbage collected", "deleted", report.Deleted.Objects, "deleted_bytes", report.Deleted.Bytes,
				"condemned", report.Condemned.Objects, "waiting", report.Waiting.Objects, "kept", report.Kept.Objects)
		}
		wait.Sleep(ctx, every)
	}
}

// pass is one pass.
type pass struct {
	*Collector

	report Report
	// waiting are condemned objects that this pass leaves alone.
	waiting map[string]bool
	ledger  ledger
}

func (p *pass) run(ctx context.Context) error {
	if err := owner.Check(ctx, p.Bucket, p.Store); err != nil {
		return err
	}
	if err := p.openLedger(ctx); err != nil {
		return err
	}
	ready, err := p.batches(ctx)
	if err != nil {
		return err
	}
	// Deletions rely on this read coming after the end of the holds.
	reach, err := p.Store.Reach(ctx)
	if err == nil && reach.New {
		err = p.checkUnused(ctx)
	}
	if err != nil {
		return err
	}
	for _, batch := range ready {
		if reach, err = p.Store.Continue(ctx, reach); err != nil {
			return err
		}
		if err := p.settle(ctx, reach, batch); err != nil {
			return err
		}
	}
	if err := p.findPacks(ctx, reach); err != nil {
		return err
	}
	if p.ledger.disks, err = p.Store.ListDisks(ctx); err != nil {
		return err
	}
	if err := p.condemn(ctx, reach); err != nil || p.DryRun {
		return err
	}
	if err := p.closeLedger(ctx, reach); err != nil {
		return err
	}
	p.report.Forgotten, err = p.Store.DropMemories(ctx, time.Now().Add(-p.Memory))
	return err
}

// errForgotten means that this etcd never heard of a repo, and that the bucket
// holds manifests: another etcd is lost.
var errForgotten = errors.New("etcd never heard of a repo, but the bucket has manifests: nothing is deleted; " +
	"if etcd lost its data, stop the indexers and run trawl restore")

// checkUnused refuses to collect what was published in an etcd that is lost.
func (p *pass) checkUnused(ctx context.Context) error {
	for _, err := range p.Bucket.List(ctx, catalog.ManifestPrefix) {
		if err != nil {
			return err
		}
		return errForgotten
	}
	return nil
}

// batches are the condemned objects whose hold has ended.
func (p *pass) batches(ctx context.Context) (ready []catalog.Condemned, err error) {
	for batch, err := range p.Store.ListCondemned(ctx) {
		if err != nil {
			return nil, err
		}
		if !batch.Held {
			ready = append(ready, batch)
			continue
		}
		p.leave(batch.Record, batch.Record.GetObjects())
	}
	return ready, nil
}

// leave keeps objects of a batch for later.
func (p *pass) leave(batch *catalogv1.Condemned, objects []*catalogv1.CondemnedObject) {
	if len(objects) > 0 {
		p.ledger.outstanding(batch.GetAfter())
	}
	for _, o := range objects {
		p.waiting[o.GetKey()] = true
		p.report.Waiting.add(o.GetSizeBytes())
	}
}

// settle deletes the objects of a batch, as far as the limit allows.
func (p *pass) settle(ctx context.Context, reach *catalog.Reach, batch catalog.Condemned) error {
	objects := batch.Record.GetObjects()
	n := min(len(objects), p.Limit-p.report.Deleted.Objects)
	p.leave(batch.Record, objects[n:])
	var garbage []*catalogv1.CondemnedObject
	for _, o := range objects[:n] {
		if reach.Garbage(o.GetKey()) {
			garbage = append(garbage, o)
			continue
		}
		p.report.Spared++
		p.Log.ErrorContext(ctx, "a condemned object is in use again; it is kept, but this must not happen: please report it", "key", o.GetKey())
	}
	if !p.DryRun {
		if err := p.delete(ctx, garbage); err != nil {
			return err
		}
	}
	for _, o := range garbage {
		p.waiting[o.GetKey()] = true // it may still be listed, or stay in a dry run
		p.report.Deleted.add(o.GetSizeBytes())
	}
	if n == 0 || p.DryRun {
		return nil
	}
	return p.Store.Settle(ctx, batch, objects[n:])
}

// delete removes objects from the bucket. After an error some are gone.
func (p *pass) delete(ctx context.Context, objects []*catalogv1.CondemnedObject) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deleters)
	for _, o := range objects {
		group.Go(func() error { return p.Bucket.Delete(ctx, o.GetKey()) })
	}
	return group.Wait()
}

// condemn looks for garbage in the bucket. An object that is put meanwhile is no
// garbage as of reach, or its job can never publish it.
func (p *pass) condemn(ctx context.Context, reach *catalog.Reach) error {
	var garbage []*catalogv1.CondemnedObject
	err := p.each(ctx, func(info bucket.Info) error {
		p.ledger.saw(reach, info.Key)
		switch {
		case p.waiting[info.Key]:
		case !reach.Garbage(info.Key):
			p.report.Kept.add(uint64(info.Size))
		case len(garbage) == p.Limit:
			p.report.Excess.add(uint64(info.Size))
		default:
			p.report.Condemned.add(uint64(info.Size))
			garbage = append(garbage, &catalogv1.CondemnedObject{Key: info.Key, SizeBytes: uint64(info.Size)})
		}
		return nil
	})
	if err != nil || p.DryRun {
		return err
	}
	if len(garbage) > 0 {
		p.ledger.outstanding(p.ledger.before.GetCondemned())
	}
	return p.Store.Condemn(ctx, reach, p.ledger.before.GetCondemned(), garbage, p.Hold)
}

// each lists all objects.
func (c *Collector) each(ctx context.Context, visit func(bucket.Info) error) error {
	for _, prefix := range catalog.ObjectPrefixes {
		for info, err := range c.Bucket.List(ctx, prefix) {
			if err == nil {
				err = visit(info)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
