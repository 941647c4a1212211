package catalog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// ErrNotStored means that the bucket does not have a source as it is now.
var ErrNotStored = errors.New("the bucket has no copy of the source yet")

// NumberSource gives the copy of a source its version: above all that this etcd has given, and
// above least. A copy that has a version keeps it. The error is ErrStale if the source changed
// since it was read, or another process was faster. Versions are therefore in the order in
// which sources were applied.
func (s *Store) NumberSource(ctx context.Context, source Source, least uint64) (*catalogv1.SourceCopy, error) {
	name := source.Record.GetSpec().GetName()
	numbered, err := s.sourceCopy(ctx, name)
	if err != nil || numbered.GetRevision() == source.Revision {
		return numbered, err
	}
	newest, seen, err := s.newestCopy(ctx)
	if err != nil {
		return nil, err
	}
	numbered = &catalogv1.SourceCopy{Revision: source.Revision, Version: max(newest, least) + 1}
	value, err := encode(numbered)
	if err != nil {
		return nil, fmt.Errorf("number source %q: %w", name, err)
	}
	versions := s.prefix + versionsName
	conditions := []clientv3.Cmp{s.unchanged(sourceKind, name, source.Revision), clientv3.Compare(clientv3.ModRevision(versions), "=", seen)}
	_, err = s.commit(ctx, ErrStale, conditions,
		clientv3.OpPut(s.key(copyKind, name), value), clientv3.OpPut(versions, strconv.FormatUint(numbered.Version, 10)))
	if err != nil {
		return nil, fmt.Errorf("number source %q: %w", name, err)
	}
	return numbered, nil
}

// newestCopy is the newest version that was given, and the revision that gave it.
func (s *Store) newestCopy(ctx context.Context) (version uint64, revision int64, err error) {
	resp, err := s.client.Get(ctx, s.prefix+versionsName)
	if err != nil {
		return 0, 0, fmt.Errorf("read the newest version of sources: %w", err)
	}
	if len(resp.Kvs) == 0 {
		return 0, 0, nil
	}
	if version, err = strconv.ParseUint(string(resp.Kvs[0].Value), 10, 64); err != nil {
		return 0, 0, fmt.Errorf("decode the newest version of sources: %w", err)
	}
	return version, resp.Kvs[0].ModRevision, nil
}

// sourceCopy reads which copy of a source exists; the zero value if none.
func (s *Store) sourceCopy(ctx context.Context, name string) (*catalogv1.SourceCopy, error) {
	entry, err := get[*catalogv1.SourceCopy](ctx, s, copyKind, name)
	if errors.Is(err, ErrNotFound) {
		return &catalogv1.SourceCopy{}, nil
	}
	return entry.Record, err
}

// SourceStored notes that the bucket has a copy of a source, if the source has not changed
// since it was read.
func (s *Store) SourceStored(ctx context.Context, source Source, version uint64) error {
	name := source.Record.GetSpec().GetName()
	value, err := encode(&catalogv1.SourceCopy{Revision: source.Revision, Version: version, Stored: true})
	if err != nil {
		return fmt.Errorf("note the copy of source %q: %w", name, err)
	}
	_, err = s.client.Txn(ctx).If(s.unchanged(sourceKind, name, source.Revision)).Then(
		clientv3.OpPut(s.key(copyKind, name), value)).Commit()
	if err != nil {
		return fmt.Errorf("note the copy of source %q: %w", name, err)
	}
	return nil
}

// IsStored reports whether the bucket has a copy of a source as it was read.
func (s *Store) IsStored(ctx context.Context, source Source) (bool, error) {
	made, err := s.sourceCopy(ctx, source.Record.GetSpec().GetName())
	return made.GetStored() && made.GetRevision() == source.Revision, err
}

// RestoreSource writes a source, as it was applied, into a catalog that has none of
// that name, and says whether it did.
func (s *Store) RestoreSource(ctx context.Context, record *catalogv1.Source) (restored bool, err error) {
	name := record.GetSpec().GetName()
	if err := checkName(name); err != nil {
		return false, fmt.Errorf("restore source: %w", err)
	}
	value, err := encode(record)
	if err != nil {
		return false, fmt.Errorf("restore source %q: %w", name, err)
	}
	resp, err := s.client.Txn(ctx).If(s.unchanged(sourceKind, name, 0)).Then(clientv3.OpPut(s.key(sourceKind, name), value)).Commit()
	if err != nil {
		return false, fmt.Errorf("restore source %q: %w", name, err)
	}
	return resp.Succeeded, nil
}
