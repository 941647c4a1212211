package catalog

import (
	"context"
	"fmt"
	"iter"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

const (
	// DefaultPrefix stands before every key unless another is configured.
	DefaultPrefix = "/trawl/v1/"
	// MaxRecordBytes bounds one record. etcd takes 1.5 MiB in a request; what
	// may grow beyond lives in the manifest object.
	MaxRecordBytes = 1 << 20
	// MaxNameBytes bounds a repo name.
	MaxNameBytes = 1024
	// listPage is how many records one read of a list takes.
	listPage = 500
)

// Entry is a stored record with the revision that wrote it. The record is the
// caller's own, unless a snapshot shares it.
type Entry[T proto.Message] struct {
	Record T
	// Revision is the etcd modification revision: it changes with every write.
	Revision int64
}

// Stored records.
type (
	// Desired is a stored desired record.
	Desired = Entry[*catalogv1.Desired]
	// Root is a stored root.
	Root = Entry[*catalogv1.Root]
	// Status is a stored status.
	Status = Entry[*catalogv1.Status]
)

// Store reads and writes the catalog. It is safe for concurrent use, holds no
// goroutine and needs no closing. Operations end with their context; while etcd
// is unreachable they return errors that say what was attempted.
type Store struct {
	client *clientv3.Client
	prefix string
	clock  clock
}

// New makes a store of the records under prefix; an empty prefix means
// DefaultPrefix. The caller keeps and closes the client.
func New(client *clientv3.Client, prefix string) *Store {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	s := &Store{client: client, prefix: prefix}
	s.clock.read = s.readClock
	return s
}

// GetDesired reads the desired record of a repo; ErrNotFound if there is none.
func (s *Store) GetDesired(ctx context.Context, name string) (Desired, error) {
	return get(ctx, s, desiredKind, name, &catalogv1.Desired{})
}

// GetRoot reads the root of a repo; ErrNotFound before the first publication.
func (s *Store) GetRoot(ctx context.Context, name string) (Root, error) {
	return get(ctx, s, rootKind, name, &catalogv1.Root{})
}

// GetStatus reads the status of a repo; ErrNotFound if there is none.
func (s *Store) GetStatus(ctx context.Context, name string) (Status, error) {
	return get(ctx, s, statusKind, name, &catalogv1.Status{})
}

// ListDesired yields every desired record in order of name, all as of one
// revision. It ends after the first error.
func (s *Store) ListDesired(ctx context.Context) iter.Seq2[Desired, error] {
	return list(ctx, s, desiredKind, func() *catalogv1.Desired { return &catalogv1.Desired{} })
}

// ListRoots yields every root in order of name, all as of one revision. It ends
// after the first error.
func (s *Store) ListRoots(ctx context.Context) iter.Seq2[Root, error] {
	return list(ctx, s, rootKind, func() *catalogv1.Root { return &catalogv1.Root{} })
}

func get[T proto.Message](ctx context.Context, s *Store, k kind, name string, record T) (Entry[T], error) {
	if err := checkName(name); err != nil {
		return Entry[T]{}, err
	}
	resp, err := s.client.Get(ctx, s.key(k, name))
	if err != nil {
		return Entry[T]{}, fmt.Errorf("read %s of %q: %w", k, name, err)
	}
	return first(resp.Kvs, k, name, record)
}

// first decodes the only record of an answer into record.
func first[T proto.Message](kvs []*mvccpb.KeyValue, k kind, name string, record T) (Entry[T], error) {
	if len(kvs) == 0 {
		return Entry[T]{}, fmt.Errorf("%s of %q: %w", k, name, ErrNotFound)
	}
	if err := proto.Unmarshal(kvs[0].Value, record); err != nil {
		return Entry[T]{}, fmt.Errorf("decode %s of %q: %w", k, name, err)
	}
	return Entry[T]{Record: record, Revision: kvs[0].ModRevision}, nil
}

// list reads page by page, all pages at the revision of the first.
func list[T proto.Message](ctx context.Context, s *Store, k kind, empty func() T) iter.Seq2[Entry[T], error] {
	return func(yield func(Entry[T], error) bool) {
		from, end := s.key(k, ""), s.end(k)
		for revision, more := int64(0), true; more; {
			resp, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(listPage), clientv3.WithRev(revision))
			if err != nil {
				yield(Entry[T]{}, fmt.Errorf("list %s: %w", k, err))
				return
			}
			// Only the first answer tells the revision that is read: later headers
			// carry that of their own moment.
			if more = resp.More; revision == 0 {
				revision = resp.Header.Revision
			}
			for i, kv := range resp.Kvs {
				entry, err := first(resp.Kvs[i:], k, s.name(k, kv.Key), empty())
				if !yield(entry, err) || err != nil {
					return
				}
				from = string(kv.Key) + "\x00"
			}
		}
	}
}

// encode marshals a record and holds it to its limit.
func encode(record proto.Message) (string, error) {
	raw, err := proto.Marshal(record)
	if err != nil {
		return "", fmt.Errorf("encode record: %w", err)
	}
	if len(raw) > MaxRecordBytes {
		return "", fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(raw), MaxRecordBytes)
	}
	return string(raw), nil
}
