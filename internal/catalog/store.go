package catalog

import (
	"cmp"
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
	// Name is the part of the key after the kind: that of the repo, or an id.
	Name string
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
	// statuses has room for the reads of RepoStatus at once.
	statuses chan struct{}
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
	s := &Store{client: client, prefix: cmp.Or(prefix, DefaultPrefix), statuses: make(chan struct{}, statusReads)}
	s.clock.read, s.head.read = s.contact.guard(s.readClock), s.contact.guard(s.Revision)
	return s
}

// GetDesired reads the desired record of a repo; ErrNotFound if there is none.
func (s *Store) GetDesired(ctx context.Context, name string) (Desired, error) {
	return get[*catalogv1.Desired](ctx, s, desiredKind, name)
}

// GetRoot reads the root of a repo; ErrNotFound before the first publication.
func (s *Store) GetRoot(ctx context.Context, name string) (Root, error) {
	return get[*catalogv1.Root](ctx, s, rootKind, name)
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
		if err := decodeInto(&roots[i], answer, rootKind, names[i]); err != nil {
			return nil, fmt.Errorf("read roots: %w", err)
		}
	}
	return roots, nil
}

// GetStatus reads the status of a repo; ErrNotFound if there is none.
func (s *Store) GetStatus(ctx context.Context, name string) (Status, error) {
	return get[*catalogv1.Status](ctx, s, statusKind, name)
}

// ListDesired yields every desired record in order of name, all as of one
// revision. It ends after the first error.
func (s *Store) ListDesired(ctx context.Context) iter.Seq2[Desired, error] {
	return list[*catalogv1.Desired](ctx, s, desiredKind, 0)
}

// ListRoots yields every root in order of name, all as of one revision. It ends
// after the first error.
func (s *Store) ListRoots(ctx context.Context) iter.Seq2[Root, error] {
	return list[*catalogv1.Root](ctx, s, rootKind, 0)
}

func get[T proto.Message](ctx context.Context, s *Store, k kind, name string) (Entry[T], error) {
	if err := checkName(name); err != nil {
		return Entry[T]{}, err
	}
	resp, err := s.client.Get(ctx, s.key(k, name))
	if err != nil {
		return Entry[T]{}, fmt.Errorf("read %s of %q: %w", k, name, err)
	}
	return first[T](resp.Kvs, k, name)
}

// first decodes the first record of an answer.
func first[T proto.Message](kvs []*mvccpb.KeyValue, k kind, name string) (e Entry[T], err error) {
	if len(kvs) == 0 {
		return e, fmt.Errorf("%s of %q: %w", k, name, ErrNotFound)
	}
	record, _ := e.Record.ProtoReflect().New().Interface().(T) // which it is
	if err := proto.Unmarshal(kvs[0].Value, record); err != nil {
		return e, fmt.Errorf("decode %s of %q: %w", k, name, err)
	}
	return Entry[T]{Record: record, Name: name, Revision: kvs[0].ModRevision, Life: kvs[0].CreateRevision}, nil
}

// list reads page by page as of a revision; 0 means that of the first page.
func list[T proto.Message](ctx context.Context, s *Store, k kind, revision int64) iter.Seq2[Entry[T], error] {
	return func(yield func(Entry[T], error) bool) {
		from, end, pages := s.key(k, ""), s.end(k), follow.Pages{}
		for more := true; more; {
			resp, err := s.client.Get(ctx, from, clientv3.WithRange(end), pages.Limit(), clientv3.WithRev(revision))
			if err != nil {
				yield(Entry[T]{}, fmt.Errorf("list %s: %w", k, err))
				return
			}
			pages.Read(resp)
			// Only the first answer has the revision that is read: later headers
			// carry that of their own moment.
			if more = resp.More; revision == 0 {
				revision = resp.Header.Revision
			}
			for i, kv := range resp.Kvs {
				entry, err := first[T](resp.Kvs[i:], k, s.name(k, kv.Key))
				if !yield(entry, err) || err != nil {
					return
				}
				from = string(kv.Key) + "\x00"
			}
		}
	}
}

// names are those of the records of a kind, as of a revision that is not older than the call.
func (s *Store) names(ctx context.Context, k kind) (names map[string]bool, revision int64, err error) {
	resp, err := s.client.Get(ctx, s.key(k, ""), clientv3.WithRange(s.end(k)), clientv3.WithKeysOnly())
	if err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", k, err)
	}
	names = make(map[string]bool, len(resp.Kvs))
	for _, kv := range resp.Kvs {
		names[s.name(k, kv.Key)] = true
	}
	return names, resp.Header.Revision, nil
}

// commit makes changes if the conditions hold, else its error is refusal.
func (s *Store) commit(ctx context.Context, refusal error, conditions []clientv3.Cmp, ops ...clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, err := s.client.Txn(ctx).If(conditions...).Then(ops...).Commit()
	if err == nil && !resp.Succeeded {
		err = refusal
	}
	return resp, err
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
