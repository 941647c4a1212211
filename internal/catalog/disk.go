package catalog

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

// KeepDisk keeps a record of this process's disk in etcd until ctx ends. Cleared
// gives the revisions as of which nothing is there that was not served, or not
// desired; before the first one it is not known. The record outlives a process that
// died by ttl, in whole seconds, at least 1. A record that is lost is made again.
func (s *Store) KeepDisk(ctx context.Context, disk *catalogv1.Disk, ttl time.Duration, cleared <-chan int64, log *slog.Logger) {
	disk = proto.CloneOf(disk)
	for ctx.Err() == nil {
		if err := s.keepDisk(ctx, disk, ttl, cleared); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "cannot tell what is on this disk, trying again", "error", err)
		}
		_ = pause(ctx, leadRetry/2+rand.N(leadRetry/2))
	}
}

// keepDisk keeps one record until its lease is lost.
func (s *Store) keepDisk(ctx context.Context, disk *catalogv1.Disk, ttl time.Duration, cleared <-chan int64) error {
	h := &holding{store: s}
	if err := h.grant(ctx, ttl); err != nil {
		return fmt.Errorf("lease the record of a disk: %w", err)
	}
	defer h.revoke(ctx) //nolint:errcheck // else it ends by itself
	beats, err := s.client.KeepAlive(ctx, h.id)
	if err != nil {
		return fmt.Errorf("keep the record of a disk: %w", err)
	}
	key := s.key(diskKind, fmt.Sprintf("%016x", uint64(h.id)))
	for {
		value, err := encode(disk)
		if err == nil {
			_, err = s.client.Put(ctx, key, value, clientv3.WithLease(h.id))
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

// ListDisks reads what the live searchers and indexers have told of their disks. A
// searcher that tells nothing is among them, with nothing known of it; an indexer
// that tells nothing is not.
func (s *Store) ListDisks(ctx context.Context) ([]*catalogv1.Disk, error) {
	return s.disksAt(ctx, 0)
}

// disksAt is ListDisks as of a revision; 0 means now.
func (s *Store) disksAt(ctx context.Context, revision int64) (disks []*catalogv1.Disk, err error) {
	told := map[string]bool{}
	for entry, err := range listAt(ctx, s, searcherKind, revision, func() *catalogv1.Searcher { return &catalogv1.Searcher{} }) {
		if err != nil {
			return nil, err
		}
		told[entry.Record.GetId()] = false
	}
	for entry, err := range listAt(ctx, s, diskKind, revision, func() *catalogv1.Disk { return &catalogv1.Disk{} }) {
		if err != nil {
			return nil, err
		}
		if disks = append(disks, entry.Record); entry.Record.GetRole() == SearcherDisk {
			told[entry.Record.GetName()] = true
		}
	}
	for id, tells := range told {
		if !tells {
			disks = append(disks, &catalogv1.Disk{Name: id, Role: SearcherDisk})
		}
	}
	return disks, nil
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
