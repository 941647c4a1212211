package catalog

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Pack is a stored pack.
type Pack = Entry[*catalogv1.Pack]

// PackClaim is the right to make a shard of several repos. The shard's key contains its
// fencing token, and garbage collection keeps the shard as long as the claim is kept
// alive: until Release, or until the context that made it ends. It is safe for
// concurrent use.
type PackClaim struct{ holding }

// ClaimPack makes a claim for one new shard; ttl is as in AcquireLease. The caller must
// call Release.
func (s *Store) ClaimPack(ctx context.Context, ttl time.Duration) (*PackClaim, error) {
	c := &PackClaim{holding{store: s, what: "claim of a pack", key: s.key(claimKind, rand.Text())}}
	err := c.acquire(ctx, ttl, func(ctx context.Context) error {
		resp, err := s.commit(ctx, ErrLeased, []clientv3.Cmp{c.free()}, c.take())
		if err == nil {
			c.fence = resp.Header.Revision
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim pack: %w", err)
	}
	return c, nil
}

// Held reports for each lease whether it is held now that the claim is made. Only such
// repos may go into the shard: the bytes of a repo that was deleted before the claim
// was made would count as gone.
func (c *PackClaim) Held(ctx context.Context, leases []*Lease) ([]bool, error) {
	held := make([]bool, 0, len(leases))
	for some := range slices.Chunk(leases, replaceRepos) {
		var reads []clientv3.Op
		for _, l := range some {
			reads = append(reads, clientv3.OpGet(l.key, clientv3.WithKeysOnly()))
		}
		resp, err := c.store.commit(ctx, ErrLeaseLost, []clientv3.Cmp{c.held()}, reads...)
		if err != nil {
			return nil, fmt.Errorf("read leases of a pack: %w", err)
		}
		for i, l := range some {
			held = append(held, holds(resp.Responses[i], &l.holding))
		}
	}
	return held, nil
}

// NotePack stores which repos a shard has that was made under the claim. It must
// precede the first root that names the shard. The error is ErrLeaseLost if the claim
// has ended.
func (c *PackClaim) NotePack(ctx context.Context, pack *catalogv1.Pack) error {
	value, err := encode(pack)
	if err != nil {
		return fmt.Errorf("note pack: %w", err)
	}
	put := clientv3.OpPut(c.store.key(packKind, packID(pack.GetKey())), value)
	if _, err := c.store.commit(ctx, ErrLeaseLost, []clientv3.Cmp{c.held()}, put); err != nil {
		return fmt.Errorf("note pack: %w", err)
	}
	return nil
}

func packID(key string) string { return fmt.Sprintf("%x", shortHash(key)) }

// ListPacks yields the packs that are known, in no particular order, all as of
// one revision. A shard of several repos may be unknown after a restore. It ends
// after the first error.
func (s *Store) ListPacks(ctx context.Context) iter.Seq2[Pack, error] {
	return list[*catalogv1.Pack](ctx, s, packKind, 0)
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
	_, err = s.client.Txn(ctx).If(s.unchanged(packKind, pack.Name, pack.Revision)).Then(clientv3.OpPut(s.key(packKind, pack.Name), value)).Commit()
	if err != nil {
		return fmt.Errorf("leave pack: %w", err)
	}
	return nil
}

// ForgetPack removes the record of a pack that is gone from the bucket and from all
// disks.
func (s *Store) ForgetPack(ctx context.Context, pack Pack) error {
	if _, err := s.client.Delete(ctx, s.key(packKind, pack.Name)); err != nil {
		return fmt.Errorf("forget pack: %w", err)
	}
	return nil
}

// Lives gives for every desired repo the revision that made it desired. It changes if
// the repo is deleted and put again.
func (s *Store) Lives(ctx context.Context) (map[string]int64, error) {
	lives := map[string]int64{}
	from, end, revision, pages := s.key(desiredKind, ""), s.end(desiredKind), int64(0), follow.Pages{}
	for more := true; more; {
		resp, err := s.client.Get(ctx, from, clientv3.WithRange(end), pages.Limit(), clientv3.WithKeysOnly(), clientv3.WithRev(revision))
		if err != nil {
			return nil, fmt.Errorf("list desired: %w", err)
		}
		pages.Read(resp)
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
