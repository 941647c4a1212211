// Package owner decides which Trawl a bucket belongs to, so that no other one collects its
// objects as garbage. The object "owner" of the bucket names the prefix of a catalog in
// etcd, and the random identity that the catalog keeps there. Two Trawls with the same prefix,
// and a new etcd in place of one that was lost, thereby differ.
package owner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
)

// Key is the object that names the owner of a bucket.
const Key = "owner"

// maxOwner bounds that object in bytes.
const maxOwner = 1024

var (
	// ErrOwned means that a bucket belongs to another Trawl.
	ErrOwned = errors.New("the bucket belongs to another Trawl; each needs a bucket or a folder of its own, " +
		"since its garbage collection deletes what it does not know")
	// ErrNewEtcd means that a bucket belongs to a Trawl with the same prefix, and etcd has never had a bucket.
	ErrNewEtcd = errors.New("this etcd never had a bucket, and the bucket belongs to another Trawl with the same prefix; " +
		"if etcd lost its data, run trawl restore, else use another bucket")
)

// Claim makes a catalog the owner of a bucket that has none. The errors are those of Check, also if
// two catalogs claim the bucket at the same time.
func Claim(ctx context.Context, b bucket.Bucket, store *catalog.Store) error {
	there, err := read(ctx, b)
	if err == nil && there == "" {
		err = put(ctx, b, store, true)
		if err == nil || errors.Is(err, bucket.ErrExists) { // somebody was quicker
			there, err = read(ctx, b)
		}
	}
	if err != nil {
		return fmt.Errorf("claim the bucket: %w", err)
	}
	return compare(ctx, there, store)
}

// Check returns ErrOwned or ErrNewEtcd if a bucket belongs to another catalog. An unclaimed bucket
// is no error.
func Check(ctx context.Context, b bucket.Bucket, store *catalog.Store) error {
	there, err := read(ctx, b)
	if err != nil {
		return fmt.Errorf("check the owner of the bucket: %w", err)
	}
	if there == "" {
		return nil
	}
	return compare(ctx, there, store)
}

// TakeOver makes a catalog the owner of a bucket, whoever it belonged to.
func TakeOver(ctx context.Context, b bucket.Bucket, store *catalog.Store) error {
	if err := put(ctx, b, store, false); err != nil {
		return fmt.Errorf("take over the bucket: %w", err)
	}
	return nil
}

func compare(ctx context.Context, there string, store *catalog.Store) error {
	identity, err := store.Identity(ctx)
	switch prefix, id, _ := strings.Cut(there, " "); {
	case err != nil:
		return fmt.Errorf("check the owner of the bucket: %w", err)
	case prefix != store.Prefix():
		return fmt.Errorf("%w (object %q names the etcd prefix %q, this one has %q)", ErrOwned, Key, prefix, store.Prefix())
	case identity == "":
		return ErrNewEtcd
	case id != identity:
		return fmt.Errorf("%w (object %q names the same etcd prefix, but another etcd)", ErrOwned, Key)
	}
	return nil
}

// read returns the owner, or nothing if the bucket has none.
func read(ctx context.Context, b bucket.Bucket) (string, error) {
	owner, err := bucket.Read(ctx, b, Key, maxOwner)
	if errors.Is(err, bucket.ErrNotFound) {
		return "", nil
	}
	return string(owner), err
}

// put names the catalog in the bucket, with the identity that it has or gets now.
func put(ctx context.Context, b bucket.Bucket, store *catalog.Store, ifAbsent bool) error {
	identity, err := store.MakeIdentity(ctx, rand.Text())
	if err != nil {
		return err
	}
	owner := store.Prefix() + " " + identity
	return b.Put(ctx, Key, strings.NewReader(owner), bucket.PutOptions{Size: int64(len(owner)), IfAbsent: ifAbsent})
}
