package owner_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/owner"
)

func buckets(t *testing.T) map[string]bucket.Bucket {
	folder, err := bucket.OpenFolder(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bucket.Close(folder) })
	return map[string]bucket.Bucket{"memory": bucket.NewMemory(1 << 20), "folder": folder}
}

func isOthers(err error) bool {
	return errors.Is(err, owner.ErrOwned) || errors.Is(err, owner.ErrNewEtcd)
}

// TestBucketHasOneOwner: of many Trawls that claim a bucket at once one gets it, and keeps it. All have
// an etcd of their own, half of them the same prefix.
func TestBucketHasOneOwner(t *testing.T) {
	for name, b := range buckets(t) {
		t.Run(name, func(t *testing.T) {
			var stores [8]*catalog.Store
			for i := range stores {
				stores[i] = catalog.New(etcdtest.New().Client(nil), fmt.Sprintf("/%d/", max(i, 4)))
			}
			if err := owner.Check(t.Context(), b, stores[0]); err != nil {
				t.Errorf("a bucket without an owner: %v", err)
			}
			var claims [8]error
			var claiming sync.WaitGroup
			for i, store := range stores {
				claiming.Go(func() { claims[i] = owner.Claim(t.Context(), b, store) })
			}
			claiming.Wait()
			owners := 0
			for i, first := range claims {
				again := owner.Claim(t.Context(), b, stores[i])
				check := owner.Check(t.Context(), b, stores[i])
				if first == nil {
					owners++
				}
				for _, err := range []error{first, again, check} {
					if (err == nil) != (first == nil) || err != nil && !isOthers(err) {
						t.Errorf("claim %d: %v, again %v, check %v", i, first, again, check)
					}
				}
			}
			if owners != 1 {
				t.Errorf("%d owners", owners)
			}
		})
	}
}

// TestTakeOver: a new etcd with the prefix of the one that was lost is told from it. When it has
// taken the bucket over, the other one is locked out, should it come back.
func TestTakeOver(t *testing.T) {
	for name, b := range buckets(t) {
		t.Run(name, func(t *testing.T) {
			old, anew := catalog.New(etcdtest.New().Client(nil), ""), catalog.New(etcdtest.New().Client(nil), "")
			if err := owner.Claim(t.Context(), b, old); err != nil {
				t.Fatal(err)
			}
			for range 2 { // a refused claim leaves nothing
				if err := owner.Claim(t.Context(), b, anew); !errors.Is(err, owner.ErrNewEtcd) {
					t.Errorf("a new etcd: %v", err)
				}
			}
			if err := owner.TakeOver(t.Context(), b, anew); err != nil {
				t.Fatal(err)
			}
			if err := owner.Claim(t.Context(), b, anew); err != nil {
				t.Errorf("the new owner: %v", err)
			}
			if err := owner.Check(t.Context(), b, old); !errors.Is(err, owner.ErrOwned) {
				t.Errorf("the old one: %v", err)
			}
		})
	}
}
