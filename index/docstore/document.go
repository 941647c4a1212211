package docstore

import (
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"hash"
)

// Repo is what a shard knows of a repo.
type Repo struct {
	Name string
	URL  string
	// Branches are in the repo's order; the first one is its HEAD.
	Branches []Branch
	Archived bool
	Fork     bool
	Public   bool
	// Meta has free facts by key.
	Meta       map[string]string
	Generation uint64
	// Rank says how much the repo matters beside others, from 0 to MaxRank.
	Rank uint8

	// FirstDoc and Docs give the documents of the repo: [FirstDoc,
	// FirstDoc+Docs). Readers set them; writers ignore them.
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
	// Path is as in Git: bytes that may not be UTF-8. It is not empty and has
	// at most MaxPath bytes.
	Path []byte
	// Blob is the document's content: the blob of an earlier document, or the
	// next new one. Skipped documents have an empty blob.
	Blob uint32
	// Branches that hold the document, as ascending indexes into the repo's
	// Branches; there is at least one.
	Branches []uint32
	// Language is the linguist name; empty if unknown.
	Language string
	// Skip says why the content is not searchable.
	Skip SkipReason
	// Size is the size in bytes of a skipped document at its source. For other
	// documents it is not stored, since it is the length of the blob.
	Size uint64
	// OID is the Git object id: 20 or 32 bytes, or none. Its length is the same
	// for all documents of a repo, and the id is the same for all documents of
	// a blob.
	OID []byte
}

// ObjectID returns the Git object id of a content, of size bytes: 20 or 32. There is none of another size.
func ObjectID(content []byte, size int) []byte {
	var h hash.Hash
	switch size {
	case sha1.Size:
		h = sha1.New()
	case sha256.Size:
		h = sha256.New()
	default:
		return nil
	}
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return h.Sum(nil)
}
