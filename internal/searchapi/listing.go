package searchapi

import (
	"bytes"
	"slices"

	"github.com/trawl-search/trawl/index/search"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// DefaultTreeEntries is the default of ListTreeRequest.max_entries.
const DefaultTreeEntries = 1000

// TreeEntries maps the entries of a shard's tree. It shares bytes with them.
func TreeEntries(tree *search.Tree) []*searchv1.TreeEntry {
	entries := make([]*searchv1.TreeEntry, len(tree.Entries))
	for i := range tree.Entries {
		e := &tree.Entries[i]
		kind := searchv1.TreeEntry_KIND_FILE
		if e.Files > 0 {
			kind = searchv1.TreeEntry_KIND_FOLDER
		}
		entries[i] = &searchv1.TreeEntry{
			Path: e.Path, Kind: kind, SizeBytes: e.Size, Language: e.Language, SkipReason: searchv1.SkipReason(e.Skip), Files: e.Files,
		}
	}
	return entries
}

// Listing joins the trees of the shards of a repo. Each of them may have files of the same folder.
type Listing struct {
	// MaxEntries bounds the entries, and MaxBytes the bytes that they take as a field of a message. There is always room for one.
	MaxEntries, MaxBytes int
	// Entries are in the order of their paths. More is set if others follow.
	Entries []*searchv1.TreeEntry
	More    bool
}

// Add adds a part of a tree; more is set if others follow in that tree. It keeps the entries and may change them.
//
// What follows the end of one tree is left out of all of them, since it may not be whole.
func (l *Listing) Add(entries []*searchv1.TreeEntry, more bool) {
	all := slices.Concat(l.Entries, entries)
	slices.SortStableFunc(all, func(a, b *searchv1.TreeEntry) int { return bytes.Compare(a.Path, b.Path) })
	ended := func(e *searchv1.TreeEntry) bool {
		beyond := func(part []*searchv1.TreeEntry) bool {
			return len(part) > 0 && bytes.Compare(e.Path, part[len(part)-1].Path) > 0
		}
		return l.More && beyond(l.Entries) || more && beyond(entries)
	}
	var joined []*searchv1.TreeEntry
	for _, e := range all {
		if ended(e) {
			break
		}
		if n := len(joined); n > 0 && bytes.Equal(joined[n-1].Path, e.Path) {
			joined[n-1].Files += e.Files
			continue
		}
		joined = append(joined, e)
	}
	l.Entries, l.More = joined, l.More || more
	if n := max(min(l.MaxEntries, Fitting(joined, l.MaxBytes)), 1); n < len(joined) {
		l.Entries, l.More = joined[:n], true
	}
}
