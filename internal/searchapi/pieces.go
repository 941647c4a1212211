package searchapi

import (
	"errors"
	"iter"

	"google.golang.org/protobuf/proto"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// pieceBytes is the most that the files or repos of one message of a stream
	// take, if each of them can be divided.
	pieceBytes = 1 << 20
	// framing is the most bytes that a message takes as a field, in addition to its own.
	framing = 6
	// fileFrame is the most bytes that a file takes without its texts and chunks,
	// chunkFrame a chunk without its content and ranges, symbolFrame a symbol without its
	// texts, and rangeBytes a range.
	fileFrame   = 96
	chunkFrame  = 64
	rangeBytes  = 56
	symbolFrame = 16
	// leastRoom is how much content a part takes even if the file's name leaves no room.
	leastRoom = 64 << 10
)

// LeastResponse is the least bound of a response message: a message of a stream has one
// piece, and may have a little more.
const LeastResponse = 2 * pieceBytes

// Pieces groups files into runs of at most about 1 MiB, each for one message of a
// stream. A larger file comes in parts, which JoinFile puts together again. The files
// are not changed.
func Pieces(files iter.Seq[*searchv1.FileMatch]) iter.Seq[[]*searchv1.FileMatch] {
	return batches(files, fileParts)
}

// EntryPieces does the same for repos. MergeEntries puts their parts together.
func EntryPieces(entries iter.Seq[*searchv1.RepoEntry]) iter.Seq[[]*searchv1.RepoEntry] {
	return batches(entries, entryParts)
}

// batches divides items into parts with their sizes, and groups as many parts as a
// message holds.
func batches[T proto.Message](items iter.Seq[T], parts func(T) iter.Seq2[T, int]) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		var batch []T
		size := 0
		for item := range items {
			for part, n := range parts(item) {
				if len(batch) > 0 && size+n > pieceBytes {
					if !yield(batch) {
						return
					}
					batch, size = nil, 0
				}
				batch, size = append(batch, part), size+n
			}
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// fileParts divides a file. If a message has room for it, the file is the only part.
func fileParts(f *searchv1.FileMatch) iter.Seq2[*searchv1.FileMatch, int] {
	return func(yield func(*searchv1.FileMatch, int) bool) {
		if size := sizeBound(f); size <= pieceBytes {
			yield(f, size)
			return
		}
		if size := proto.Size(f) + framing; size <= pieceBytes {
			yield(f, size)
			return
		}
		part := WithChunks(f, nil)
		room := pieceBytes - proto.Size(part) - framing
		next := func() bool {
			more := yield(part, pieceBytes-room)
			part = &searchv1.FileMatch{Repo: f.Repo, Path: f.Path, Blob: f.Blob, Score: f.Score, Continued: true}
			room = pieceBytes - proto.Size(part) - framing
			return more
		}
		for _, c := range f.Chunks {
			for rest := c; rest != nil; {
				var head *searchv1.ChunkMatch
				if head, rest = divide(rest, room, len(part.Chunks) == 0); head == nil {
					if !next() {
						return
					}
					continue
				}
				part.Chunks, room = append(part.Chunks, head), room-proto.Size(head)-framing
			}
		}
		yield(part, pieceBytes-room)
	}
}

// divide returns the head of a chunk that fits into the room of a part, and the rest;
// either may be nil. It divides a chunk only if the part has nothing else in it: first
// its content, then its ranges.
func divide(c *searchv1.ChunkMatch, room int, alone bool) (head, rest *searchv1.ChunkMatch) {
	if proto.Size(c)+framing <= room {
		return c, nil
	}
	if !alone {
		return nil, c
	}
	room -= chunkFrame
	head = &searchv1.ChunkMatch{
		ContentStart: c.ContentStart, FileName: c.FileName, Continued: c.Continued, CutBefore: c.CutBefore, CutAfter: c.CutAfter, CutRanges: c.CutRanges,
	}
	rest = &searchv1.ChunkMatch{Continued: true}
	n := min(len(c.Content), max(room, leastRoom))
	head.Content, rest.Content = c.Content[:n:n], c.Content[n:]
	n = min(len(c.Ranges), max(room-n, 0)/rangeBytes)
	if n == 0 && len(head.Content) == 0 {
		n = 1
	}
	head.Ranges, rest.Ranges = c.Ranges[:n:n], c.Ranges[n:]
	if len(rest.Content)+len(rest.Ranges) == 0 {
		rest = nil
	}
	return head, rest
}

// errParts is the error of a stream whose parts do not follow each other.
var errParts = errors.New("a part of a file does not follow the one before")

// JoinFile appends a continued part of a file to the parts before it. It changes f, and
// shares memory with part.
func JoinFile(f, part *searchv1.FileMatch) error {
	for _, c := range part.Chunks {
		if !c.Continued {
			f.Chunks = append(f.Chunks, c)
			continue
		}
		if len(f.Chunks) == 0 {
			return errParts
		}
		last := f.Chunks[len(f.Chunks)-1]
		last.Content, last.Ranges = append(last.Content, c.Content...), append(last.Ranges, c.Ranges...)
	}
	return nil
}

// entryParts divides a repo with very many skipped files.
func entryParts(e *searchv1.RepoEntry) iter.Seq2[*searchv1.RepoEntry, int] {
	return func(yield func(*searchv1.RepoEntry, int) bool) {
		if size := proto.Size(e) + framing; size <= pieceBytes {
			yield(e, size)
			return
		}
		part := withoutSkipped(e)
		room := pieceBytes - proto.Size(part) - framing
		for _, f := range e.SkippedFiles {
			n := proto.Size(f) + framing
			if room < n && len(part.SkippedFiles) > 0 {
				if !yield(part, pieceBytes-room) {
					return
				}
				part = &searchv1.RepoEntry{Name: e.Name}
				room = pieceBytes - proto.Size(part) - framing
			}
			part.SkippedFiles, room = append(part.SkippedFiles, f), room-n
		}
		yield(part, pieceBytes-room)
	}
}
