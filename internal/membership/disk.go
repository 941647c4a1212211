package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Roles of disks.
const (
	SearcherDisk = "searcher"
	IndexerDisk  = "indexer"
)

// diskRetry bounds the wait before a lost record of a disk is written again.
const diskRetry = time.Second

// KeepDisk keeps a record of this process's disk in etcd until ctx ends: first disk, then each
// record received from updates. The record of a dead process expires after ttl, in whole
// seconds, at least 1. A lost record is written again.
func KeepDisk(ctx context.Context, client *clientv3.Client, prefix string, disk *catalogv1.Disk, ttl time.Duration, updates <-chan *catalogv1.Disk, log *slog.Logger) {
	for ctx.Err() == nil {
		var err error
		if disk, err = keepDisk(ctx, client, prefix, disk, ttl, updates); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "record of this disk is lost, trying again", "error", err)
		}
		wait.Sleep(ctx, wait.Half(diskRetry))
	}
}

// keepDisk keeps the record until its lease is lost, and returns the last record.
func keepDisk(ctx context.Context, client *clientv3.Client, prefix string, disk *catalogv1.Disk, ttl time.Duration, updates <-chan *catalogv1.Disk) (last *catalogv1.Disk, err error) {
	lease, err := grant(ctx, client, ttl)
	if err != nil {
		return disk, fmt.Errorf("lease the record of a disk: %w", err)
	}
	defer revoke(ctx, client, lease) //nolint:errcheck // otherwise it ends by itself
	beats, err := client.KeepAlive(ctx, lease)
	if err != nil {
		return disk, fmt.Errorf("keep the record of a disk: %w", err)
	}
	key := prefix + diskKind + fmt.Sprintf("%016x", uint64(lease))
	for {
		value, err := proto.Marshal(disk)
		if err == nil {
			_, err = client.Put(ctx, key, string(value), clientv3.WithLease(lease))
		}
		if err != nil {
			return disk, fmt.Errorf("write the record of a disk: %w", err)
		}
		next, alive := await(beats, updates)
		if !alive {
			return disk, errors.New("the lease of the record of a disk is lost")
		}
		disk = next
	}
}

// ListDisks reads the records of the disks of live searchers and indexers as of a
// revision; 0 means now. A searcher without a record is listed with revision 0, which
// means unknown; an indexer without a record is not listed.
func ListDisks(ctx context.Context, client *clientv3.Client, prefix string, revision int64) (disks []*catalogv1.Disk, err error) {
	reported := map[string]bool{}
	err = errors.Join(
		list(ctx, client, prefix+searcherKind, revision, func(s *catalogv1.Searcher) { reported[s.GetId()] = false }),
		list(ctx, client, prefix+diskKind, revision, func(d *catalogv1.Disk) {
			if disks = append(disks, d); d.GetRole() == SearcherDisk {
				reported[d.GetName()] = true
			}
		}),
	)
	if err != nil {
		return nil, err
	}
	for id, known := range reported {
		if !known {
			disks = append(disks, &catalogv1.Disk{Name: id, Role: SearcherDisk})
		}
	}
	return disks, nil
}

// list decodes all records below prefix. There is one for each live process, so one page
// is enough.
func list[T proto.Message](ctx context.Context, client *clientv3.Client, prefix string, revision int64, each func(T)) error {
	resp, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision))
	if err != nil {
		return fmt.Errorf("list %s: %w", prefix, err)
	}
	for _, kv := range resp.Kvs {
		var none T
		record, _ := none.ProtoReflect().New().Interface().(T) // which it is
		if err := proto.Unmarshal(kv.Value, record); err != nil {
			return fmt.Errorf("decode %q: %w", kv.Key, err)
		}
		each(record)
	}
	return nil
}

// PurgedThrough returns the newest revision, at most the given one, up to which all disks of
// a role are purged: the lowest revision among their records.
func PurgedThrough(disks []*catalogv1.Disk, role string, most int64) int64 {
	for _, disk := range disks {
		if disk.GetRole() == role {
			most = min(most, disk.GetRevision())
		}
	}
	return most
}
