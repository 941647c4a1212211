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
	// compareEvery is the time between two looks at whether the bucket still has
	// the copies of all sources.
	compareEvery = time.Hour
	// copyTimeout bounds how long a bucket that does not answer holds up the rest.
	copyTimeout = 10 * time.Second
)

// copies keeps a copy of each source in the bucket, for an etcd that is lost: one object
// for each time that the source was changed or removed, which is never changed
// nor deleted. What etcd does not know is left alone: it may be etcd that has
// forgotten.
type copies struct {
	*Discoverer

	// stored are the revisions of which the bucket had copies when it was compared, or has since.
	stored   map[string]int64
	compared time.Time
}

// keep copies the sources that are not in the bucket as they are now. What fails is
// tried again with the next call.
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
			c.Log.WarnContext(ctx, "sources are not in the bucket yet, and would be lost with etcd; trying again", "sources", left, "error", err)
		}
	}
}

// copy makes copies, and says of how many there is none yet.
func (c *copies) copy(ctx context.Context, missing []catalog.Source) (left int, err error) {
	have, newest, err := c.list(ctx)
	if err != nil {
		return len(missing), err
	}
	for i, source := range missing {
		if err := c.one(ctx, source, newest, have); errors.Is(err, catalog.ErrStale) {
			left++ // it is read anew
		} else if err != nil {
			return left + len(missing) - i, err
		}
	}
	return left, nil
}

// list reads which copies the bucket has, and the newest version of all.
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

// one copies a source. Its version is noted in etcd first: so whoever copies
// what was applied later has a later one, though this may come last.
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
