package zoektjson

import (
	"encoding/base64"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// room is what is left of the bytes that an answer may have. What it takes is counted by
// an upper bound of its JSON, which is quicker to have than the JSON.
type room struct {
	left int64
	// files counts those left out for want of room. Matches is set when matches of the
	// first file were: then it alone is larger than an answer may be.
	files   int
	matches bool
}

// Upper bounds of what JSON has beside texts, bytes and the numbers of ranges: names of
// fields, punctuation and other numbers. TestRoomIsEnough holds them against the encoder.
const (
	resultFrame    = 2 << 10
	uncoveredFrame = 256
	listFrame      = 4 << 10
	fileFrame      = 384
	lineFrame      = 288
	fragmentFrame  = len(`{"LineOffset":,"Offset":,"MatchLength":,"SymbolInfo":null},`)
	chunkFrame     = 288
	rangeFrame     = len(`{"Start":{"ByteOffset":,"LineNumber":,"Column":},"End":{"ByteOffset":,"LineNumber":,"Column":}},`)
	repoFrame      = 1536
	branchFrame    = 64
)

// newRoom is the room for the files of a result whose account is made.
func newRoom(limit uint64, result *searchResult) *room {
	frame := int64(resultFrame)
	for _, u := range result.Trawl.Uncovered {
		frame += uncoveredFrame + textSize(u.Message)
		for _, repo := range u.Repos {
			frame += textSize(repo)
		}
	}
	return &room{left: int64(limit) - frame}
}

// take takes room for a file. Of the first one, matches are left out until it fits.
func (r *room) take(f *fileMatch, first bool) bool {
	size := bareSize(f)
	for i := range f.LineMatches {
		size += lineSize(&f.LineMatches[i])
	}
	for i := range f.ChunkMatches {
		size += chunkSize(&f.ChunkMatches[i])
	}
	if size > r.left {
		bare := bareSize(f)
		if !first || bare > r.left {
			return false
		}
		r.matches = true
		r.left -= bare
		f.LineMatches = fitting(r, f.LineMatches, lineSize, r.shortenLine)
		f.ChunkMatches = fitting(r, f.ChunkMatches, chunkSize, r.shortenChunk)
		return true
	}
	r.left -= size
	return true
}

// bareSize is the size of a file without its matches.
func bareSize(f *fileMatch) int64 {
	size := fileFrame + textSize(f.FileName) + textSize(f.Repository) + textSize(f.Debug) + base64Size(len(f.TrawlPath)) +
		textSize(f.Version) + textSize(f.Language) + base64Size(len(f.Checksum))
	for _, b := range f.Branches {
		size += textSize(b)
	}
	return size
}

// fitting takes room for the first of the parts. One that there is no room for is
// shortened, if it can be, and is then the last.
func fitting[T any](r *room, parts []T, size func(*T) int64, shorten func(*T) bool) []T {
	for i := range parts {
		if n := size(&parts[i]); n <= r.left {
			r.left -= n
			continue
		}
		if shorten != nil && shorten(&parts[i]) {
			i++
		}
		r.left = 0
		return parts[:i]
	}
	return parts
}

// shortenLine leaves out fragments of a line; false if there is no room for any.
func (r *room) shortenLine(m *lineMatch) bool {
	r.left -= bareLineSize(m)
	m.LineFragments = fitting(r, m.LineFragments, fragmentSize, nil)
	return len(m.LineFragments) > 0
}

// shortenChunk leaves out ranges of a chunk; false if there is no room for any.
func (r *room) shortenChunk(m *chunkMatch) bool {
	r.left -= bareChunkSize(m)
	m.Ranges = fitting(r, m.Ranges, rangeSize, nil)
	return len(m.Ranges) > 0
}

func lineSize(m *lineMatch) int64 {
	size := bareLineSize(m)
	for i := range m.LineFragments {
		size += fragmentSize(&m.LineFragments[i])
	}
	return size
}

func bareLineSize(m *lineMatch) int64 {
	return lineFrame + base64Size(len(m.Line)) + base64Size(len(m.Before)) + base64Size(len(m.After))
}

func fragmentSize(f *lineFragment) int64 {
	return int64(fragmentFrame + digits(uint64(f.LineOffset)) + digits(uint64(f.Offset)) + digits(uint64(f.MatchLength)))
}

func chunkSize(m *chunkMatch) int64 {
	size := bareChunkSize(m)
	for i := range m.Ranges {
		size += rangeSize(&m.Ranges[i])
	}
	return size
}

func bareChunkSize(m *chunkMatch) int64 { return chunkFrame + base64Size(len(m.Content)) }

func rangeSize(r *textRange) int64 { return int64(rangeFrame) + placeSize(r.Start) + placeSize(r.End) }

func placeSize(l location) int64 {
	return int64(digits(uint64(l.ByteOffset)) + digits(uint64(l.LineNumber)) + digits(uint64(l.Column)))
}

func digits(n uint64) int {
	count := 1
	for ; n >= 10; n /= 10 {
		count++
	}
	return count
}

// takeRepo takes room for a repo of a list.
func (r *room) takeRepo(e *searchv1.RepoEntry) bool {
	size := repoFrame + textSize(e.Name) + textSize(e.Url)
	for _, b := range e.Branches {
		size += branchFrame + textSize(b.Name) + textSize(b.Commit)
	}
	if size > r.left {
		r.left = 0 // or else a list would have gaps
		return false
	}
	r.left -= size
	return true
}

// textSize is the most that a text has as JSON: six bytes for one that is escaped.
func textSize(s string) int64 {
	size := int64(3)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c >= 0x80 {
			size += 6
		} else {
			size++
		}
	}
	return size
}

// base64Size is what bytes have in JSON.
func base64Size(n int) int64 { return int64(base64.StdEncoding.EncodedLen(n)) + 3 }
