package searchapi

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// The approximate heap bytes of messages without their text, by their structs and the
// size classes of Go's allocator. Ranges count most: one of 24 bytes in a message
// takes 192 in memory.
const (
	fileMemory  = 320
	chunkMemory = 200
	rangeMemory = 192
	entryMemory = 256
	partMemory  = 96
)

// FileMemory is the approximate size of the file in memory, in bytes.
func FileMemory(f *searchv1.FileMatch) int64 {
	size := fileMemory + len(f.Repo) + len(f.Path) + len(f.Blob) + len(f.Commit) + len(f.Language) + len(f.Explanation)
	for _, b := range f.Branches {
		size += 16 + len(b)
	}
	for _, c := range f.Chunks {
		size += chunkMemory + len(c.Content) + rangeMemory*len(c.Ranges)
	}
	for _, s := range f.Symbols {
		size += partMemory + len(s.Name) + len(s.Scope)
	}
	for _, w := range f.MissingWords {
		size += 16 + len(w)
	}
	return int64(size)
}

// EntryMemory is the approximate size of the repo in memory, in bytes.
func EntryMemory(e *searchv1.RepoEntry) int64 {
	size := entryMemory + len(e.Name) + len(e.Url)
	for _, b := range e.Branches {
		size += partMemory + len(b.Name) + len(b.Commit)
	}
	for _, l := range e.Languages {
		size += partMemory + len(l.Language)
	}
	for _, f := range e.SkippedFiles {
		size += partMemory + len(f.Path)
	}
	return int64(size)
}

// Fitting returns how many of the first messages a repeated field can hold in room bytes.
func Fitting[T proto.Message](messages []T, room int) int {
	for i, m := range messages {
		if room -= inField(proto.Size(m)); room < 0 {
			return i
		}
	}
	return len(messages)
}

// FittingFiles returns what Fitting does, faster where all files fit easily.
func FittingFiles(files []*searchv1.FileMatch, room int) int {
	left := room
	for _, f := range files {
		if left -= sizeBound(f); left < 0 {
			return Fitting(files, room)
		}
	}
	return len(files)
}

// sizeBound returns an upper bound of a file's size as a field of a message. It does not
// measure each range: a file may have a hundred times as many ranges as chunks.
func sizeBound(f *searchv1.FileMatch) int {
	size := fileFrame + len(f.Repo) + len(f.Path) + len(f.Blob) + len(f.Commit) + len(f.Language) + len(f.Explanation)
	for _, b := range f.Branches {
		size += framing + len(b)
	}
	for _, c := range f.Chunks {
		size += chunkFrame + len(c.Content) + rangeBytes*len(c.Ranges)
	}
	for _, s := range f.Symbols {
		size += symbolFrame + len(s.Name) + len(s.Scope)
	}
	for _, w := range f.MissingWords {
		size += framing + len(w)
	}
	return size
}

// inField is the size that a message of a given size takes as a field of another.
func inField(size int) int { return 1 + protowire.SizeBytes(size) }

// CutFile leaves out matches of a file, from the end, until the file fits into room
// bytes of a message or no matches are left. It marks the file as cut if it leaves
// out any. It leaves out whole lines, unless a line does not fit because of its many
// ranges: then the first of these stay.
func CutFile(f *searchv1.FileMatch, room int) {
	cutSymbols(f, room/symbolShare)
	size := proto.Size(f)
	for inField(size) > room && len(f.Chunks) > 0 {
		f.Cut = true
		last := f.Chunks[len(f.Chunks)-1]
		without := size - inField(proto.Size(last))
		if cutChunk(last, room-without-2*framing) {
			return
		}
		f.Chunks, size = f.Chunks[:len(f.Chunks)-1], without
	}
}

// symbolShare divides the room of a cut file: its symbols may take one part.
const symbolShare = 4

// cutSymbols keeps as many symbols of a file as there is room for, and removes the others from
// its ranges.
func cutSymbols(f *searchv1.FileMatch, room int) {
	if inField(proto.Size(f)) <= symbolShare*room {
		return
	}
	kept := Fitting(f.Symbols, room)
	if kept == len(f.Symbols) {
		return
	}
	f.Symbols = f.Symbols[:kept]
	for _, c := range f.Chunks {
		for _, r := range c.Ranges {
			if int(r.Symbol) > kept {
				r.Symbol, r.Definition = 0, false
			}
		}
	}
}

// cutChunk keeps as many ranges of the chunk as there is room for; false if not even one.
func cutChunk(c *searchv1.ChunkMatch, room int) bool {
	bare := proto.Size(&searchv1.ChunkMatch{Content: c.Content, ContentStart: c.ContentStart, FileName: c.FileName})
	kept := Fitting(c.Ranges, room-bare)
	if kept == 0 {
		return false
	}
	c.Ranges = c.Ranges[:kept]
	return true
}

// CutEntry leaves out skipped files of a repo until the repo fits into room bytes of
// a message.
func CutEntry(e *searchv1.RepoEntry, room int) {
	if inField(proto.Size(e)) > room {
		bare := proto.Size(withoutSkipped(e)) + 2*framing
		e.SkippedFiles = e.SkippedFiles[:Fitting(e.SkippedFiles, room-bare)]
	}
}

// TrimCoverage is the coverage with as many of the uncovered shards as fit into room bytes.
// It counts those that it leaves out, and returns c itself if there are none.
func TrimCoverage(c *searchv1.Coverage, room int) *searchv1.Coverage {
	if proto.Size(c) <= room {
		return c
	}
	trimmed := &searchv1.Coverage{
		Complete: c.Complete, Requested: c.Requested, Searched: c.Searched, Pruned: c.Pruned, Failed: c.Failed, NotReached: c.NotReached,
		InPart: c.InPart, UncoveredLeftOut: c.UncoveredLeftOut + uint64(len(c.Uncovered)),
	}
	kept := Fitting(c.Uncovered, room-proto.Size(trimmed))
	trimmed.Uncovered = slices.Clip(c.Uncovered[:kept])
	trimmed.UncoveredLeftOut -= uint64(kept)
	return trimmed
}
