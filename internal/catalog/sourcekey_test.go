package catalog_test

import (
	"crypto/sha256"
	"math"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/internal/catalog"
)

// TestSourceKey: keys differ from all others, and sort by version.
func TestSourceKey(t *testing.T) {
	digest := sha256.Sum256([]byte("x"))
	var keys []string
	for _, version := range []uint64{1, 9, 10, 1 << 40, math.MaxUint64} {
		key := catalog.SourceKey("a-1", version, digest)
		keys = append(keys, key)
		if o, ok := catalog.ParseSourceKey(key); !ok || o.Key != key || o.Name != "a-1" || o.Version != version || !o.Has(digest) || o.Has([32]byte{}) {
			t.Errorf("%s is of %+v, %t", key, o, ok)
		}
		for i := range key {
			for _, other := range []string{key[:i], key[:i] + "x" + key[i:], key[:i] + "/" + key[i:]} {
				// Another name is another source's key.
				if o, ok := catalog.ParseSourceKey(other); ok && catalog.SourceKey(o.Name, o.Version, digest) != other {
					t.Errorf("%s is of %+v", other, o)
				}
			}
		}
	}
	if !slices.IsSorted(keys) {
		t.Errorf("%q are not in order", keys)
	}
	for _, key := range []string{"", "sources/", "shards/" + keys[0], catalog.ShardKey(1, digest), catalog.ManifestKey(1, "a", 1, digest)} {
		if _, ok := catalog.ParseSourceKey(key); ok {
			t.Errorf("%s is a copy of a source", key)
		}
	}
}
