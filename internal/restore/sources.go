package restore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Source is the outcome for one source.
type Source struct {
	Name string `json:"source"`
	// Removed says that it was no longer wanted; its repos go after its grace time.
	Removed bool `json:"removed,omitempty"`
	// Kept says that etcd has a source of that name, which was applied since.
	Kept bool `json:"kept,omitempty"`
	// Problem is why it cannot be restored.
	Problem string `json:"problem,omitempty"`
}

// Sources restores all sources as they were applied last, removed ones included, and
// reports each in the order of their names. Call it after Run, because running indexers
// make the repos of sources desired. It does not restore a source whose newest copy is
// damaged: an older copy may be of a source that was removed since.
func (r *Restorer) Sources(ctx context.Context, report func(Source) error) error {
	newest := map[string]catalog.SourceObject{}
	for info, err := range r.Bucket.List(ctx, catalog.SourcePrefix) {
		if err != nil {
			return fmt.Errorf("list copies of sources: %w", err)
		}
		if o, ok := catalog.ParseSourceKey(info.Key); ok && o.Version > newest[o.Name].Version {
			newest[o.Name] = o
		}
	}
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		source, err := r.source(ctx, newest[name])
		if err == nil {
			err = report(source)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Restorer) source(ctx context.Context, from catalog.SourceObject) (Source, error) {
	record, err := r.readSource(ctx, from)
	if err != nil {
		return Source{}, err
	}
	if record == nil {
		return Source{Name: from.Name, Problem: from.Key + " is damaged: apply it again"}, nil
	}
	source := Source{Name: from.Name, Removed: record.GetRemoved()}
	if r.DryRun {
		return source, nil
	}
	restored, err := r.Store.RestoreSource(ctx, record)
	source.Kept = !restored
	return source, err
}

// readSource reads a copy; nil for one that is damaged.
func (r *Restorer) readSource(ctx context.Context, from catalog.SourceObject) (*catalogv1.Source, error) {
	data, err := bucket.Read(ctx, r.Bucket, from.Key, catalog.MaxRecordBytes+1)
	if err != nil {
		return nil, err
	}
	record := &catalogv1.Source{}
	if !from.Has(sha256.Sum256(data)) || proto.Unmarshal(data, record) != nil || record.GetSpec().GetName() != from.Name {
		return nil, nil //nolint:nilnil,nilerr // it is reported as a problem, and does not end the restore
	}
	return record, nil
}
