// Package docstore keeps what a shard holds of its documents: their content in
// small compressed units, and for each document its path, repo, branches,
// language and object id.
//
// A blob is one distinct content, stored once; a document is a blob at a path
// of a repo, on a set of branches. Blobs and documents are numbered from 0,
// documents in the order of repo and path, blobs in the order of their first
// document. A blob owns whole superblocks of 4 KiB, the last one shorter; an
// empty blob owns none. Each superblock is one unit:
//
//	blob 0, 9000 bytes                   blob 2, 100 bytes
//	┌────────────┬────────────┬────────┐ ┌─────┐
//	│ 4096       │ 4096       │ 808    │ │ 100 │    decoded sizes
//	└────────────┴────────────┴────────┘ └─────┘
//	 unit 0       unit 1       unit 2     unit 3     blob 1 is empty
//
// Neighbouring units share a dictionary: a text of up to 60 KiB that precedes
// each of them for the decoder.
//
// All paths, concatenated, form one more text ("names"). It is cut into
// superblocks and encoded in the same way, so that paths can be searched by
// n-gram as contents are.
//
// Readers keep no memory per document or blob. Their input may be hostile: no
// bytes make them panic or allocate more than a fixed multiple of the shard's
// size, and every such error is a *format.CorruptError.
package docstore

const (
	// SuperblockSize is the span of content that a posting names, and what a
	// unit holds, in bytes.
	SuperblockSize = 4096
	// BlockSize is the span that a bit of a posting's mask stands for.
	BlockSize = SuperblockSize / 8
	// MaxPath is the longest path of a document, in bytes.
	MaxPath = 64 << 10
	// MaxRank is the highest rank of a repo.
	MaxRank = 100
)
