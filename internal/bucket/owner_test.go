package bucket_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/internal/bucket"
)

// TestBucketHasOneOwner: of many that claim a bucket at once one gets it, and keeps it.
func TestBucketHasOneOwner(t *testing.T) {
	folder, err := bucket.OpenFolder(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bucket.Close(folder) })
	for name, b := range map[string]bucket.Bucket{"memory": bucket.NewMemory(1 << 20), "folder": folder} {
		t.Run(name, func(t *testing.T) {
			if err := bucket.CheckOwner(t.Context(), b, "/0/"); err != nil {
				t.Errorf("a bucket without an owner: %v", err)
			}
			var claims [8]error
			var claiming sync.WaitGroup
			for i := range claims {
				claiming.Go(func() { claims[i] = bucket.Claim(t.Context(), b, fmt.Sprintf("/%d/", i)) })
			}
			claiming.Wait()
			owners := 0
			for i, first := range claims {
				again := bucket.Claim(t.Context(), b, fmt.Sprintf("/%d/", i))
				check := bucket.CheckOwner(t.Context(), b, fmt.Sprintf("/%d/", i))
				if first == nil {
					owners++
				}
				for _, err := range []error{first, again, check} {
					if (err == nil) != (first == nil) || err != nil && !errors.Is(err, bucket.ErrOwned) {
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
