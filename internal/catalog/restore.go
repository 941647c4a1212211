package catalog

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/docstore"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// ErrInUse means that a catalog is not empty.
var ErrInUse = errors.New("this etcd is not empty, and a restore needs an empty one")

// ManifestPrefix is the prefix of the keys of all manifests.
const ManifestPrefix = manifestPrefix

// CheckEmpty returns ErrInUse if any repo is desired, served or remembered.
func (s *Store) CheckEmpty(ctx context.Context) error {
	for _, k := range []kind{desiredKind, rootKind, deletedKind} {
		resp, err := s.client.Get(ctx, s.key(k, ""), clientv3.WithRange(s.end(k)), clientv3.WithCountOnly())
		if err != nil {
			return fmt.Errorf("look for %s: %w", k, err)
		}
		if resp.Count > 0 {
			return fmt.Errorf("%w: it has records of the kind %q (%d)", ErrInUse, k, resp.Count)
		}
	}
	return nil
}

// unknownPacks records the shards of a root that also hold documents of other repos. It is
// no longer known which repos these are.
func (s *Store) unknownPacks(root *catalogv1.Root) (puts []clientv3.Op, err error) {
	for _, ref := range root.GetShards() {
		hidden, err := docstore.ParseSet(ref.GetHidden())
		if err != nil {
			return nil, fmt.Errorf("shard %s: %w", ref.GetKey(), err)
		}
		if !ref.GetCompacted() || ref.GetLiveDocuments()+uint64(hidden.Len()) >= ref.GetDocuments() {
			continue
		}
		pack, err := encode(&catalogv1.Pack{Key: ref.GetKey(), Unknown: true})
		if err != nil {
			return nil, err
		}
		puts = append(puts, clientv3.OpPut(s.key(packKind, packID(ref.GetKey())), pack))
	}
	return puts, nil
}

// Restore writes the desired record and the root of a repo into a catalog that has no
// record of it; otherwise the error is ErrInUse. A nil root makes it desired only.
// Generations and epochs go on above those given.
func (s *Store) Restore(ctx context.Context, desired *catalogv1.Desired, root *catalogv1.Root, generation, epoch uint64) error {
	name := desired.GetName()
	if err := checkName(name); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	d, err := encode(desired)
	if err != nil {
		return fmt.Errorf("restore %q: %w", name, err)
	}
	memory, err := encode(&catalogv1.Root{Repo: name, Generation: generation, Epoch: epoch, PublishedAt: timestamppb.Now()})
	if err != nil {
		return fmt.Errorf("restore %q: %w", name, err)
	}
	puts := []clientv3.Op{clientv3.OpPut(s.key(desiredKind, name), d), clientv3.OpPut(s.key(deletedKind, name), memory), s.tick()}
	if root != nil {
		r, err := encode(root)
		if err != nil {
			return fmt.Errorf("restore %q: %w", name, err)
		}
		packs, err := s.unknownPacks(root)
		if err != nil {
			return fmt.Errorf("restore %q: %w", name, err)
		}
		puts = append(append(puts, clientv3.OpPut(s.key(rootKind, name), r)), packs...)
	}
	none := []clientv3.Cmp{s.unchanged(desiredKind, name, 0), s.unchanged(rootKind, name, 0), s.unchanged(deletedKind, name, 0)}
	if _, err := s.commit(ctx, ErrInUse, none, puts...); err != nil {
		return fmt.Errorf("restore %q: %w", name, err)
	}
	return nil
}
