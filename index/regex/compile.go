package regex

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Compile makes the standard library's engine for the expression: it finds the
// leftmost match, and of several there the first in the order of the
// alternatives. It is the reference for every other engine.
func Compile(tree *syntax.Regexp, caseSensitive bool) (*regexp.Regexp, error) {
	source := Source(tree, caseSensitive)
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("compiling %q: %w", source, err)
	}
	return re, nil
}

// Source writes the expression so that it has the same meaning under the flags
// of regexp.Compile. Every part carries its own flags, so the text is longer
// than the tree's String but does not depend on context. It has no captures.
// Without case, a class of all but some runes excludes also what those runes
// fold to: [^a] excludes A.
func Source(tree *syntax.Regexp, caseSensitive bool) string {
	var b strings.Builder
	write(&b, tree, !caseSensitive)
	return b.String()
}

// fixed are the operators with only one spelling.
var fixed = map[syntax.Op]string{
	syntax.OpNoMatch:        `[^\x00-\x{10FFFF}]`,
	syntax.OpEmptyMatch:     `(?:)`,
	syntax.OpAnyCharNotNL:   `(?-s:.)`,
	syntax.OpAnyChar:        `(?s:.)`,
	syntax.OpBeginLine:      `(?m:^)`,
	syntax.OpEndLine:        `(?m:$)`,
	syntax.OpBeginText:      `\A`,
	syntax.OpEndText:        `\z`,
	syntax.OpWordBoundary:   `\b`,
	syntax.OpNoWordBoundary: `\B`,
}

func write(b *strings.Builder, tree *syntax.Regexp, fold bool) {
	if s, ok := fixed[tree.Op]; ok {
		b.WriteString(s)
		return
	}
	open := "(?:"
	if fold || tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase != 0 {
		open = "(?i:"
	}
	switch tree.Op {
	case syntax.OpLiteral:
		b.WriteString(open)
		for _, r := range tree.Rune {
			writeRune(b, r)
		}
		b.WriteString(")")
	case syntax.OpCharClass:
		writeClass(b, tree.Rune, fold)
	case syntax.OpConcat:
		writeAll(b, tree.Sub, "", fold)
	case syntax.OpAlternate:
		writeAll(b, tree.Sub, "|", fold)
	default:
		writeAll(b, tree.Sub, "", fold)
		b.WriteString(repetition(tree))
	}
}

func writeAll(b *strings.Builder, subs []*syntax.Regexp, separator string, fold bool) {
	b.WriteString("(?:")
	for i, sub := range subs {
		if i > 0 {
			b.WriteString(separator)
		}
		write(b, sub, fold)
	}
	b.WriteString(")")
}

// writeRune writes letters as they are, which is faster to parse.
func writeRune(b *strings.Builder, r rune) {
	if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r >= utf8.RuneSelf && unicode.IsLetter(r) {
		b.WriteRune(r)
		return
	}
	b.WriteString(`\x{`)
	b.WriteString(strconv.FormatInt(int64(r), 16))
	b.WriteByte('}')
}

// writeClass writes a class with its case already folded: under (?i) the
// standard library folds a range rune by rune, which takes 10 ms for a wide
// one.
func writeClass(b *strings.Builder, ranges []rune, fold bool) {
	if len(ranges) == 0 {
		b.WriteString(fixed[syntax.OpNoMatch])
		return
	}
	if fold {
		ranges = foldClass(ranges)
	}
	b.WriteByte('[')
	for i := 0; i+1 < len(ranges); i += 2 {
		writeRune(b, ranges[i])
		if ranges[i] < ranges[i+1] {
			b.WriteByte('-')
			writeRune(b, ranges[i+1])
		}
	}
	b.WriteByte(']')
}

// repetition returns the suffix of a repetition's operand; for a capture it is
// empty.
func repetition(tree *syntax.Regexp) string {
	s := ""
	switch tree.Op {
	case syntax.OpStar:
		s = "*"
	case syntax.OpPlus:
		s = "+"
	case syntax.OpQuest:
		s = "?"
	case syntax.OpRepeat:
		s = "{" + strconv.Itoa(tree.Min) + "," + strconv.Itoa(tree.Max) + "}"
		if tree.Max < 0 {
			s = "{" + strconv.Itoa(tree.Min) + ",}"
		}
	}
	if s != "" && tree.Flags&syntax.NonGreedy != 0 {
		s += "?"
	}
	return s
}
