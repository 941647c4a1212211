package catalog_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/internal/catalog"
)

// TestSourceKey: keys are told from all others, and in the order of their versions.
func TestSourceKey(t *testing.T) {
	digest := sha256.Sum256([]byte("x"))
	var keys []string
	for _, version := range []uint64{1, 9, 10, 1 << 40, math.MaxUint64} {
		key := catalog.SourceKey("a-1", version, digest)
		keys = append(keys, key)
		if name, v, sum, ok := catalog.ParseSourceKey(key); name != "a-1" || v != version || sum != hex.EncodeToString(digest[:16]) || !ok {
			t.Errorf("%s is of %q, %d, %q, %t", key, name, v, sum, ok)
		}
		for i := range key {
			for _, other := range []string{key[:i], key[:i] + "x" + key[i:], key[:i] + "/" + key[i:]} {
				// Another name is another source's key.
				if name, v, sum, ok := catalog.ParseSourceKey(other); ok && catalog.SourceKey(name, v, digest) != other {
					t.Errorf("%s is of %q, %d, %q", other, name, v, sum)
				}
			}
		}
	}
	if !slices.IsSorted(keys) {
		t.Errorf("%q are not in order", keys)
	}
	for _, key := range []string{"", "sources/", "shards/" + keys[0], catalog.ShardKey(1, digest), catalog.ManifestKey(1, "a", 1, digest)} {
		if _, _, _, ok := catalog.ParseSourceKey(key); ok {
			t.Errorf("%s is a copy of a source", key)
		}
	}
}
