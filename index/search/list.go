package search

import (
	"context"
	"fmt"

	"github.com/trawl-search/trawl/index/shard"
)

// ListOptions shape a List.
type ListOptions struct {
	// Repos and Overlays are those of Options.
	Repos    func(repo int) bool
	Overlays map[int]Overlay
	// After and Last bound the repos by their names: those after After, up to and including Last. Empty names set no
	// bound.
	After, Last string
	// MaxSkippedFiles bounds shard.RepoStats.SkippedFiles.
	MaxSkippedFiles int
}

// ListResult is what List found.
type ListResult struct {
	// Repos are in the shard's order, which is the order of their names.
	Repos []shard.RepoStats
	// Incomplete is the reason why some repos may be missing (a context's error), or nil.
	Incomplete error
	// BytesDecoded counts content that was decompressed, or came from the cache of what was.
	BytesDecoded uint64
}

// List describes the repos that hold at least one document that q matches.
// Errors are those of Search.
func (s *Shard) List(ctx context.Context, q *Query, opts ListOptions) (*ListResult, error) {
	res := new(ListResult)
	err := s.Guard(func() error { return s.bound(&opts) })
	if err != nil {
		return nil, fmt.Errorf("list shard %s: %w", s.Name(), err)
	}
	err = s.with(ctx, q, Options{Repos: opts.Repos, Overlays: opts.Overlays}, func(run *search) error {
		matched := make([]bool, s.Docs.Repos())
		err := run.scan(func() error {
			matched[run.doc.repo] = true
			run.repos.hide(run.doc.repo) // the scan leaves a repo at its first match
			return nil
		})
		if err != nil && !isContextError(err) {
			return err
		}
		res.Incomplete, res.BytesDecoded = err, run.reader.BytesDecoded
		for i, ok := range matched {
			if !ok {
				continue
			}
			stats, err := s.Stats(i, run.repos.replaced[i].docs, opts.MaxSkippedFiles, run.tick)
			if isContextError(err) {
				res.Incomplete = err
				return nil
			}
			if err != nil {
				return err
			}
			res.Repos = append(res.Repos, stats)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list shard %s: %w", s.Name(), err)
	}
	return res, nil
}

// bound makes Repos refuse the repos out of bounds.
func (s *Shard) bound(opts *ListOptions) (err error) {
	from, end, allowed := 0, s.Docs.Repos(), opts.Repos
	if opts.After != "" {
		from, err = s.Docs.SeekRepo(opts.After + "\x00")
	}
	if opts.Last != "" && err == nil {
		end, err = s.Docs.SeekRepo(opts.Last + "\x00")
	}
	if from > 0 || end < s.Docs.Repos() {
		opts.Repos = func(repo int) bool { return from <= repo && repo < end && (allowed == nil || allowed(repo)) }
	}
	return err
}
