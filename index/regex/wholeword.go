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

// wholeWords finds the whole words among the matches of another matcher.
type wholeWords struct {
	all Matcher
	// first matches at the start of a text up to the end of a word, next after the start's rune.
	first, next *regexp.Regexp
}

func newWholeWords(memory *Memory, tree *syntax.Regexp, caseSensitive bool) (m *wholeWords, err error) {
	m = new(wholeWords)
	if inner, ok := betweenBoundaries(tree); ok {
		tree = inner
	}
	if m.all, err = NewMatcherIn(memory, tree, caseSensitive); err != nil {
		return nil, err
	}
	source := "(" + Source(tree, caseSensitive) + `)(?:[^` + wordClass + `]|\z)`
	if m.first, err = regexp.Compile(`\A` + source); err != nil {
		return nil, fmt.Errorf("compiling %q for whole words: %w", source, err)
	}
	if m.next, err = regexp.Compile(`\A(?s:.)` + source); err != nil {
		return nil, fmt.Errorf("compiling %q for whole words: %w", source, err)
	}
	return m, nil
}

// betweenBoundaries returns the literal that an expression finds at word boundaries of ASCII, which whole
// words have anyway if it begins and ends with a word character.
func betweenBoundaries(tree *syntax.Regexp) (inner *syntax.Regexp, ok bool) {
	if tree.Op != syntax.OpConcat || len(tree.Sub) != 3 || tree.Sub[0].Op != syntax.OpWordBoundary || tree.Sub[2].Op != syntax.OpWordBoundary {
		return nil, false
	}
	inner = tree.Sub[1]
	return inner, inner.Op == syntax.OpLiteral && inWord(inner.Rune[0]) && inWord(inner.Rune[len(inner.Rune)-1])
}

// Find implements Matcher.
func (m *wholeWords) Find(text []byte, from int) (start, end int, ok bool) {
	return m.findWhile(text, from, nil)
}

func (m *wholeWords) findWhile(text []byte, from int, goOn func() bool) (start, end int, ok bool) {
	for pause := from + lookEvery; from <= len(text); from = following(text, start, start) {
		if goOn != nil && from > pause {
			if !goOn() {
				break
			}
			pause = from + lookEvery
		}
		if start, end, ok = FindWhile(m.all, text, from, goOn); !ok {
			break
		}
		if before, _ := utf8.DecodeLastRune(text[:start]); inWord(before) {
			continue
		}
		if after, _ := utf8.DecodeRune(text[end:]); !inWord(after) {
			return start, end, true
		}
		if goOn != nil && !goOn() {
			break
		}
		if end, ok = m.otherEnd(text, start); ok {
			return start, end, true
		}
	}
	return 0, 0, false
}

// otherEnd looks for a less preferred match at start that ends with a word, among those of up to lookEvery bytes.
func (m *wholeWords) otherEnd(text []byte, start int) (end int, ok bool) {
	re, base := m.first, start
	if start > 0 {
		re, base = m.next, start-1 // one byte is enough, since ^ and \b check only ASCII
	}
	limit := min(len(text), start+lookEvery)
	loc := re.FindSubmatchIndex(text[base:limit])
	if loc == nil {
		return 0, false
	}
	end = base + loc[3]
	return end, end < limit || limit == len(text)
}
