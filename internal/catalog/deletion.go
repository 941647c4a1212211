package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/internal/membership"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Deletion reports what remains of a deleted repo.
type Deletion struct {
	// Revision of the deletion.
	Revision int64
	// Read is the revision of all these records.
	Read int64
	// Packs counts the shards of several repos that have documents of it.
	Packs int
	// Collection is how far collections of garbage are.
	Collection *catalogv1.Collection
	// Disks are those of the live searchers and indexers, in order of role and name.
	Disks []*catalogv1.Disk
}

// InBucket reports whether objects of the repo's own may be in the bucket.
func (d *Deletion) InBucket() bool { return d.Collection.GetDeleted() < d.Revision }

// OnDisk reports whether the disk may hold bytes of the repo.
func (d *Deletion) OnDisk(disk *catalogv1.Disk) bool { return disk.GetRevision() < d.Revision }

// Gone reports whether neither the bucket nor the disk of a live process has anything
// of the repo. Once true it stays true, except for processes that were away: see the
// package.
func (d *Deletion) Gone() bool {
	return !d.InBucket() && d.Packs == 0 && !slices.ContainsFunc(d.Disks, d.OnDisk)
}

// Deletion reads what remains of a repo that was deleted at that revision. It reads the
// records of all packs.
func (s *Store) Deletion(ctx context.Context, repo string, revision int64) (*Deletion, error) {
	collection, read, err := s.readCollection(ctx)
	if err != nil {
		return nil, err
	}
	d := &Deletion{Revision: revision, Read: read, Collection: collection.Record}
	for pack, err := range list[*catalogv1.Pack](ctx, s, packKind, read) {
		if err != nil {
			return nil, err
		}
		if mayHold(pack.Record, repo, revision) {
			d.Packs++
		}
	}
	if d.Disks, err = membership.ListDisks(ctx, s.client, s.prefix, read); err != nil {
		return nil, err
	}
	slices.SortFunc(d.Disks, func(a, b *catalogv1.Disk) int {
		return cmp.Or(-cmp.Compare(a.GetRole(), b.GetRole()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return d, nil
}

// ListDisks reads what all live searchers and indexers report of their disks now: see
// membership.ListDisks.
func (s *Store) ListDisks(ctx context.Context) ([]*catalogv1.Disk, error) {
	return membership.ListDisks(ctx, s.client, s.prefix, 0)
}

// mayHold reports whether a pack may have documents that a repo had before a revision.
// Fencing tokens of another etcd cannot be compared.
func mayHold(pack *catalogv1.Pack, repo string, revision int64) bool {
	if pack.GetUnknown() {
		return true
	}
	fence, _ := KeyFence(pack.GetKey())
	_, found := slices.BinarySearch(pack.GetRepos(), repo)
	return found && fence < revision
}

// DeletedAt is the revision of the newest deletion of a repo, ErrNotFound if none is
// remembered. It is remembered until the repo has an index again, or DropMemories
// drops it.
func (s *Store) DeletedAt(ctx context.Context, repo string) (revision int64, err error) {
	entry, err := get[*catalogv1.Root](ctx, s, deletedKind, repo)
	if err != nil {
		return 0, fmt.Errorf("look for a deletion: %w", err)
	}
	return entry.Revision, nil
}
