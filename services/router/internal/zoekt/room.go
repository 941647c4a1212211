package zoekt

import (
	"encoding/base64"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// room is the number of bytes left in an answer. It counts an upper bound of the JSON,
// which is cheaper than the JSON itself.
type room struct {
	left int64
	// files counts the files without room. Matches is set if matches of the first file
	// had no room, because it alone exceeds the limit.
	files   int
	matches bool
}

// Upper bounds of field names, punctuation and fixed numbers in JSON. Texts, bytes and the
// numbers of ranges are counted apart. TestRoomIsEnough compares them with the encoder.
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
	symbolFrame    = len(`{"Sym":,"Kind":,"Parent":,"ParentKind":},`)
)

// newRoom is the room for the files of a result that has its account.
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

// take takes room for a file. It removes matches of the first file until that fits.
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

// fitting takes room for as many parts as fit. It shortens the first part that does not
// fit, if possible, and drops the rest.
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

// shortenLine drops fragments of a line. It is false if there is no room for any.
func (r *room) shortenLine(m *lineMatch) bool {
	r.left -= bareLineSize(m)
	m.LineFragments = fitting(r, m.LineFragments, fragmentSize, nil)
	return len(m.LineFragments) > 0
}

// shortenChunk drops ranges of a chunk. It is false if there is no room for any.
func (r *room) shortenChunk(m *chunkMatch) bool {
	r.left -= bareChunkSize(m)
	m.Ranges = fitting(r, m.Ranges, rangeSize, nil)
	m.SymbolInfo = m.SymbolInfo[:min(len(m.SymbolInfo), len(m.Ranges))]
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
	return int64(fragmentFrame+digits(uint64(f.LineOffset))+digits(uint64(f.Offset))+digits(uint64(f.MatchLength))) + symbolSize(f.SymbolInfo)
}

// symbolSize is an upper bound of a symbol in JSON, in addition to null.
func symbolSize(s *symbolInfo) int64 {
	if s == nil {
		return 0
	}
	return int64(symbolFrame) + textSize(s.Sym) + textSize(s.Kind) + textSize(s.Parent) + textSize(s.ParentKind)
}

func chunkSize(m *chunkMatch) int64 {
	size := bareChunkSize(m)
	for i := range m.Ranges {
		size += rangeSize(&m.Ranges[i])
	}
	return size
}

// bareChunkSize is the size of a chunk without its ranges. All symbols count: they are few and short.
func bareChunkSize(m *chunkMatch) int64 {
	size := chunkFrame + base64Size(len(m.Content))
	for _, s := range m.SymbolInfo {
		size += int64(len("null,")) + symbolSize(s)
	}
	return size
}

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

// takeRepo takes room for a repo of a list, and for the links to it.
func (r *room) takeRepo(e *searchv1.RepoEntry, to repoLinks) bool {
	size := repoFrame + to.size(e.Name) + textSize(e.Name) + textSize(e.Url)
	for _, b := range e.Branches {
		size += branchFrame + textSize(b.Name) + textSize(b.Commit)
	}
	if size > r.left {
		r.left = 0 // a list has no gaps
		return false
	}
	r.left -= size
	return true
}

// textSize is an upper bound of a text in JSON: an escaped byte takes six.
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

// base64Size is the size of bytes in JSON.
func base64Size(n int) int64 { return int64(base64.StdEncoding.EncodedLen(n)) + 3 }
