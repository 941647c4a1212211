package regex

import "regexp/syntax"

// kind is what empty-width operators distinguish in the rune next to a place.
type kind uint8

const (
	other   kind = iota
	word         // ASCII letter, digit or underscore
	newline      // \n
	edge         // no rune: an end of the text
	kinds
)

const (
	lineLooks = syntax.EmptyBeginLine | syntax.EmptyEndLine
	textLooks = syntax.EmptyBeginText | syntax.EmptyEndText
	wordLooks = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
)

// sight maps kinds to those that a program distinguishes. The fewer they are,
// the fewer states the program has.
type sight [kinds]kind

func newSight(looks syntax.EmptyOp) sight {
	s := sight{other, word, newline, edge}
	if looks&wordLooks == 0 {
		s[word] = other
	}
	if looks&lineLooks == 0 {
		s[newline] = other
	}
	if looks&textLooks == 0 {
		s[edge] = s[newline] // the text's end also ends its last line
	}
	return s
}

func byteKind(b byte) kind {
	switch {
	case b == '\n':
		return newline
	case syntax.IsWordChar(rune(b)):
		return word
	}
	return other
}

// before returns the kind of the rune before a place, after that of the rune at
// it.
func (s *sight) before(text []byte, at int) kind {
	if at == 0 {
		return s[edge]
	}
	return s[byteKind(text[at-1])]
}

func (s *sight) after(text []byte, at int) kind {
	if at == len(text) {
		return s[edge]
	}
	return s[byteKind(text[at])]
}

// looks returns the empty-width operators that hold between two runes.
func looks(before, after kind) syntax.EmptyOp {
	holds := syntax.EmptyNoWordBoundary
	if (before == word) != (after == word) {
		holds = syntax.EmptyWordBoundary
	}
	switch before {
	case edge:
		holds |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	case newline:
		holds |= syntax.EmptyBeginLine
	}
	switch after {
	case edge:
		holds |= syntax.EmptyEndText | syntax.EmptyEndLine
	case newline:
		holds |= syntax.EmptyEndLine
	}
	return holds
}
