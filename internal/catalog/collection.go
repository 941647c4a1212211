package catalog

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Revision is the newest revision of etcd, whichever key changed (linearizable).
func (s *Store) Revision(ctx context.Context) (int64, error) {
	resp, err := s.client.Get(ctx, s.clockKey(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("read revision: %w", err)
	}
	return resp.Header.Revision, nil
}

// Collection reads how far the collections of garbage are; an empty record before the
// first.
func (s *Store) Collection(ctx context.Context) (*catalogv1.Collection, error) {
	stored, _, err := s.readCollection(ctx)
	return stored.Record, err
}

// readCollection also returns the revision of etcd at which it read.
func (s *Store) readCollection(ctx context.Context) (stored Entry[*catalogv1.Collection], revision int64, err error) {
	stored.Record = &catalogv1.Collection{}
	resp, err := s.client.Get(ctx, s.prefix+collectionName)
	if err != nil {
		return stored, 0, fmt.Errorf("read how far collections are: %w", err)
	}
	for _, kv := range resp.Kvs {
		stored.Revision = kv.ModRevision
		err = proto.Unmarshal(kv.Value, stored.Record)
	}
	if err != nil {
		return stored, 0, fmt.Errorf("decode how far collections are: %w", err)
	}
	return stored, resp.Header.Revision, nil
}

// NoteCollection records how far a collection came. A statement about a revision stays
// true, so the larger revision counts when several collectors record one. Bounds that
// next lacks stay as they are.
func (s *Store) NoteCollection(ctx context.Context, next *catalogv1.Collection) error {
	for {
		old, _, err := s.readCollection(ctx)
		if err != nil {
			return err
		}
		merged := proto.CloneOf(old.Record)
		proto.Merge(merged, next)
		merged.Condemned = max(old.Record.GetCondemned(), next.GetCondemned())
		merged.Deleted = max(old.Record.GetDeleted(), next.GetDeleted())
		value, err := encode(merged)
		if err != nil {
			return fmt.Errorf("note how far a collection is: %w", err)
		}
		key := s.prefix + collectionName
		resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", old.Revision)).Then(clientv3.OpPut(key, value)).Commit()
		if err != nil {
			return fmt.Errorf("note how far a collection is: %w", err)
		}
		if resp.Succeeded {
			return nil
		}
	}
}
