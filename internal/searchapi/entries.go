package searchapi

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/shard"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Entry maps one shard's statistics of a repo. A shard does not know when the repo
// was published or the size of its shards: see Describe in the router.
func Entry(s *shard.RepoStats) *searchv1.RepoEntry {
	e := &searchv1.RepoEntry{
		Name: s.Repo.Name, Url: s.Repo.URL, Generation: s.Repo.Generation,
		Documents: s.Documents, ContentBytes: s.ContentBytes, Shards: 1,
		SkippedDocuments: s.Skipped,
	}
	for _, b := range s.Repo.Branches {
		e.Branches = append(e.Branches, &searchv1.BranchEntry{Name: b.Name, Commit: b.Commit})
	}
	for _, l := range s.Languages {
		e.Languages = append(e.Languages, &searchv1.LanguageShare{
			Language: l.Language, Documents: l.Documents, Bytes: l.Bytes,
		})
	}
	for _, f := range s.SkippedFiles {
		e.SkippedFiles = append(e.SkippedFiles, &searchv1.SkippedFile{
			Path: f.Path, Reason: searchv1.SkipReason(f.Reason), SizeBytes: f.Size,
		})
	}
	return e
}

// Within reports whether a repo is in a span; all are if there is none.
func Within(span *searchv1.RepoSpan, repo string) bool {
	return repo > span.GetAfter() && (span.GetLast() == "" || repo <= span.Last)
}

// MergeEntries merges the entries of several shards, each with its own part of a
// repo, into one entry per repo, in ascending order of name. At most maxSkipped
// skipped files of a repo stay, the first by path. It may change the given entries.
func MergeEntries(maxSkipped int, entries []*searchv1.RepoEntry) []*searchv1.RepoEntry {
	byName := make(map[string]*searchv1.RepoEntry, len(entries))
	for _, e := range entries {
		if sum, ok := byName[e.Name]; ok {
			addEntry(sum, e)
		} else {
			byName[e.Name] = e
		}
	}
	for _, e := range byName {
		slices.SortStableFunc(e.SkippedFiles, func(a, b *searchv1.SkippedFile) int { return bytes.Compare(a.Path, b.Path) })
		e.SkippedFiles = e.SkippedFiles[:min(maxSkipped, len(e.SkippedFiles))]
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *searchv1.RepoEntry) int {
		return strings.Compare(a.Name, b.Name)
	})
}

func addEntry(sum, e *searchv1.RepoEntry) {
	sum.Documents += e.Documents
	sum.ContentBytes += e.ContentBytes
	sum.Shards += e.Shards
	sum.SkippedDocuments += e.SkippedDocuments
	sum.SkippedFiles = append(sum.SkippedFiles, e.SkippedFiles...)
	for _, l := range e.Languages {
		sum.Languages = addLanguage(sum.Languages, l)
	}
}

// addLanguage adds a language and keeps the order of names.
func addLanguage(in []*searchv1.LanguageShare, l *searchv1.LanguageShare) []*searchv1.LanguageShare {
	i, found := slices.BinarySearchFunc(in, l.Language, func(a *searchv1.LanguageShare, name string) int {
		return strings.Compare(a.Language, name)
	})
	if !found {
		return slices.Insert(in, i, l)
	}
	in[i].Documents += l.Documents
	in[i].Bytes += l.Bytes
	return in
}
