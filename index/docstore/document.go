package docstore

// Repo is what a shard knows of a repo.
type Repo struct {
	Name string
	URL  string
	// Branches in the repo's order; the first one is its HEAD.
	Branches []Branch
	Archived bool
	Fork     bool
	Public   bool
	// Meta holds free facts, by key.
	Meta       map[string]string
	Generation uint64

	// FirstDoc and Docs are the documents of the repo: [FirstDoc,
	// FirstDoc+Docs). Readers fill them in; writers ignore them.
	FirstDoc, Docs uint32
}

// Branch is an indexed branch and its commit.
type Branch struct {
	Name string
	// Commit in hexadecimal.
	Commit string
}

// Document is what a shard knows of a document.
type Document struct {
	// Path as Git has it: bytes, not always UTF-8. Non-empty, at most MaxPath.
	Path []byte
	// Blob is the document's content: one that an earlier document had, or the
	// next new one. Skipped documents have a blob too, an empty one.
	Blob uint32
	// Branches that hold the document, as ascending indexes into the repo's
	// Branches; at least one.
	Branches []uint32
	// Language by its linguist name; empty when not known.
	Language string
	// Skip says why the content is not searchable.
	Skip SkipReason
	// Size in bytes of a skipped document at its source. For others it is not
	// stored, as it is the length of the blob.
	Size uint64
	// OID is the Git object id: 20 or 32 bytes, or none, the same length in all
	// of a repo, and the same for all documents of a blob.
	OID []byte
}
