package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// RepoStats describes a repo in a shard.
type RepoStats struct {
	Repo docstore.Repo
	// Documents counts all documents, Skipped those without searchable content.
	Documents, Skipped uint64
	// ContentBytes counts the searchable content of this repo in this shard.
	ContentBytes uint64
	// Languages in order of name.
	Languages []LanguageShare
	// SkippedFiles are the first skipped documents.
	SkippedFiles []SkippedFile
}

// LanguageShare is the searchable content in one language.
type LanguageShare struct {
	Language         string
	Documents, Bytes uint64
}

// SkippedFile is a document that only its name finds.
type SkippedFile struct {
	Path   []byte
	Reason docstore.SkipReason
	Size   uint64
}

// ListOptions shape a List.
type ListOptions struct {
	// Repos says which repos may be read; nil means all.
	Repos func(name string) bool
	// Overlays describe what has become of repos, as in Options.
	Overlays map[string]Overlay
	// MaxSkippedFiles bounds RepoStats.SkippedFiles.
	MaxSkippedFiles int
}

// ListResult is what List found.
type ListResult struct {
	// Repos are in the shard's order, which is the order of their names.
	Repos []RepoStats
	// Incomplete is the reason why some repos may be missing (a context's error), or nil.
	Incomplete error
	// BytesDecoded counts content that was decompressed.
	BytesDecoded uint64
}

// List describes the repos that hold at least one document that q matches.
// Errors are those of Search.
func (s *Shard) List(ctx context.Context, q *Query, opts ListOptions) (*ListResult, error) {
	res := new(ListResult)
	err := s.with(ctx, Options{Repos: opts.Repos, Overlays: opts.Overlays}, func(run *search) error {
		matched, err := run.matchedRepos(q)
		if err != nil && !isContextError(err) {
			return err
		}
		res.Incomplete, res.BytesDecoded = err, run.stats.BytesDecoded
		for i, ok := range matched {
			if !ok {
				continue
			}
			repo, err := run.docs.Repo(i)
			if err != nil {
				return err
			}
			stats, err := run.repoStats(i, repo, opts.MaxSkippedFiles)
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
func (s *search) matchedRepos(q *Query) (matched []bool, err error) {
	matched = make([]bool, s.docs.Repos())
	err = s.scan(q, func() error {
		matched[s.doc.repo] = true
		s.repos.hide(s.doc.repo)
		return nil
	})
	return matched, err
}

func (s *search) repoStats(i int, repo docstore.Repo, maxSkipped int) (RepoStats, error) {
	stats := RepoStats{Repo: repo}
	shares := map[uint16]*LanguageShare{}
	gone := s.repos.replaced[i].docs
	for doc := repo.FirstDoc; doc < repo.FirstDoc+repo.Docs; doc++ {
		if gone.Len() > 0 && gone.Has(doc-repo.FirstDoc) {
			continue
		}
		stats.Documents++
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
	for _, id := range slices.Sorted(maps.Keys(shares)) { // ids ascend as names do
		name, err := s.docs.LanguageName(id)
		if err != nil {
			return stats, err
		}
		shares[id].Language = name
		stats.Languages = append(stats.Languages, *shares[id])
		stats.ContentBytes += shares[id].Bytes
	}
	return stats, nil
}

func (s *search) addShare(shares map[uint16]*LanguageShare, doc uint32) error {
	language, err := s.docs.LanguageID(doc)
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
		share = new(LanguageShare)
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
