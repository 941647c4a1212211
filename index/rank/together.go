package rank

import (
	"bytes"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/literal"
	"github.com/trawl-search/trawl/index/ngram"
)

// Together says how close to each other the words of a query are in a content.
type Together uint8

// From worst to best.
const (
	Scattered Together = iota
	// OneLine has all words in one line, in any order, also as parts of words.
	OneLine
	// InSequence has three or more words in one line as typed: whole words, in order, with one space between them.
	InSequence
)

// LineBytes is how much of a line counts. In longer lines, words meet by chance.
const LineBytes = 512

// LineWord is a word of a query.
type LineWord struct {
	Text          string
	CaseSensitive bool
}

// Line finds the words of a query together in a line. It is immutable and safe for concurrent use.
type Line struct {
	words    []*literal.Finder
	typed    LineWord
	sequence *literal.Finder // the typed text; nil for two words, for which the sequence adds nothing
}

// NewLine returns nil for fewer than two words, or if one of them is not a word.
func NewLine(words []LineWord) *Line {
	if len(words) < 2 {
		return nil
	}
	line, exact := &Line{}, true
	texts := make([]string, 0, len(words))
	for _, w := range words {
		if !ngram.IsWords(w.Text) {
			return nil
		}
		line.words = append(line.words, literal.New(w.Text, w.CaseSensitive))
		texts, exact = append(texts, w.Text), exact && w.CaseSensitive
	}
	// The longest is mostly the rarest: few lines are looked at.
	slices.SortStableFunc(line.words, func(a, b *literal.Finder) int { return b.MaxLen() - a.MaxLen() })
	if len(words) > 2 {
		line.typed = LineWord{strings.Join(texts, " "), exact}
		line.sequence = literal.New(line.typed.Text, exact)
	}
	return line
}

// Typed returns the text of the words in sequence. There is none for two words.
func (l *Line) Typed() (text LineWord, ok bool) { return l.typed, l.sequence != nil }

// Best returns how the words can stand together at best.
func (l *Line) Best() Together {
	if l.sequence == nil {
		return OneLine
	}
	return InSequence
}

// In returns how the words stand together in a part of a content, which is at most LengthUnit bytes from a multiple of that
// on; first says that it is the first part. Each part is judged by itself: a line begins after a newline in it, or at the
// start of the first part, and ends with the part.
func (l *Line) In(part []byte, first bool) (best Together) {
	from := 0
	if !first {
		from = bytes.IndexByte(part, '\n') + 1
		if from == 0 {
			return Scattered
		}
	}
	for best < l.Best() {
		at, _, ok := l.words[0].Find(part, from)
		if !ok {
			break
		}
		start, end := max(from, bytes.LastIndexByte(part[:at], '\n')+1), len(part)
		if n := bytes.IndexByte(part[at:], '\n'); n >= 0 {
			end = at + n
		}
		best = max(best, l.inLine(part, start, min(end, start+LineBytes)))
		if from = end + 1; from >= len(part) {
			break
		}
	}
	return best
}

// inLine is In for the line part[start:end].
func (l *Line) inLine(part []byte, start, end int) Together {
	line := part[:end]
	for _, w := range l.words {
		if _, _, ok := w.Find(line, start); !ok {
			return Scattered
		}
	}
	if l.sequence == nil {
		return OneLine
	}
	for from := start; ; {
		first, last, ok := l.sequence.Find(line, from)
		switch {
		case !ok:
			return OneLine
		case Of(part, first, last) == Word:
			return InSequence
		}
		from = last
	}
}
