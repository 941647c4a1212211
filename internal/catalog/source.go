package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Source is a stored source.
type Source = Entry[*catalogv1.Source]

// Applied is what ApplySources changed, by name.
type Applied struct{ Added, Changed, Removed []string }

// ApplySources makes specs the full set of wanted sources. It does not write
// unchanged ones. A source that is no longer wanted stays as removed until its repos
// are gone. Each source is written by itself: after a failure apply all again.
func (s *Store) ApplySources(ctx context.Context, specs []*ingestv1.Source) (Applied, error) {
	var done Applied
	wanted := map[string]*ingestv1.Source{}
	for _, spec := range specs {
		wanted[spec.GetName()] = spec
	}
	for stored, err := range s.ListSources(ctx) {
		if err != nil {
			return done, err
		}
		old := stored.Record
		name := old.GetSpec().GetName()
		spec := wanted[name]
		delete(wanted, name)
		switch {
		case spec != nil && proto.Equal(spec, old.GetSpec()) && !old.GetRemoved(), spec == nil && old.GetRemoved():
			continue
		case spec == nil:
			done.Removed = append(done.Removed, name)
			err = s.putSource(ctx, &catalogv1.Source{Spec: old.GetSpec(), Removed: true})
		default:
			done.Changed = append(done.Changed, name)
			err = s.putSource(ctx, &catalogv1.Source{Spec: spec})
		}
		if err != nil {
			return done, err
		}
	}
	for _, spec := range specs {
		if wanted[spec.GetName()] == nil {
			continue
		}
		done.Added = append(done.Added, spec.GetName())
		if err := s.putSource(ctx, &catalogv1.Source{Spec: spec}); err != nil {
			return done, err
		}
	}
	return done, nil
}

func (s *Store) putSource(ctx context.Context, record *catalogv1.Source) error {
	name := record.GetSpec().GetName()
	record.AppliedAt = timestamppb.Now()
	value, err := encode(record)
	if err == nil {
		_, err = s.client.Put(ctx, s.key(sourceKind, name), value)
	}
	if err != nil {
		return fmt.Errorf("apply source %q: %w", name, err)
	}
	return nil
}

// ListSources yields the sources in order of name, all as of one revision. It ends
// after the first error.
func (s *Store) ListSources(ctx context.Context) iter.Seq2[Source, error] {
	return list[*catalogv1.Source](ctx, s, sourceKind, 0)
}

// GetSource reads a source; ErrNotFound if there is none.
func (s *Store) GetSource(ctx context.Context, name string) (Source, error) {
	return get[*catalogv1.Source](ctx, s, sourceKind, name)
}

// DropSource forgets a removed source, unless it is wanted again by now. The error is
// ErrNotStored as long as the bucket has no record of the removal: a restore would bring
// the source back.
func (s *Store) DropSource(ctx context.Context, source Source) error {
	name := source.Record.GetSpec().GetName()
	stored, err := s.IsStored(ctx, source)
	if err == nil && !stored {
		err = s.notStored(ctx, source)
	}
	if err != nil {
		return fmt.Errorf("drop source %q: %w", name, err)
	}
	_, err = s.client.Txn(ctx).If(s.unchanged(sourceKind, name, source.Revision)).Then(
		clientv3.OpDelete(s.key(sourceKind, name)), clientv3.OpDelete(s.key(reportKind, name)), clientv3.OpDelete(s.key(copyKind, name)),
	).Commit()
	if err != nil {
		return fmt.Errorf("drop source %q: %w", name, err)
	}
	return nil
}

// notStored is ErrNotStored, unless the source is no longer as it was read.
func (s *Store) notStored(ctx context.Context, source Source) error {
	now, err := s.GetSource(ctx, source.Record.GetSpec().GetName())
	switch {
	case errors.Is(err, ErrNotFound), err == nil && now.Revision != source.Revision:
		return nil
	case err != nil:
		return err
	}
	return ErrNotStored
}

// PutSourceReport notes how the newest look at a source went, if the source is still
// the same.
func (s *Store) PutSourceReport(ctx context.Context, source Source, report *ingestv1.SourceReport) error {
	name := source.Record.GetSpec().GetName()
	value, err := encode(report)
	if err != nil {
		return fmt.Errorf("note a look at source %q: %w", name, err)
	}
	_, err = s.client.Txn(ctx).If(s.unchanged(sourceKind, name, source.Revision)).Then(
		clientv3.OpPut(s.key(reportKind, name), value)).Commit()
	if err != nil {
		return fmt.Errorf("note a look at source %q: %w", name, err)
	}
	return nil
}

// GetSourceReport reads how the newest look at a source went; nil if nobody has
// looked at it.
func (s *Store) GetSourceReport(ctx context.Context, name string) (*ingestv1.SourceReport, error) {
	entry, err := get[*ingestv1.SourceReport](ctx, s, reportKind, name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return entry.Record, err
}
