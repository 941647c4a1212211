package searcher

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/membership"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// drain marks this searcher as draining while an operator wants that, and for good once leaving is
// done. Other searchers then take its shards over, and routers prefer them while it still answers.
// It returns when life ends.
func (s *Searcher) drain(leaving, life context.Context, prefix string, r *membership.Registration) {
	var working sync.WaitGroup
	defer working.Wait()
	wanted := make(chan bool)
	working.Go(func() {
		membership.FollowDrained(life, s.deps.Etcd, prefix, s.cfg.ID, s.tel.Logger(), func(drained bool) {
			select {
			case wanted <- drained:
			case <-life.Done():
			}
		})
	})
	drained, left := false, leaving.Done()
	for draining := false; life.Err() == nil; {
		select {
		case drained = <-wanted:
		case <-left:
			left = nil
		case <-life.Done():
			return
		}
		if now := drained || left == nil; now != draining {
			draining = now
			s.setDraining(life, r, draining)
		}
	}
}

func (s *Searcher) setDraining(life context.Context, r *membership.Registration, draining bool) {
	ctx, cancel := context.WithTimeout(life, leaveTimeout)
	defer cancel()
	if err := r.SetDraining(ctx, draining); err != nil && life.Err() == nil {
		s.tel.Logger().WarnContext(ctx, "mark whether this searcher drains", "draining", draining, "error", err)
	}
}

// reportDisk publishes which shards are here, and the revision of the roots up to which this disk
// holds nothing unwanted, until ctx ends. Callers that wait for a deletion or a drain read it. It
// publishes at most once in a grace time, because the roots change all the time, and at each change
// while a searcher drains.
func (s *Searcher) reportDisk(ctx context.Context, prefix string, follower *shardcache.Follower) {
	pause := min(max(s.cfg.Grace, time.Second), time.Minute)
	report := func() *catalogv1.Disk {
		without := follower.Without() // before the counts, which must not be older
		counts, _ := s.store.Counts()
		return &catalogv1.Disk{
			Name: s.cfg.ID, Role: membership.SearcherDisk, Within: durationpb.New(s.cfg.Grace + pause), Revision: s.store.PurgedThrough(),
			Shards: uint32(counts.Ready), ShardBytes: uint64(counts.Bytes), Loading: uint32(counts.Pending + counts.Failed), Without: without,
		}
	}
	last, updates := report(), make(chan *catalogv1.Disk)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	keeping.Go(func() {
		membership.KeepDisk(ctx, s.deps.Etcd, prefix, last, s.cfg.LeaseTTL, updates, s.tel.Logger())
	})
	tick := time.NewTicker(min(reportPoll, pause))
	defer tick.Stop()
	var published time.Time
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := report()
		awaited := len(now.Without) > 0 || len(last.Without) > 0
		if proto.Equal(now, last) || !awaited && time.Since(published) < pause {
			continue
		}
		select {
		case updates <- now:
			last, published = now, time.Now()
		case <-ctx.Done():
			return
		}
	}
}
