package ranged

import (
	"context"
	"errors"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/search"
)

// Shard is a shard of the bucket that is searched by ranged reads, with the methods and
// errors of a *search.Shard. It also returns the errors of the bucket. It is safe for concurrent use, but not after Close.
type Shard struct {
	cache  *Cache
	object *object
}

// Open makes a shard that can be searched. It reads nothing yet.
func (c *Cache) Open(o Object) *Shard {
	return &Shard{cache: c, object: newObject(c.grain, o)}
}

// Close drops the downloaded blocks of the shard. No search may be running.
func (s *Shard) Close() error {
	s.cache.leave(s.object)
	return nil
}

// Check opens the shard as a search does: it reads the tail, so that searches need not.
func (s *Shard) Check(ctx context.Context) error {
	_, err := use(ctx, s, func(*search.Shard) (any, error) { return nil, nil })
	return err
}

// Find is search.Shard's.
func (s *Shard) Find(ctx context.Context, q *search.Query, opts search.Options) (*search.Found, error) {
	return use(ctx, s, func(sh *search.Shard) (*search.Found, error) { return sh.Find(ctx, q, opts) })
}

// Show is search.Shard's. It may have to download blocks again that were read to find the
// hits.
func (s *Shard) Show(ctx context.Context, found *search.Found, n int) (*search.Result, error) {
	return use(ctx, s, func(sh *search.Shard) (*search.Result, error) { return sh.Show(ctx, found, n) })
}

// Count is search.Shard's.
func (s *Shard) Count(ctx context.Context, q *search.Query, opts search.Options, by []search.Facet) (*search.Counted, error) {
	return use(ctx, s, func(sh *search.Shard) (*search.Counted, error) { return sh.Count(ctx, q, opts, by) })
}

// List is search.Shard's.
func (s *Shard) List(ctx context.Context, q *search.Query, opts search.ListOptions) (*search.ListResult, error) {
	return use(ctx, s, func(sh *search.Shard) (*search.ListResult, error) { return sh.List(ctx, q, opts) })
}

// File is search.Shard's.
func (s *Shard) File(ctx context.Context, repo string, path []byte, branch string, opts search.Options, part search.Part) (*search.File, error) {
	return use(ctx, s, func(sh *search.Shard) (*search.File, error) { return sh.File(ctx, repo, path, branch, opts, part) })
}

// Tree is search.Shard's.
func (s *Shard) Tree(ctx context.Context, repo string, of search.Options, opts search.TreeOptions) (*search.Tree, error) {
	return use(ctx, s, func(sh *search.Shard) (*search.Tree, error) { return sh.Tree(ctx, repo, of, opts) })
}

// use opens the shard over a view of its own for one search, and returns what do finds.
func use[T any](ctx context.Context, s *Shard, do func(*search.Shard) (T, error)) (found T, err error) {
	v := s.cache.view(s.object)
	defer v.close()
	if err := v.place(ctx); err != nil {
		return found, err
	}
	read := func(p []byte, off int64) error { return v.read(ctx, p, off) }
	f, err := format.NewRemote(s.object.Name, v.data, read, v.soon)
	if err != nil {
		return found, err
	}
	sh, err := search.OpenFile(f)
	if err != nil {
		return found, err
	}
	found, err = do(sh)
	return found, errors.Join(err, sh.Close())
}
