package shard

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// blobs iterates over candidate blobs in ascending order. A candidate may turn
// out not to match, but every match is a candidate.
type blobs interface {
	// seek returns the first candidate at or after from. Callers pass ascending
	// numbers.
	seek(from uint32) (blob uint32, ok bool, err error)
}

// everyBlob has all blobs below its value as candidates.
type everyBlob uint32

func (n everyBlob) seek(from uint32) (uint32, bool, error) { return from, from < uint32(n), nil }

// blobList has the listed blobs, which ascend, as candidates.
type blobList struct{ rest []uint32 }

func (l *blobList) seek(from uint32) (uint32, bool, error) {
	i, _ := slices.BinarySearch(l.rest, from)
	l.rest = l.rest[i:]
	if len(l.rest) == 0 {
		return 0, false, nil
	}
	return l.rest[0], true, nil
}

// allOf has the common candidates of its parts, rarest first.
type allOf []blobs

func (a allOf) seek(from uint32) (uint32, bool, error) {
	agreed := 0
	for i := 0; agreed < len(a); i = (i + 1) % len(a) {
		b, ok, err := a[i].seek(from)
		if !ok || err != nil {
			return 0, false, err
		}
		if b > from {
			from, agreed = b, 0
		}
		agreed++
	}
	return from, true, nil
}

// anyOf has the candidates of each of its parts.
type anyOf []blobs

func (a anyOf) seek(from uint32) (best uint32, found bool, err error) {
	for _, part := range a {
		b, ok, err := part.seek(from)
		if err != nil {
			return 0, false, err
		}
		if ok && (!found || b < best) {
			best, found = b, true
		}
	}
	return best, found, nil
}

// literalBlobs has as candidates the blobs with a superblock in which a literal
// may have its anchor. It shares its cursor with the verification of those
// blobs: both only move forward.
type literalBlobs struct {
	content *docstore.Content
	cand    places
	maxLen  int // the longest text in bytes that matches the literal

	started bool
	done    bool
	at      uint32 // superblock of the cursor
	blocks  uint8  // its candidate blocks
}

func (l *literalBlobs) seek(from uint32) (uint32, bool, error) {
	if from >= l.content.Blobs() {
		return 0, false, nil
	}
	first, err := l.content.FirstSuperblock(from)
	if err != nil {
		return 0, false, err
	}
	if !l.seekSuperblock(first) {
		return 0, false, l.cand.Err()
	}
	blob, err := l.content.BlobOf(l.at)
	return blob, err == nil, err
}

// seekSuperblock moves the cursor to the first candidate at or after sb.
func (l *literalBlobs) seekSuperblock(sb uint32) bool {
	if l.done || l.started && l.at >= sb {
		return !l.done
	}
	l.started = true
	var ok bool
	l.at, l.blocks, ok = l.cand.SeekGE(sb)
	l.done = !ok
	return ok
}
