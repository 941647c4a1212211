package shard

import (
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

// Stats describes repo i without the documents in gone, numbered from the repo's first one. It
// names up to maxSkipped skipped files. It calls tick for each document, and stops with its error.
func (s *Shard) Stats(i int, gone docstore.Set, maxSkipped int, tick func() error) (RepoStats, error) {
	repo, err := s.Docs.Repo(i)
	if err != nil {
		return RepoStats{}, err
	}
	stats := RepoStats{Repo: repo}
	shares := map[uint16]*LanguageShare{}
	for doc := repo.FirstDoc; doc < repo.FirstDoc+repo.Docs; doc++ {
		if err := tick(); err != nil {
			return stats, err
		}
		if gone.Len() > 0 && gone.Has(doc-repo.FirstDoc) {
			continue
		}
		stats.Documents++
		skip, err := s.Docs.Skip(doc)
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
		name, err := s.Docs.LanguageName(id)
		if err != nil {
			return stats, err
		}
		shares[id].Language = name
		stats.Languages = append(stats.Languages, *shares[id])
		stats.ContentBytes += shares[id].Bytes
	}
	return stats, nil
}

func (s *Shard) addShare(shares map[uint16]*LanguageShare, doc uint32) error {
	language, err := s.Docs.LanguageID(doc)
	if err != nil {
		return err
	}
	blob, err := s.Docs.Blob(doc)
	if err != nil {
		return err
	}
	size, err := s.Content.Len(blob)
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

func (s *Shard) addSkipped(stats *RepoStats, doc uint32, reason docstore.SkipReason, most int) error {
	if stats.Skipped++; len(stats.SkippedFiles) >= most {
		return nil
	}
	path, err := s.Docs.AppendPath(nil, doc)
	if err != nil {
		return err
	}
	size, err := s.Docs.Size(doc)
	stats.SkippedFiles = append(stats.SkippedFiles, SkippedFile{path, reason, size})
	return err
}
