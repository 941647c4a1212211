package shardio

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// PutManifest writes a generation's manifest beside its shards and notes its
// key and digest in the root that it lists. Fence is the token of the lease that
// the root is to be published under.
func PutManifest(ctx context.Context, b bucket.Bucket, fence int64, manifest *catalogv1.Manifest) error {
	root := manifest.GetRoot()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(manifest)
	if err != nil {
		return &BuildError{fmt.Errorf("encoding the manifest: %w", err)}
	}
	digest := sha256.Sum256(data)
	key := catalog.ManifestKey(fence, root.GetRepo(), root.GetGeneration(), digest)
	err = b.Put(ctx, key, bytes.NewReader(data), bucket.PutOptions{Size: int64(len(data)), SHA256: digest, IfAbsent: true})
	if err != nil && !errors.Is(err, bucket.ErrExists) {
		return &StoreError{fmt.Errorf("uploading the manifest: %w", err)}
	}
	root.ManifestKey, root.ManifestDigest = key, digest[:]
	return nil
}
