// Package rank scores documents by how well they match.
//
// The tiers are zoekt's (its index/score.go and the constants its page explains): a
// match of the file's base name outweighs a match of a whole word in the
// content, which outweighs a part of a word. Within a tier, documents that
// match more of the query's atoms and match them more often come first. How often
// counts up to Enough only: scores have a maximum that documents reach, so that a
// search for the best can end before it has seen them all (see Ceiling).
// Scores depend on the document and the query alone, never on the shard, so
// that scores from different shards compare.
package rank

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/trawl-search/trawl/index/ngram"
)

// Quality is how well one match sits in its text.
type Quality uint8

// Qualities, from worst to best.
const (
	None Quality = iota
	// Inside a word.
	Inside
	// Partial is at the start or the end of a word.
	Partial
	// Word is one whole word, or several.
	Word
)

// Of returns the quality of the match text[start:end].
func Of(text []byte, start, end int) Quality {
	head := start == 0 || !isWord(text[start-1]) || !isWord(text[start])
	tail := end == len(text) || !isWord(text[end]) || !isWord(text[end-1])
	switch {
	case head && tail:
		return Word
	case head || tail:
		return Partial
	}
	return Inside
}

// isWord reports whether b belongs to a word, as \b in an expression sees it: bytes that
// are not ASCII do not.
func isWord(b byte) bool { return ngram.IsWord(b) }

// Name is how well a match sits in a path.
type Name uint8

// Places of a match in a path, from worst to best.
const (
	NoName Name = iota
	// Directory is any match not wholly in the base name.
	Directory
	// BaseInside lies within a word of the base name.
	BaseInside
	// BasePartial starts or ends a word of the base name.
	BasePartial
	// Base is the whole base name, with or without its extension.
	Base
)

// OfName returns the place of the match path[start:end].
func OfName(path []byte, start, end int) Name {
	base := bytes.LastIndexByte(path, '/') + 1
	if start < base {
		return Directory
	}
	stem := len(path)
	if dot := bytes.LastIndexByte(path[base:], '.'); dot > 0 {
		stem = base + dot
	}
	if start == base && (end == len(path) || end == stem) {
		return Base
	}
	if Of(path, start, end) == Inside {
		return BaseInside
	}
	return BasePartial
}

// Document is what a score is made from.
type Document struct {
	// Content is the best quality of a match in the content.
	Content Quality
	// Name is the best place of a match in the path.
	Name Name
	// Matched of Atoms atoms of the query have a range in the document.
	Matched, Atoms int
	// Matches counts ranges.
	Matches int
	// LowPriority says that the path is that of a test, of generated or of
	// vendored code; see LowPriority.
	LowPriority bool
}

var (
	contentScore = [...]float64{None: 0, Inside: 5, Partial: 50, Word: 500}
	nameScore    = [...]float64{NoName: 0, Directory: 50, BaseInside: 400, BasePartial: 4000, Base: 7000}
)

const (
	atomScore      = 400 // for a document in which every atom has a range
	frequencyScore = 100 // for a document with Enough matches
	lowPriority    = 0.5
)

// Enough is how many matches are as good as any number of them. A document that
// says a word eight times is about it; more say how long the document is.
const Enough = 8

// Score returns the document's score: at least 0, higher is better.
func (d Document) Score() float64 {
	s := contentScore[d.Content] + nameScore[d.Name] + d.atoms() + d.frequency()
	if d.LowPriority {
		s *= lowPriority
	}
	return s
}

func (d Document) atoms() float64 {
	return atomScore * float64(d.Matched) / float64(max(d.Atoms, 1))
}

func (d Document) frequency() float64 {
	return frequencyScore * float64(min(d.Matches, Enough)) / Enough
}

// Ceiling is the highest score of a document with that name: no other Document
// with it, with matches in its content only if content says so, is above it, and
// some reach it.
func Ceiling(content bool, name Name, lowPriority bool) float64 {
	d := Document{Name: name, LowPriority: lowPriority}
	if content {
		d.Content = Word
	}
	if content || name > NoName {
		d.Matched, d.Atoms, d.Matches = 1, 1, Enough
	}
	return d.Score()
}

// Explain returns the parts of Score in words.
func (d Document) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "content %g + name %g + atoms %d/%d %.2f + %d matches %.2f",
		contentScore[d.Content], nameScore[d.Name], d.Matched, d.Atoms, d.atoms(), d.Matches, d.frequency())
	if d.LowPriority {
		fmt.Fprintf(&b, ", halved for a test, generated or vendored file")
	}
	return b.String()
}

// lowPriorityDirs and lowPriorityMarks name what people seldom look for first.
var (
	lowPriorityDirs  = [][]byte{[]byte("vendor/"), []byte("node_modules/"), []byte("third_party/"), []byte("testdata/"), []byte("test/"), []byte("tests/")}
	lowPriorityMarks = [][]byte{[]byte("_test."), []byte(".test."), []byte(".min."), []byte(".pb."), []byte("_generated."), []byte("zz_generated")}
)

// LowFolder returns the length of a folder in path, with its slash, in which all files are of
// low priority: 0 if there is none.
func LowFolder(path []byte) int {
	for _, d := range lowPriorityDirs {
		if i := bytes.Index(path, d); i == 0 || i > 0 && path[i-1] == '/' {
			return i + len(d)
		}
	}
	return 0
}

// LowPriority reports whether the path is that of a test, of generated or of vendored code.
func LowPriority(path []byte) bool {
	if LowFolder(path) > 0 {
		return true
	}
	base := path[bytes.LastIndexByte(path, '/')+1:]
	for _, m := range lowPriorityMarks {
		if bytes.Contains(base, m) {
			return true
		}
	}
	return false
}
