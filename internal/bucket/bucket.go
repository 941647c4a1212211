// Package bucket keeps immutable objects: shards, manifests and copies of sources.
//
// A Bucket is a folder, memory or an S3 bucket, opened by its URL. All pass one
// acceptance suite (package buckettest). An object appears whole or not at all, and
// only if its content has the announced size and digest; it is never changed in
// place. There is no compare-and-swap: etcd, not the bucket, decides which objects
// are current.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Bucket is a flat set of objects by key. Every method is safe for concurrent use,
// ends with its context, and returns its errors wrapped in an *Error.
//
// A key is one or more segments joined by '/', each of 1 to 200 characters from a–z,
// 0–9 and "._=-", not beginning with a dot; 512 bytes in all. No key may be a folder
// of another ("a" and "a/b"): not every implementation can hold both. Such keys mean
// the same on every file system and store.
type Bucket interface {
	// Put writes an object from r, which must give exactly opts.Size bytes. It replaces
	// an object of that key, or with IfAbsent fails with ErrExists, perhaps without
	// reading r. If a request to a remote store had to be repeated, ErrExists may be due
	// to an earlier attempt of the same call. If the content differs from the
	// announcement, the error is ErrSize or ErrChecksum, and nothing is written.
	Put(ctx context.Context, key string, r io.Reader, opts PutOptions) error

	// Get opens an object for reading; if there is none, the error is ErrNotFound. The
	// reader ends with ctx, must be closed, and is for one goroutine. It reads the object
	// as it was when Get returned, or fails.
	Get(ctx context.Context, key string) (io.ReadCloser, Info, error)

	// GetRange opens n bytes from offset off, or fewer if the object ends before. The
	// error is ErrRange if the offset is not inside the object or n is below 1. The
	// reader is like that of Get.
	GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error)

	// Stat describes an object; if there is none, the error is ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)

	// List yields the objects whose key begins with prefix, in the order of the keys'
	// bytes. After an error, yielded with a zero Info, it ends. It may or may not yield
	// objects that are put or deleted meanwhile.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Delete removes an object; it is no error if there is none. An open reader may then
	// fail, but never reads other content.
	Delete(ctx context.Context, key string) error
}

// PutOptions announces the content of a Put, and its condition.
type PutOptions struct {
	// Size is the content's length in bytes, exactly.
	Size int64
	// SHA256 is the content's digest. Zero: it is not checked.
	SHA256 [32]byte
	// IfAbsent makes Put fail by ErrExists if there is an object of that key.
	IfAbsent bool
}

// Info describes an object.
type Info struct {
	Key string
	// Size is in bytes.
	Size int64
	// ModTime is when the object was put, by the store's clock, to the second.
	ModTime time.Time
}

// Errors of a Bucket, for errors.Is.
var (
	// ErrNotFound: there is no object of that key.
	ErrNotFound = errors.New("no such object")
	// ErrExists: there is an object of that key already.
	ErrExists = errors.New("object exists already")
	// ErrChecksum: the content has another SHA-256 than announced.
	ErrChecksum = errors.New("content does not have the announced SHA-256")
	// ErrSize: the content is shorter or longer than announced.
	ErrSize = errors.New("content does not have the announced size")
	// ErrRange: the range is not inside the object.
	ErrRange = errors.New("range is not inside the object")
	// ErrKey: the key or prefix is not one that a Bucket can have.
	ErrKey = errors.New("not a valid key")
	// ErrTooLarge: the object is larger than the bucket's configuration allows.
	ErrTooLarge = errors.New("object is too large")
)

// Error names what was attempted on which object, and what went wrong.
type Error struct {
	// Op is the method, such as "put".
	Op string
	// Key is the object's key, or the prefix of a list.
	Key string
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s object %q: %v", e.Op, e.Key, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// wrap makes an *Error of err, or nil of nil.
func wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Key: key, Err: err}
}

// Reachable returns an error if the bucket cannot be used. It lists a prefix without
// objects, which fails if the store is away, the bucket does not exist or the
// credentials are wrong.
func Reachable(ctx context.Context, b Bucket) error {
	for _, err := range b.List(ctx, "reachable/") {
		return err
	}
	return nil
}

// Close releases a bucket's file or network handles. Running calls may fail; no call
// may follow.
func Close(b Bucket) error {
	if c, ok := b.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

const (
	maxKey     = 512
	maxSegment = 200
)

// checkKey checks a key against the rules of Bucket.
func checkKey(key string) error {
	if len(key) > maxKey {
		return ErrKey
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || len(segment) > maxSegment || !checkSegment(segment) {
			return ErrKey
		}
	}
	return nil
}

// isKey reports whether a name from a listing can be a key.
func isKey(name string) bool { return checkKey(name) == nil }

// checkPrefix accepts the prefixes of valid keys.
func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return checkKey(strings.TrimSuffix(prefix, "/"))
}

func checkSegment(segment string) bool {
	for _, c := range []byte(segment) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("._=-", c) >= 0) {
			return false
		}
	}
	return segment[0] != '.'
}

// checkPut checks the arguments of Put against the rules and the size limit.
func checkPut(key string, size, limit int64) error {
	switch {
	case size < 0:
		return ErrSize
	case size > limit:
		return fmt.Errorf("%d bytes where %d are allowed: %w", size, limit, ErrTooLarge)
	}
	return checkKey(key)
}

// clip returns how many of the n bytes from off are in an object of that size.
func clip(off, n, size int64) (int64, error) {
	if off < 0 || n < 1 || off >= size {
		return 0, ErrRange
	}
	return min(n, size-off), nil
}
