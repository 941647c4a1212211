package gc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/owner"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Problem is what an audit found about an object.
type Problem string

// Problems. The first three cost space; the others break searches of a repo, and
// indexing it anew mends them.
const (
	// Orphan: garbage that the next pass will condemn.
	Orphan Problem = "orphan"
	// Condemned: garbage that waits for its deletion.
	Condemned Problem = "condemned"
	// Unknown: not made by Trawl, or under an etcd that no longer exists. It is never
	// deleted. Copies of sources are never unknown, whatever etcd has.
	Unknown Problem = "unknown"
	// Missing: a root names it, but the bucket does not have it.
	Missing Problem = "missing"
	// WrongSize: it has another size than its root says.
	WrongSize Problem = "wrong size"
	// WrongDigest: its content is not what its root says.
	WrongDigest Problem = "wrong digest"
)

// Finding is one object with a problem.
type Finding struct {
	Problem Problem `json:"problem"`
	Key     string  `json:"key"`
	// Repo is the one whose root names the object, empty for garbage.
	Repo string `json:"repo,omitempty"`
	// Bytes is the size of the object in the bucket, 0 if it is missing.
	Bytes uint64 `json:"bytes"`
	// Put is when the object was put, by the bucket's clock.
	Put time.Time `json:"put,omitzero"`
}

// Audit compares the bucket with the roots and calls found with every object that has
// a problem; an error of found ends it. With contents it also reads every object that
// a root names, which is the whole index, to compare digests. It returns how many
// objects are well. It takes about 50 bytes of memory for each object.
func (c *Collector) Audit(ctx context.Context, contents bool, found func(Finding) error) (well Count, err error) {
	a := &audit{Collector: c, contents: contents, found: found, sizes: map[[16]byte]int64{}}
	err = owner.Check(ctx, c.Bucket, c.Store)
	if err == nil {
		err = a.garbage(ctx)
	}
	if err != nil {
		return a.well, fmt.Errorf("audit the bucket: %w", err)
	}
	for root, err := range c.Store.ListRoots(ctx) {
		if err == nil {
			err = a.root(ctx, root.Record)
		}
		if err != nil {
			return a.well, fmt.Errorf("audit the roots: %w", err)
		}
	}
	return a.well, nil
}

type audit struct {
	*Collector

	contents bool
	found    func(Finding) error
	sizes    map[[16]byte]int64 // of objects that may be in use
	well     Count
}

// garbage reports unreachable objects, and records the sizes of the rest.
func (a *audit) garbage(ctx context.Context) error {
	condemned := map[string]bool{}
	for batch, err := range a.Store.ListCondemned(ctx) {
		if err != nil {
			return err
		}
		for _, o := range batch.Record.GetObjects() {
			condemned[o.GetKey()] = true
		}
	}
	reach, err := a.Store.Reach(ctx)
	if err != nil {
		return err
	}
	for info, err := range a.Bucket.List(ctx, "") {
		if err != nil {
			return err
		}
		finding := Finding{Key: info.Key, Bytes: uint64(info.Size), Put: info.ModTime}
		switch {
		case info.Key == owner.Key:
			continue
		case reach.Garbage(info.Key) && condemned[info.Key]:
			finding.Problem = Condemned
		case reach.Garbage(info.Key):
			finding.Problem = Orphan
		case reach.Named(info.Key), reach.Pending(info.Key):
			a.sizes[short(info.Key)] = info.Size
			continue
		default:
			problem, err := a.source(ctx, info)
			if err != nil {
				return err
			}
			if finding.Problem = problem; problem == "" {
				a.well.add(finding.Bytes)
				continue
			}
		}
		if err := a.found(finding); err != nil {
			return err
		}
	}
	return nil
}

// source returns the problem of a copy of a source, if any; any other object is
// unknown.
func (a *audit) source(ctx context.Context, info bucket.Info) (Problem, error) {
	made, ok := catalog.ParseSourceKey(info.Key)
	if !ok {
		return Unknown, nil
	}
	if !a.contents {
		return "", nil
	}
	sum, err := bucket.Digest(ctx, a.Bucket, info.Key)
	if err != nil {
		return "", err
	}
	if !made.Has([32]byte(sum)) {
		return WrongDigest, nil
	}
	return "", nil
}

func short(key string) [16]byte {
	sum := sha256.Sum256([]byte(key))
	return [16]byte(sum[:16])
}

// root looks at everything that a root names.
func (a *audit) root(ctx context.Context, root *catalogv1.Root) error {
	for _, s := range root.GetShards() {
		if err := a.object(ctx, root, s.GetKey(), int64(s.GetSizeBytes()), s.GetDigest()); err != nil {
			return err
		}
	}
	if root.GetManifestKey() == "" {
		return nil
	}
	// No record has the size of a manifest.
	return a.object(ctx, root, root.GetManifestKey(), -1, root.GetManifestDigest())
}

func (a *audit) object(ctx context.Context, root *catalogv1.Root, key string, size int64, digest []byte) error {
	problem, have, err := a.look(ctx, key, size, digest)
	if err != nil {
		return err
	}
	if problem == "" {
		a.well.add(uint64(have))
		return nil
	}
	return a.found(Finding{Problem: problem, Key: key, Repo: root.GetRepo(), Bytes: uint64(have)})
}

// look returns the problem of an object, if any, and its size.
func (a *audit) look(ctx context.Context, key string, size int64, digest []byte) (Problem, int64, error) {
	have, listed := a.sizes[short(key)]
	if !listed {
		info, err := a.Bucket.Stat(ctx, key) // it may have come since the listing
		if errors.Is(err, bucket.ErrNotFound) {
			return Missing, 0, nil
		}
		if err != nil {
			return "", 0, err
		}
		have = info.Size
	}
	if size >= 0 && have != size {
		return WrongSize, have, nil
	}
	if !a.contents {
		return "", have, nil
	}
	sum, err := bucket.Digest(ctx, a.Bucket, key)
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return Missing, 0, nil
	case err != nil:
		return "", 0, err
	case !bytes.Equal(sum, digest):
		return WrongDigest, have, nil
	}
	return "", have, nil
}
