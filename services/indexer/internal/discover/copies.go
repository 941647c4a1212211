package discover

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
)

const (
	// compareEvery is the time between two checks that the bucket still has the copies
	// of all sources.
	compareEvery = time.Hour
	// copyTimeout bounds how long a bucket that does not answer delays other work.
	copyTimeout = 10 * time.Second
)

// copies keeps a copy of each source in the bucket, from which a lost etcd can be
// restored. Each change or removal of a source is a new object, which is never changed
// or deleted. Objects that etcd does not know stay, since etcd may have lost its data.
type copies struct {
	*Discoverer

	// stored maps sources to the revisions that are known to be in the bucket.
	stored   map[string]int64
	compared time.Time
}

// keep copies the sources whose present state is not in the bucket. The next call
// repeats what failed.
func (c *copies) keep(ctx context.Context, sources map[string]catalog.Source) {
	if time.Since(c.compared) >= compareEvery {
		c.stored, c.compared = map[string]int64{}, time.Now()
	}
	var missing []catalog.Source
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if c.stored[name] != sources[name].Revision {
			missing = append(missing, sources[name])
		}
	}
	if len(missing) > 0 {
		within, cancel := context.WithTimeout(ctx, copyTimeout)
		defer cancel()
		left, err := c.copy(within, missing)
		c.Metrics.unstored.Set(float64(left))
		if err != nil && ctx.Err() == nil {
			c.Log.WarnContext(ctx, "sources are not in the bucket yet and would be lost with etcd, trying again", "sources", left, "error", err)
		}
	}
}

// copy copies sources and returns how many have no copy yet.
func (c *copies) copy(ctx context.Context, missing []catalog.Source) (left int, err error) {
	have, newest, err := c.list(ctx)
	if err != nil {
		return len(missing), err
	}
	for i, source := range missing {
		if err := c.one(ctx, source, newest, have); errors.Is(err, catalog.ErrStale) {
			left++ // it changed, and the next pass reads it again
		} else if err != nil {
			return left + len(missing) - i, err
		}
	}
	return left, nil
}

// list returns the keys of the copies in the bucket and their newest version.
func (c *copies) list(ctx context.Context) (have map[string]bool, newest uint64, err error) {
	have = map[string]bool{}
	for info, err := range c.Bucket.List(ctx, catalog.SourcePrefix) {
		if err != nil {
			return nil, 0, fmt.Errorf("list copies of sources: %w", err)
		}
		made, _ := catalog.ParseSourceKey(info.Key)
		have[info.Key], newest = true, max(newest, made.Version)
	}
	return have, newest, nil
}

// one copies a source. It takes a version in etcd first, so that a later state of the
// source has a later version even if it is copied earlier.
func (c *copies) one(ctx context.Context, source catalog.Source, newest uint64, have map[string]bool) error {
	numbered, err := c.Store.NumberSource(ctx, source, newest)
	if err != nil {
		return err
	}
	name := source.Record.GetSpec().GetName()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(source.Record)
	if err != nil {
		return fmt.Errorf("encode source %q: %w", name, err)
	}
	digest := sha256.Sum256(data)
	key := catalog.SourceKey(name, numbered.GetVersion(), digest)
	if !have[key] {
		err = c.Bucket.Put(ctx, key, bytes.NewReader(data), bucket.PutOptions{Size: int64(len(data)), SHA256: digest, IfAbsent: true})
		if err != nil && !errors.Is(err, bucket.ErrExists) {
			return fmt.Errorf("copy source %q: %w", name, err)
		}
	}
	if !numbered.GetStored() {
		if err := c.Store.SourceStored(ctx, source, numbered.GetVersion()); err != nil {
			return err
		}
	}
	c.stored[name] = source.Revision
	return nil
}
