package catalog

import (
	"context"
	"fmt"
	"iter"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	"github.com/trawl-search/trawl/internal/lazyregexp"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

const (
	// DefaultPrefix begins every key unless another prefix is configured.
	DefaultPrefix = "/trawl/v1/"
	// MaxRecordBytes bounds one record. etcd takes 1.5 MiB in a request; data that may
	// grow beyond is in the manifest object.
	MaxRecordBytes = 1 << 20
	// MaxDesiredBytes bounds what a request for a repo says. etcd may have a million of them.
	MaxDesiredBytes = 16 << 10
	// MaxNameBytes bounds a repo name.
	MaxNameBytes = 1024
)

// Entry is a stored record with the revision that wrote it. The record is the
// caller's own, unless a snapshot shares it.
type Entry[T proto.Message] struct {
	Record T
	// Revision is the etcd modification revision: it changes with every write.
	Revision int64
	// Life is the revision that created the record. It changes if the record is deleted
	// and made again.
	Life int64
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
	// head reads the newest revision of etcd, whichever key moved it.
	head clock
	// contact makes both fail fast while etcd is away.
	contact contact
}

// prefixes matches folders: the records of one prefix are never among those of
// another.
var prefixes = lazyregexp.New(`^/([A-Za-z0-9._-]+/)+$`)

// maxPrefix bounds a prefix in bytes.
const maxPrefix = 128

// CheckPrefix returns an error if prefix cannot begin the keys of a store.
func CheckPrefix(prefix string) error {
	if len(prefix) > maxPrefix || !prefixes().MatchString(prefix) {
		return fmt.Errorf("prefix %q: want at most %d bytes like /trawl/v1/", prefix, maxPrefix)
	}
	return nil
}

// Prefix begins every key of the store.
func (s *Store) Prefix() string { return s.prefix }

// New makes a store of the records under prefix; an empty prefix means
// DefaultPrefix. The caller keeps and closes the client.
func New(client *clientv3.Client, prefix string) *Store {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	s := &Store{client: client, prefix: prefix}
	s.clock.read, s.head.read = s.contact.guard(s.readClock), s.contact.guard(s.readHead)
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

// MaxRoots is how many roots one call of GetRoots reads: etcd takes 128 operations in
// a transaction.
const MaxRoots = 100

// GetRoots reads the roots of at most MaxRoots repos, as of one revision, in the order
// of names. A repo without a root has an entry without record.
func (s *Store) GetRoots(ctx context.Context, names []string) ([]Root, error) {
	reads := make([]clientv3.Op, len(names))
	for i, name := range names {
		reads[i] = clientv3.OpGet(s.key(rootKind, name))
	}
	resp, err := s.client.Txn(ctx).Then(reads...).Commit()
	if err != nil {
		return nil, fmt.Errorf("read roots: %w", err)
	}
	roots := make([]Root, len(names))
	for i, answer := range resp.Responses {
		if err := decodeInto(&roots[i], answer, rootKind, names[i], &catalogv1.Root{}); err != nil {
			return nil, fmt.Errorf("read roots: %w", err)
		}
	}
	return roots, nil
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
	return list(ctx, s, rootKind, newRoot)
}

func newRoot() *catalogv1.Root { return &catalogv1.Root{} }

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
	return Entry[T]{Record: record, Revision: kvs[0].ModRevision, Life: kvs[0].CreateRevision}, nil
}

// list reads page by page, all pages at the revision of the first.
func list[T proto.Message](ctx context.Context, s *Store, k kind, empty func() T) iter.Seq2[Entry[T], error] {
	return listAt(ctx, s, k, 0, empty)
}

// listAt lists as of a revision; 0 means that of the first page.
func listAt[T proto.Message](ctx context.Context, s *Store, k kind, revision int64, empty func() T) iter.Seq2[Entry[T], error] {
	return func(yield func(Entry[T], error) bool) {
		for entry, err := range listNamed(ctx, s, k, revision, empty) {
			if !yield(entry.Entry, err) {
				return
			}
		}
	}
}

// named is an entry with the name in its key.
type named[T proto.Message] struct {
	Entry[T]

	name string
}

func listNamed[T proto.Message](ctx context.Context, s *Store, k kind, revision int64, empty func() T) iter.Seq2[named[T], error] {
	return func(yield func(named[T], error) bool) {
		from, end, pages := s.key(k, ""), s.end(k), follow.Pages{}
		for more := true; more; {
			resp, err := s.client.Get(ctx, from, clientv3.WithRange(end), pages.Limit(), clientv3.WithRev(revision))
			if err != nil {
				yield(named[T]{}, fmt.Errorf("list %s: %w", k, err))
				return
			}
			pages.Read(resp)
			// Only the first answer has the revision that is read: later headers
			// carry that of their own moment.
			if more = resp.More; revision == 0 {
				revision = resp.Header.Revision
			}
			for i, kv := range resp.Kvs {
				name := s.name(k, kv.Key)
				entry, err := first(resp.Kvs[i:], k, name, empty())
				if !yield(named[T]{entry, name}, err) || err != nil {
					return
				}
				from = string(kv.Key) + "\x00"
			}
		}
	}
}

// encode marshals a record and checks its size.
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
