package docstore

import "strconv"

// SkipReason says why only the name of a document is searchable. The numbers are those of
// SkipReason in proto/trawl/search/v1.
type SkipReason uint8

// Reasons to skip the content of a document.
const (
	// NotSkipped documents are searchable by content.
	NotSkipped SkipReason = iota
	// TooLarge files have more bytes than the limit.
	TooLarge
	// Binary files contain a NUL byte.
	Binary
	// Submodule entries have a commit of another repo.
	Submodule
	// Unreadable files could not be read from the source.
	Unreadable
	// TooDeep files are in more nested folders than the limit.
	TooDeep
)

var skipWords = [...]string{
	NotSkipped: "searchable",
	TooLarge:   "too large",
	Binary:     "binary",
	Submodule:  "submodule",
	Unreadable: "unreadable",
	TooDeep:    "too many folders deep",
}

// String describes the reason in plain words.
func (r SkipReason) String() string {
	if int(r) < len(skipWords) {
		return skipWords[r]
	}
	return "unknown reason " + strconv.Itoa(int(r))
}
