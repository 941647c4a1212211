package shards

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/bucket"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// PutManifest writes a generation's manifest beside its shards and notes its
// key and digest in the root that it lists.
func PutManifest(ctx context.Context, b bucket.Bucket, root *catalogv1.Root, skipped uint64, version string) error {
	manifest := &catalogv1.Manifest{Root: root, SkippedDocuments: skipped, BuilderVersion: version}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(manifest)
	if err != nil {
		return &BuildError{fmt.Errorf("encoding the manifest: %w", err)}
	}
	digest := sha256.Sum256(data)
	key := manifestKey(root.GetRepo(), root.GetGeneration(), digest)
	err = b.Put(ctx, key, bytes.NewReader(data), bucket.PutOptions{Size: int64(len(data)), SHA256: digest, IfAbsent: true})
	if err != nil && !errors.Is(err, bucket.ErrExists) {
		return &StoreError{fmt.Errorf("uploading the manifest: %w", err)}
	}
	root.ManifestKey, root.ManifestDigest = key, digest[:]
	return nil
}

// manifestKey groups manifests by repo. Names of repos hold characters that
// keys cannot, so a hash stands for them.
func manifestKey(repo string, generation uint64, digest [32]byte) string {
	sum := sha256.Sum256([]byte(repo))
	return fmt.Sprintf("manifests/%s/%020d-%s.pb", hex.EncodeToString(sum[:16]), generation, hex.EncodeToString(digest[:16]))
}
