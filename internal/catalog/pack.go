package catalog

import (
	"context"
	"fmt"
	"iter"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Pack is a stored pack.
type Pack struct {
	Entry[*catalogv1.Pack]

	id string
}

// NotePack stores which repos a shard has that was made under the claim. It must
// precede the first root that names the shard. The error is ErrLeaseLost if the claim
// has ended.
func (c *Claim) NotePack(ctx context.Context, pack *catalogv1.Pack) error {
	value, err := encode(pack)
	if err != nil {
		return fmt.Errorf("note pack: %w", err)
	}
	put := clientv3.OpPut(c.store.key(packKind, packID(pack.GetKey())), value)
	resp, err := c.store.client.Txn(ctx).If(c.held()).Then(put).Commit()
	if err == nil && !resp.Succeeded {
		err = ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("note pack: %w", err)
	}
	return nil
}

func packID(key string) string { return fmt.Sprintf("%x", shortHash(key)) }

// ListPacks yields the packs that are known, in no particular order, all as of
// one revision. A shard of several repos may be unknown after a restore. It ends
// after the first error.
func (s *Store) ListPacks(ctx context.Context) iter.Seq2[Pack, error] {
	return func(yield func(Pack, error) bool) {
		for entry, err := range listNamed(ctx, s, packKind, 0, func() *catalogv1.Pack { return &catalogv1.Pack{} }) {
			if !yield(Pack{Entry: entry.Entry, id: entry.name}, err) {
				return
			}
		}
	}
}

// PacksOf are the keys of the packs that hold documents of a repo, also of replaced
// generations. Its bytes are in the bucket as long as one of these packs is.
func (s *Store) PacksOf(ctx context.Context, repo string) (keys []string, err error) {
	for pack, err := range s.ListPacks(ctx) {
		if err != nil {
			return nil, err
		}
		if _, found := slices.BinarySearch(pack.Record.GetRepos(), repo); found {
			keys = append(keys, pack.Record.GetKey())
		}
	}
	return keys, nil
}

// LeavePack notes that a pack is garbage, as of a revision. If another process was
// faster, its earlier revision stays.
func (s *Store) LeavePack(ctx context.Context, pack Pack, revision int64) error {
	next := proto.CloneOf(pack.Record)
	next.LeftAt = revision
	value, err := encode(next)
	if err != nil {
		return fmt.Errorf("leave pack: %w", err)
	}
	_, err = s.client.Txn(ctx).If(s.unchanged(packKind, pack.id, pack.Revision)).Then(clientv3.OpPut(s.key(packKind, pack.id), value)).Commit()
	if err != nil {
		return fmt.Errorf("leave pack: %w", err)
	}
	return nil
}

// ForgetPack removes the record of a pack that is gone from the bucket and from all
// disks.
func (s *Store) ForgetPack(ctx context.Context, pack Pack) error {
	if _, err := s.client.Delete(ctx, s.key(packKind, pack.id)); err != nil {
		return fmt.Errorf("forget pack: %w", err)
	}
	return nil
}

// Lives gives for every desired repo the revision that made it desired. It changes if
// the repo is deleted and put again.
func (s *Store) Lives(ctx context.Context) (map[string]int64, error) {
	lives := map[string]int64{}
	from, end, revision := s.key(desiredKind, ""), s.end(desiredKind), int64(0)
	for more := true; more; {
		resp, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(listPage*10), clientv3.WithKeysOnly(), clientv3.WithRev(revision))
		if err != nil {
			return nil, fmt.Errorf("list desired: %w", err)
		}
		if more = resp.More; revision == 0 {
			revision = resp.Header.Revision
		}
		for _, kv := range resp.Kvs {
			lives[s.name(desiredKind, kv.Key)] = kv.CreateRevision
			from = string(kv.Key) + "\x00"
		}
	}
	return lives, nil
}
