package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Roles of disks.
const (
	SearcherDisk = "searcher"
	IndexerDisk  = "indexer"
)

// diskRetry bounds the wait before a lost record of a disk is made again.
const diskRetry = time.Second

// KeepDisk keeps a record of this process's disk in etcd until ctx ends. Cleared
// gives the revisions as of which nothing is there that was not served, or not
// desired; before the first one it is not known. The record outlives a process that
// died by ttl, in whole seconds, at least 1. A record that is lost is made again.
func KeepDisk(ctx context.Context, client *clientv3.Client, prefix string, disk *catalogv1.Disk, ttl time.Duration, cleared <-chan int64, log *slog.Logger) {
	disk = proto.CloneOf(disk)
	for ctx.Err() == nil {
		if err := keepDisk(ctx, client, prefix, disk, ttl, cleared); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "cannot tell what is on this disk, trying again", "error", err)
		}
		wait := time.NewTimer(diskRetry/2 + rand.N(diskRetry/2))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// keepDisk keeps one record until its lease is lost.
func keepDisk(ctx context.Context, client *clientv3.Client, prefix string, disk *catalogv1.Disk, ttl time.Duration, cleared <-chan int64) error {
	lease, err := grant(ctx, client, ttl)
	if err != nil {
		return fmt.Errorf("lease the record of a disk: %w", err)
	}
	defer revoke(ctx, client, lease) //nolint:errcheck // else it ends by itself
	beats, err := client.KeepAlive(ctx, lease)
	if err != nil {
		return fmt.Errorf("keep the record of a disk: %w", err)
	}
	key := prefix + diskKind + fmt.Sprintf("%016x", uint64(lease))
	for {
		value, err := proto.Marshal(disk)
		if err == nil {
			_, err = client.Put(ctx, key, string(value), clientv3.WithLease(lease))
		}
		if err != nil {
			return fmt.Errorf("write the record of a disk: %w", err)
		}
		revision, alive := nextCleared(beats, cleared)
		if !alive {
			return errors.New("the lease of the record of a disk is lost")
		}
		disk.Revision = revision
	}
}

// nextCleared waits for the next revision; alive is false when the lease is lost.
func nextCleared(beats <-chan *clientv3.LeaseKeepAliveResponse, cleared <-chan int64) (revision int64, alive bool) {
	for {
		select {
		case _, alive := <-beats:
			if !alive {
				return 0, false
			}
		case revision := <-cleared:
			return revision, true
		}
	}
}

// ListDisks reads what the live searchers and indexers have told of their disks, as
// of a revision; 0 means now. A searcher that tells nothing is among them, with
// nothing known of it; an indexer that tells nothing is not.
func ListDisks(ctx context.Context, client *clientv3.Client, prefix string, revision int64) (disks []*catalogv1.Disk, err error) {
	told := map[string]bool{}
	err = list(ctx, client, prefix+searcherKind, revision, func() *catalogv1.Searcher { return &catalogv1.Searcher{} }, func(s *catalogv1.Searcher) {
		told[s.GetId()] = false
	})
	if err != nil {
		return nil, fmt.Errorf("list searchers: %w", err)
	}
	err = list(ctx, client, prefix+diskKind, revision, func() *catalogv1.Disk { return &catalogv1.Disk{} }, func(d *catalogv1.Disk) {
		if disks = append(disks, d); d.GetRole() == SearcherDisk {
			told[d.GetName()] = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list disks: %w", err)
	}
	for id, tells := range told {
		if !tells {
			disks = append(disks, &catalogv1.Disk{Name: id, Role: SearcherDisk})
		}
	}
	return disks, nil
}

// list decodes all records of a kind: one for each live process, so that they need no pages.
func list[T proto.Message](ctx context.Context, client *clientv3.Client, prefix string, revision int64, empty func() T, each func(T)) error {
	resp, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision))
	if err != nil {
		return err
	}
	for _, kv := range resp.Kvs {
		record := empty()
		if err := proto.Unmarshal(kv.Value, record); err != nil {
			return fmt.Errorf("decode %q: %w", kv.Key, err)
		}
		each(record)
	}
	return nil
}

// Cleared is the newest revision for which all disks of a role have told that nothing
// is there that was not served, or not desired; at most the one given.
func Cleared(disks []*catalogv1.Disk, role string, most int64) int64 {
	for _, disk := range disks {
		if disk.GetRole() == role {
			most = min(most, disk.GetRevision())
		}
	}
	return most
}
