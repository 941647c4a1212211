package grep

import (
	"regexp/syntax"
	"slices"
)

func hasBoundary(tree *syntax.Regexp) bool {
	return tree.Op == syntax.OpWordBoundary || tree.Op == syntax.OpNoWordBoundary || slices.ContainsFunc(tree.Sub, hasBoundary)
}

// mayHold reports whether a match may hold a rune. For Go a byte of invalid UTF-8 is U+FFFD; in ripgrep it matches no class.
func mayHold(tree *syntax.Regexp, r rune) bool {
	switch tree.Op {
	case syntax.OpAnyChar:
		return true
	case syntax.OpAnyCharNotNL:
		return r != '\n'
	case syntax.OpLiteral:
		return slices.Contains(tree.Rune, r)
	case syntax.OpCharClass:
		for i := 0; i+1 < len(tree.Rune); i += 2 {
			if tree.Rune[i] <= r && r <= tree.Rune[i+1] {
				return true
			}
		}
	}
	return slices.ContainsFunc(tree.Sub, func(sub *syntax.Regexp) bool { return mayHold(sub, r) })
}

// loosen returns an expression that matches wherever tree does with Unicode words. It keeps a \b next to a
// part that must be an ASCII word character, since a Unicode boundary there is also an ASCII one. It
// removes the others.
func loosen(tree *syntax.Regexp) *syntax.Regexp {
	switch tree.Op {
	case syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch, Flags: tree.Flags}
	}
	if len(tree.Sub) == 0 {
		return tree
	}
	loose := *tree
	loose.Sub = make([]*syntax.Regexp, len(tree.Sub))
	for i, sub := range tree.Sub {
		if tree.Op == syntax.OpConcat && sub.Op == syntax.OpWordBoundary &&
			(i > 0 && isWordAt(tree.Sub[i-1], true) || i+1 < len(tree.Sub) && isWordAt(tree.Sub[i+1], false)) {
			loose.Sub[i] = &syntax.Regexp{Op: syntax.OpWordBoundary, Flags: sub.Flags}
			continue
		}
		loose.Sub[i] = loosen(sub)
	}
	return &loose
}

// isWordAt reports whether each match of tree begins, or ends, with a word character of ASCII.
func isWordAt(tree *syntax.Regexp, atEnd bool) bool {
	switch tree.Op {
	case syntax.OpLiteral:
		r := tree.Rune[0]
		if atEnd {
			r = tree.Rune[len(tree.Rune)-1]
		}
		return isWordRune(r, tree.Flags&syntax.FoldCase != 0)
	case syntax.OpConcat:
		if atEnd {
			return isWordAt(tree.Sub[len(tree.Sub)-1], atEnd)
		}
		return isWordAt(tree.Sub[0], atEnd)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(tree.Sub, func(sub *syntax.Regexp) bool { return !isWordAt(sub, atEnd) })
	case syntax.OpPlus:
		return isWordAt(tree.Sub[0], atEnd)
	case syntax.OpRepeat:
		return tree.Min > 0 && isWordAt(tree.Sub[0], atEnd)
	}
	return false
}

// isWordRune reports whether r, in any case if fold is set, is a word character of ASCII. The letters k and s
// have another case outside ASCII.
func isWordRune(r rune, fold bool) bool {
	switch {
	case fold && (r == 'k' || r == 'K' || r == 's' || r == 'S'):
		return false
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_':
		return true
	}
	return false
}
