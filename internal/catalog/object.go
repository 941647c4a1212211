package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// ObjectPrefixes are the prefixes of the keys of all objects in the bucket.
var ObjectPrefixes = []string{shardPrefix, manifestPrefix, SourcePrefix}

const (
	shardPrefix    = "shards/"
	manifestPrefix = "manifests/"
	// SourcePrefix is the prefix of the keys of all copies of sources. They are never
	// garbage.
	SourcePrefix = "sources/"
	// fenceDigits is the length of a fencing token in a key: 64 bits, hexadecimal.
	fenceDigits = 16
)

// ShardKey is the bucket's key of a shard that is made under a lease or claim: its
// digest and the fencing token. Two holders therefore never share an object, and every
// key names what must be held for a root to name the object the first time.
func ShardKey(fence int64, digest [32]byte) string {
	return shardPrefix + hex.EncodeToString(digest[:]) + fenceSuffix(fence) + ".trawl"
}

// ManifestKey is the bucket's key of a generation's manifest.
func ManifestKey(fence int64, repo string, generation uint64, digest [32]byte) string {
	return fmt.Sprintf("%s%020d-%x%s.pb", ManifestFolder(repo), generation, digest[:16], fenceSuffix(fence))
}

// ManifestFolder begins the keys of the manifests of a repo, and no others. Names of repos hold characters
// that keys cannot, so it has a hash.
func ManifestFolder(repo string) string {
	sum := sha256.Sum256([]byte(repo))
	return fmt.Sprintf("%s%x/", manifestPrefix, sum[:16])
}

// SourceKey is the bucket's key of a copy of a source.
func SourceKey(name string, version uint64, digest [32]byte) string {
	return fmt.Sprintf("%s%s/%020d-%x.pb", SourcePrefix, name, version, digest[:16])
}

// SourceObject is the parsed key of a copy of a source.
type SourceObject struct {
	Key, Name string
	Version   uint64
	digest    [16]byte // the first half of the content's digest
}

// ParseSourceKey takes apart what SourceKey made; ok is false for any other key.
func ParseSourceKey(key string) (o SourceObject, ok bool) {
	name, file, _ := strings.Cut(strings.TrimPrefix(key, SourcePrefix), "/")
	number, digest, _ := strings.Cut(strings.TrimSuffix(file, ".pb"), "-")
	version, err := strconv.ParseUint(number, 10, 64)
	sum, bad := hex.DecodeString(digest)
	if err != nil || bad != nil || len(sum) != len(o.digest) {
		return o, false
	}
	o = SourceObject{Key: key, Name: name, Version: version, digest: [16]byte(sum)}
	var whole [32]byte
	copy(whole[:], sum)
	return o, key == SourceKey(name, version, whole)
}

// Has reports whether the key was made for content with the digest.
func (o SourceObject) Has(digest [32]byte) bool { return o.digest == [16]byte(digest[:16]) }

func fenceSuffix(fence int64) string { return fmt.Sprintf("-%0*x", fenceDigits, uint64(fence)) }

// KeyFence is the fencing token in an object's key; ok is false for a key that
// neither ShardKey nor ManifestKey made.
func KeyFence(key string) (fence int64, ok bool) {
	if !strings.HasPrefix(key, shardPrefix) && !strings.HasPrefix(key, manifestPrefix) {
		return 0, false
	}
	name := strings.TrimSuffix(key, path.Ext(key))
	at := len(name) - fenceDigits
	if at < 1 || name[at-1] != '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(name[at:], 16, 64)
	return n, err == nil && n > 0
}

// objects are the keys of everything in the bucket that a root needs.
func objects(root *catalogv1.Root) []string {
	var keys []string
	if key := root.GetManifestKey(); key != "" {
		keys = append(keys, key)
	}
	for _, s := range root.GetShards() {
		if s.GetKey() != "" {
			keys = append(keys, s.GetKey())
		}
	}
	return keys
}

// checkObjects refuses a root with objects that might be collected as garbage before it is
// published. Only objects made under the leases and claims that its publication requires, which have
// these fencing tokens, and those of the root that it replaces are safe.
func checkObjects(fences []int64, old *Root, next *catalogv1.Root) error {
	kept := map[string]bool{}
	if old != nil {
		for _, key := range objects(old.Record) {
			kept[key] = true
		}
	}
	for _, key := range objects(next) {
		if fence, ok := KeyFence(key); (!ok || !slices.Contains(fences, fence)) && !kept[key] {
			return fmt.Errorf("%w: %s", ErrForeignObject, key)
		}
	}
	return nil
}
