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
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.cache.leave(s.object)
	return nil
}

// Check opens the shard as a search does: it reads the tail, so that searches need not.
func (s *Shard) Check(ctx context.Context) error {
	return s.use(ctx, func(*search.Shard) error { return nil })
}

// Find is search.Shard's.
func (s *Shard) Find(ctx context.Context, q *search.Query, opts search.Options) (f *search.Found, err error) {
	err = s.use(ctx, func(sh *search.Shard) error {
		f, err = sh.Find(ctx, q, opts)
		return err
	})
	return f, err
}

// Show is search.Shard's. It may have to download blocks again that were read to find the
// hits.
func (s *Shard) Show(ctx context.Context, found *search.Found, n int) (r *search.Result, err error) {
	err = s.use(ctx, func(sh *search.Shard) error {
		r, err = sh.Show(ctx, found, n)
		return err
	})
	return r, err
}

// Count is search.Shard's.
func (s *Shard) Count(ctx context.Context, q *search.Query, opts search.Options, by []search.Facet) (c *search.Counted, err error) {
	err = s.use(ctx, func(sh *search.Shard) error {
		c, err = sh.Count(ctx, q, opts, by)
		return err
	})
	return c, err
}

// List is search.Shard's.
func (s *Shard) List(ctx context.Context, q *search.Query, opts search.ListOptions) (r *search.ListResult, err error) {
	err = s.use(ctx, func(sh *search.Shard) error {
		r, err = sh.List(ctx, q, opts)
		return err
	})
	return r, err
}

// File is search.Shard's.
func (s *Shard) File(ctx context.Context, repo string, path []byte, branch string, opts search.Options, part search.Part) (f *search.File, err error) {
	err = s.use(ctx, func(sh *search.Shard) error {
		f, err = sh.File(ctx, repo, path, branch, opts, part)
		return err
	})
	return f, err
}

// Tree is search.Shard's.
func (s *Shard) Tree(ctx context.Context, repo string, of search.Options, opts search.TreeOptions) (t *search.Tree, err error) {
	err = s.use(ctx, func(sh *search.Shard) error {
		t, err = sh.Tree(ctx, repo, of, opts)
		return err
	})
	return t, err
}

// use opens the shard over a view of its own for one search.
func (s *Shard) use(ctx context.Context, do func(*search.Shard) error) error {
	v := s.cache.view(s.object)
	defer v.close()
	if err := v.place(ctx); err != nil {
		return err
	}
	read := func(p []byte, off int64) error { return v.read(ctx, p, off) }
	f, err := format.NewRemote(s.object.Name, v.data, read, v.soon)
	if err != nil {
		return err
	}
	sh, err := search.OpenFile(f)
	if err != nil {
		return err
	}
	return errors.Join(do(sh), sh.Close())
}
