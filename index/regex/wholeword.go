package regex

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// WholeWord is the name of the group that asks for whole words: an expression that consists of (?P<word>x) matches where x does and
// no rune of a word is next to the match. A match is the first that ends so at the leftmost place at which one does.
const WholeWord = "word"

// IsWholeWord reports whether an expression matches whole words only.
func IsWholeWord(tree *syntax.Regexp) bool {
	return tree.Op == syntax.OpCapture && tree.Name == WholeWord
}

// Runes of words, as Unicode recommends for regular expressions: letters, marks, digits, connecting punctuation, and what joins or
// circles letters.
const wordClass = `\pL\pM\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}`

func inWord(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return syntax.IsWordChar(r)
	case r == '\u200c', r == '\u200d':
		return true
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic)
}

// wholeWords finds the whole words among the matches of an expression.
type wholeWords struct {
	all Matcher // all matches
	// beside finds the place of a whole word: its match has also the rune before or after the word, unless that is the end of a line.
	beside Matcher
	// first matches a whole word at the start of a text, next one after its first rune.
	first, next *regexp.Regexp
}

func newWholeWords(memory *Memory, tree *syntax.Regexp, caseSensitive bool) (m *wholeWords, err error) {
	m = new(wholeWords)
	if m.all, err = NewMatcherIn(memory, tree, caseSensitive); err != nil {
		return nil, err
	}
	word := "(" + Source(tree, caseSensitive) + ")"
	for re, source := range map[**regexp.Regexp]string{&m.first: `\A` + word + afterWord, &m.next: `\A(?s:.)` + word + afterWord} {
		if *re, err = regexp.Compile(source); err != nil {
			return nil, fmt.Errorf("compiling %q for whole words: %w", source, err)
		}
	}
	beside, err := syntax.Parse("(?:(?m:^)|[^"+wordClass+"])"+word+afterWord, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("parsing an expression for the places of whole words: %w", err)
	}
	m.beside, err = NewMatcherIn(memory, beside, true)
	return m, err
}

const afterWord = "(?:[^" + wordClass + `]|\z)`

// Find implements Matcher.
func (m *wholeWords) Find(text []byte, from int) (start, end int, ok bool) {
	return m.findWhile(text, from, nil)
}

// findWhile takes the first match if it is a whole word, and otherwise looks for the place of one, which reads no text twice.
func (m *wholeWords) findWhile(text []byte, from int, goOn func() bool) (start, end int, ok bool) {
	if start, end, ok = FindWhile(m.all, text, from, goOn); !ok {
		return 0, 0, false
	}
	before, size := utf8.DecodeLastRune(text[:start])
	if after, _ := utf8.DecodeRune(text[end:]); !inWord(before) && !inWord(after) {
		return start, end, true
	}
	from = start
	if !inWord(before) {
		start -= size
	}
	for {
		if start, _, ok = FindWhile(m.beside, text, start, goOn); !ok {
			return 0, 0, false
		}
		word := following(text, start, start)
		for _, at := range [...]int{start, word} {
			if at < from || at > len(text) {
				continue
			}
			if end, ok = m.endOf(text, at); ok {
				return at, end, true
			}
		}
		if start = word; start > len(text) || goOn != nil && !goOn() {
			return 0, 0, false
		}
	}
}

// endOf returns the end of the whole word of up to lookEvery bytes that begins at a place.
func (m *wholeWords) endOf(text []byte, at int) (end int, ok bool) {
	if before, _ := utf8.DecodeLastRune(text[:at]); inWord(before) {
		return 0, false
	}
	re, base := m.first, at
	if at > 0 {
		re, base = m.next, at-1 // one byte is enough, since ^ and \b check only ASCII
	}
	limit := min(len(text), at+lookEvery)
	loc := re.FindSubmatchIndex(text[base:limit])
	if loc == nil {
		return 0, false
	}
	end = base + loc[3]
	return end, end < limit || limit == len(text)
}
