package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// OwnerKey is the object that names the owner of a bucket.
const OwnerKey = "owner"

// maxOwner bounds an owner's name in bytes.
const maxOwner = 1024

// ErrOwned means that a bucket belongs to another owner.
var ErrOwned = errors.New("the bucket belongs to another Trawl; each needs a bucket or a folder of its own, " +
	"since its garbage collection deletes what it does not know")

// Claim makes owner, 1 to 1024 bytes, the owner of a bucket that has none. ErrOwned means
// that the bucket belongs to another owner, also if both claimed it at the same time.
func Claim(ctx context.Context, b Bucket, owner string) error {
	there, err := readOwner(ctx, b)
	if err == nil && there == "" {
		err = b.Put(ctx, OwnerKey, strings.NewReader(owner), PutOptions{Size: int64(len(owner)), IfAbsent: true})
		if err == nil {
			return nil
		}
		if errors.Is(err, ErrExists) { // somebody was quicker
			there, err = readOwner(ctx, b)
		}
	}
	if err != nil {
		return fmt.Errorf("claim the bucket: %w", err)
	}
	return compareOwner(there, owner)
}

// CheckOwner returns ErrOwned if a bucket belongs to another owner. An unclaimed bucket
// is no error.
func CheckOwner(ctx context.Context, b Bucket, owner string) error {
	there, err := readOwner(ctx, b)
	if err != nil {
		return fmt.Errorf("check the owner of the bucket: %w", err)
	}
	if there == "" {
		return nil
	}
	return compareOwner(there, owner)
}

func compareOwner(there, owner string) error {
	if there != owner {
		return fmt.Errorf("%w (object %q names the etcd prefix %q, this one has %q)", ErrOwned, OwnerKey, there, owner)
	}
	return nil
}

// readOwner returns the owner, or nothing if the bucket has none.
func readOwner(ctx context.Context, b Bucket) (string, error) {
	r, _, err := b.Get(ctx, OwnerKey)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer r.Close()
	owner, err := io.ReadAll(io.LimitReader(r, maxOwner))
	return string(owner), err
}
