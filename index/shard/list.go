package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/query"
)

// RepoStats describe a repo in a shard.
type RepoStats struct {
	Repo docstore.Repo
	// Documents counts all documents, Skipped those whose content is not searchable.
	Documents, Skipped uint64
	// ContentBytes of searchable documents of this repo in this shard.
	ContentBytes uint64
	// Languages in order of name.
	Languages []LanguageShare
	// SkippedFiles are the first of the skipped documents.
	SkippedFiles []SkippedFile
}

// LanguageShare is the searchable content in one language.
type LanguageShare struct {
	Language         string
	Documents, Bytes uint64
}

// SkippedFile is a document that is found by name only.
type SkippedFile struct {
	Path   []byte
	Reason docstore.SkipReason
	Size   uint64
}

// ListOptions shape a List.
type ListOptions struct {
	// Repos says which repos may be read; nil means all.
	Repos func(name string) bool
	// MaxSkippedFiles bounds RepoStats.SkippedFiles.
	MaxSkippedFiles int
}

// ListResult is what List found.
type ListResult struct {
	// Repos in the shard's order, which is that of their names.
	Repos []RepoStats
	// Incomplete is nil, or why some repos may be missing (a context's error).
	Incomplete error
}

// List describes the repos that hold at least one document that q matches.
// Errors are those of Search.
func (s *Shard) List(ctx context.Context, q query.Q, opts ListOptions) (*ListResult, error) {
	res := new(ListResult)
	err := s.with(ctx, Options{Repos: opts.Repos}, func(run *search) error {
		matched, err := run.matchedRepos(q)
		if err != nil && !isContextError(err) {
			return err
		}
		res.Incomplete = err
		for i, ok := range matched {
			if !ok {
				continue
			}
			stats, err := run.repoStats(run.repos[i], opts.MaxSkippedFiles)
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

// matchedRepos finds the repos with a match, leaving each at its first.
func (s *search) matchedRepos(q query.Q) (matched []bool, err error) {
	matched = make([]bool, len(s.repos))
	return matched, s.each(q, func(node) error {
		matched[s.doc.repo] = true
		s.live[s.doc.repo] = false
		return nil
	})
}

func (s *search) repoStats(repo docstore.Repo, maxSkipped int) (RepoStats, error) {
	stats := RepoStats{Repo: repo, Documents: uint64(repo.Docs)}
	shares := map[string]*LanguageShare{}
	for doc := repo.FirstDoc; doc < repo.FirstDoc+repo.Docs; doc++ {
		skip, err := s.docs.Skip(doc)
		if err != nil {
			return stats, err
		}
		if skip == docstore.NotSkipped {
			err = s.addShare(shares, doc)
		} else {
			err = s.addSkipped(&stats, doc, skip, maxSkipped)
		}
		if err != nil {
			return stats, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		stats.Languages = append(stats.Languages, *shares[name])
		stats.ContentBytes += shares[name].Bytes
	}
	return stats, nil
}

func (s *search) addShare(shares map[string]*LanguageShare, doc uint32) error {
	language, _, err := s.docs.Language(doc)
	if err != nil {
		return err
	}
	blob, err := s.docs.Blob(doc)
	if err != nil {
		return err
	}
	size, err := s.content.Len(blob)
	if err != nil {
		return err
	}
	share := shares[language]
	if share == nil {
		share = &LanguageShare{Language: language}
		shares[language] = share
	}
	share.Documents++
	share.Bytes += uint64(size)
	return nil
}

func (s *search) addSkipped(stats *RepoStats, doc uint32, reason docstore.SkipReason, most int) error {
	if stats.Skipped++; len(stats.SkippedFiles) >= most {
		return nil
	}
	path, err := s.docs.AppendPath(nil, doc)
	if err != nil {
		return err
	}
	size, err := s.docs.Size(doc)
	stats.SkippedFiles = append(stats.SkippedFiles, SkippedFile{path, reason, size})
	return err
}
