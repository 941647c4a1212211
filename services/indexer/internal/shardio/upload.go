package shardio

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// maxManifest bounds the bytes of a manifest that is read. Roots are bounded too.
const maxManifest = 4 * catalog.MaxRecordBytes

// UploadShard puts a finished shard into the bucket and returns the reference by
// which a root names it, with all its documents counted as live. Fence is the token
// of the lease or claim under which the shard was built. Pace is called after each
// part of the file that was read, with its number of bytes; it may be nil. Errors
// are *StoreError.
func UploadShard(ctx context.Context, b bucket.Bucket, fence int64, file *os.File, built build.Result, pace func(context.Context, int) error) (*catalogv1.ShardRef, error) {
	key := catalog.ShardKey(fence, built.SHA256)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, &StoreError{fmt.Errorf("read a shard for upload: %w", err)}
	}
	content := io.Reader(file)
	if pace != nil {
		content = &pacedReader{ctx: ctx, r: file, pace: pace}
	}
	if err := putOnce(ctx, b, key, content, built.Size, built.SHA256); err != nil {
		return nil, &StoreError{fmt.Errorf("upload a shard: %w", err)}
	}
	return &catalogv1.ShardRef{
		Digest: built.SHA256[:], Key: key, SizeBytes: uint64(built.Size),
		FormatVersion: format.Version, Repos: uint32(built.Repos), Documents: built.Documents,
		ContentBytes: built.ContentBytes, Languages: built.Languages,
		LiveDocuments: built.Documents, LiveContentBytes: built.ContentBytes, LiveSkippedDocuments: built.Skipped,
	}, nil
}

// putOnce puts an object whose key holds its digest and a fencing token. An object
// that exists already comes from an earlier attempt of the same call, since nobody
// else has the token.
func putOnce(ctx context.Context, b bucket.Bucket, key string, r io.Reader, size int64, digest [32]byte) error {
	err := b.Put(ctx, key, r, bucket.PutOptions{Size: size, SHA256: digest, IfAbsent: true})
	if errors.Is(err, bucket.ErrExists) {
		return nil
	}
	return err
}

// pacedReader calls pace after each read.
type pacedReader struct {
	ctx  context.Context //nolint:containedctx // a Reader takes none; this one lives as long as one upload
	r    io.Reader
	pace func(context.Context, int) error
}

// Read implements io.Reader.
func (p *pacedReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	return n, cmp.Or(p.pace(p.ctx, n), err)
}

// PutManifest writes a generation's manifest beside its shards and sets its key and
// digest in the root that it holds. Fence is the token of the lease or claim under
// which the root will be published. Errors are *StoreError and *BuildError.
func PutManifest(ctx context.Context, b bucket.Bucket, fence int64, manifest *catalogv1.Manifest) error {
	root := manifest.GetRoot()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(manifest)
	if err != nil {
		return &BuildError{fmt.Errorf("encode the manifest: %w", err)}
	}
	digest := sha256.Sum256(data)
	key := catalog.ManifestKey(fence, root.GetRepo(), root.GetGeneration(), digest)
	if err := putOnce(ctx, b, key, bytes.NewReader(data), int64(len(data)), digest); err != nil {
		return &StoreError{fmt.Errorf("upload the manifest: %w", err)}
	}
	root.ManifestKey, root.ManifestDigest = key, digest[:]
	return nil
}

// GetManifest reads a manifest. A manifest that does not exist is returned as an
// empty one: shards can be served without it.
func GetManifest(ctx context.Context, b bucket.Bucket, key string) (*catalogv1.Manifest, error) {
	manifest := &catalogv1.Manifest{}
	data, err := bucket.Read(ctx, b, key, maxManifest)
	if errors.Is(err, bucket.ErrNotFound) {
		return manifest, nil
	}
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(data, manifest); err != nil {
		return nil, fmt.Errorf("decode manifest %s: %w", key, err)
	}
	return manifest, nil
}
