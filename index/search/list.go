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
	err := s.with(ctx, q, Options{Repos: opts.Repos, Overlays: opts.Overlays}, func(run *search) error {
		matched, err := run.matchedRepos()
		if err != nil && !isContextError(err) {
			return err
		}
		res.Incomplete, res.BytesDecoded = err, run.stats.BytesDecoded
		for i, ok := range matched {
			if !ok {
				continue
			}
			stats, err := s.Stats(i, run.repos.replaced[i].docs, opts.MaxSkippedFiles)
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

// matchedRepos finds the repos with a match. It leaves a repo at its first match.
func (s *search) matchedRepos() (matched []bool, err error) {
	matched = make([]bool, s.docs.Repos())
	err = s.scan(func() error {
		matched[s.doc.repo] = true
		s.repos.hide(s.doc.repo)
		return nil
	})
	return matched, err
}
