package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// SetDrained records whether a searcher is drained: then it should hold no shards. The record
// survives restarts of the searcher.
func SetDrained(ctx context.Context, client *clientv3.Client, prefix, id string, drained bool) error {
	key := prefix + drainedKind + id
	if !drained {
		if _, err := client.Delete(ctx, key); err != nil {
			return fmt.Errorf("end the drain of searcher %q: %w", id, err)
		}
		return nil
	}
	value, err := proto.Marshal(&catalogv1.DrainedSearcher{Id: id, Since: timestamppb.Now()})
	if err == nil {
		_, err = client.Put(ctx, key, string(value))
	}
	if err != nil {
		return fmt.Errorf("drain searcher %q: %w", id, err)
	}
	return nil
}

// FollowDrained calls apply, now and at each change, with whether a searcher is drained, until
// ctx ends.
func FollowDrained(ctx context.Context, client *clientv3.Client, prefix, id string, logger *slog.Logger, apply func(drained bool)) {
	key := prefix + drainedKind + id
	follow.Run(ctx, client, follow.Range{From: key, To: key + "\x00"}, follow.ClockKey(prefix), logger, func(u follow.Update) {
		apply(len(u.Puts) > 0)
	})
}

// Census is all records about the searchers at one moment.
type Census struct {
	// Searchers are the live ones, in ascending order of id.
	Searchers []*catalogv1.Searcher
	// Drained are the drained searchers by id, alive or not.
	Drained map[ID]*catalogv1.DrainedSearcher
	// Disks are the reports of the searchers, by id. A searcher may have several: some of processes
	// that ended lately.
	Disks map[ID][]*catalogv1.Disk
}

// TakeCensus reads the census, as of one revision.
func TakeCensus(ctx context.Context, client *clientv3.Client, prefix string) (*Census, error) {
	c := &Census{Drained: make(map[ID]*catalogv1.DrainedSearcher), Disks: make(map[ID][]*catalogv1.Disk)}
	now, err := client.Get(ctx, prefix+searcherKind, clientv3.WithCountOnly())
	if err != nil {
		return nil, fmt.Errorf("list searchers: %w", err)
	}
	revision := now.Header.Revision
	return c, errors.Join(
		list(ctx, client, prefix+searcherKind, revision, func(s *catalogv1.Searcher) { c.Searchers = append(c.Searchers, s) }),
		list(ctx, client, prefix+drainedKind, revision, func(d *catalogv1.DrainedSearcher) { c.Drained[d.GetId()] = d }),
		list(ctx, client, prefix+diskKind, revision, func(d *catalogv1.Disk) {
			if d.GetRole() == SearcherDisk {
				c.Disks[d.GetName()] = append(c.Disks[d.GetName()], d)
			}
		}),
	)
}

// Awaited returns the searchers that may still lack shards that they take over from a draining one,
// in ascending order of id. It is strict: a searcher is awaited until all of its reports say that
// it places no shards on the draining one and loads nothing.
func (c *Census) Awaited(draining ID) (awaited []ID) {
	for _, s := range c.Searchers {
		reports := c.Disks[s.GetId()]
		settled := !slices.ContainsFunc(reports, func(d *catalogv1.Disk) bool {
			return d.GetLoading() > 0 || !slices.Contains(d.GetWithout(), draining)
		})
		if s.GetId() != draining && !s.GetDraining() && (len(reports) == 0 || !settled) {
			awaited = append(awaited, s.GetId())
		}
	}
	return awaited
}
