package query

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote writes an expression, or a text, as a quoted value of the query language.
func Quote(expression string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(expression) + `"`
}

// UnquotedOffset is the place in an expression of what is at offset in Quote(expression), counted after the opening quote. An escaped
// character is at both its bytes.
func UnquotedOffset(expression string, offset int) int {
	for i := range len(expression) {
		if offset--; expression[i] == '\\' || expression[i] == '"' {
			offset--
		}
		if offset < 0 {
			return i
		}
	}
	return len(expression)
}

// Literal returns the expression that a name alone matches. In place of a byte that is not UTF-8 it takes any such byte.
func Literal(name string) string {
	var b strings.Builder
	for i, r := range name {
		if _, n := utf8.DecodeRuneInString(name[i:]); r == utf8.RuneError && n == 1 {
			b.WriteString(`\x{FFFD}`)
			continue
		}
		b.WriteString(regexp.QuoteMeta(string(r)))
	}
	return b.String()
}

// RepoGlob returns the case-insensitive regular expression of a glob of repo names, for the field
// repo:. The syntax is that of PathGlob.
func RepoGlob(glob string) string { return `(?i:^` + globBody(glob) + `$)` }

// PathGlob returns the regular expression of a glob of paths, for the field file:. In a glob * stands
// for any characters except /, ** for any characters, ? for one character except /, [a-z] and [!a-z] or [^a-z]
// for one in or not in a class but never /, {a,b} for either text, and \ for the character after it. A glob without / matches
// base names in every folder. One that begins with / begins at the root, and one that ends in / matches all files
// below a folder.
func PathGlob(glob string) string {
	if strings.HasSuffix(glob, "/") {
		glob += "**"
	}
	return globStart(glob) + `$`
}

// ExcludedGlob returns the regular expression of the paths that a glob leaves out. As in ripgrep and .gitignore, all that
// is below a folder of such a name is left out, too, and a / at the end says no more than that it is a folder.
func ExcludedGlob(glob string) string {
	if folder, ok := strings.CutSuffix(glob, "/"); ok {
		return globStart(folder) + `/`
	}
	return globStart(glob) + `(?:/|$)`
}

// globStart is the expression of a glob up to its end: with a / in it, the glob begins at the root.
func globStart(glob string) string {
	if !strings.Contains(glob, "/") {
		return `(?:^|/)` + globBody(glob)
	}
	return `^` + globBody(strings.TrimPrefix(glob, "/"))
}

// globBody translates *, ?, **, {a,b}, [a-z] and \.
func globBody(glob string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case strings.HasPrefix(glob[i:], "**/"):
			b.WriteString(`(?:[^\n]*/)?`)
			i += 2
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(`[^\n]*`)
			i++
		case c == '*':
			b.WriteString(`[^/]*`)
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '{' && strings.Contains(glob[i:], "}"):
			b.WriteString(`(?:`)
			depth++
		case c == '}' && depth > 0:
			b.WriteByte(')')
			depth--
		case c == ',' && depth > 0:
			b.WriteByte('|')
		case c == '[' && classEnd(glob[i:]) > 0:
			end := classEnd(glob[i:])
			b.WriteString(class(glob[i+1 : i+end]))
			i += end
		case c == '\\' && i+1 < len(glob):
			i++
			fallthrough
		default:
			_, n := utf8.DecodeRuneInString(glob[i:])
			b.WriteString(regexp.QuoteMeta(glob[i : i+n]))
			i += n - 1
		}
	}
	b.WriteString(strings.Repeat(")", depth))
	return b.String()
}

// CheckGlob says what is wrong with a glob that is not in UTF-8, that has a class which cannot be, such as [z-a], or that PathGlob
// takes for a plain text and whose author did not mean one: a class or a list of texts without an end.
func CheckGlob(glob string) error {
	if !utf8.ValidString(glob) {
		return fmt.Errorf("the glob %q is not in UTF-8", glob)
	}
	lists := 0
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '[':
			end := classEnd(glob[i:])
			if end == 0 {
				return fmt.Errorf("the glob %q has a [ without its ]: [[] stands for the character", glob)
			}
			if _, _, err := classTree(glob[i+1 : i+end]); err != nil {
				return fmt.Errorf("the glob %q has the class %s, which cannot be: a range goes from the lesser character to the greater", glob, glob[i:i+end+1])
			}
			i += end
		case '{':
			lists++
		case '}':
			lists = max(lists-1, 0)
		}
	}
	if lists > 0 {
		return fmt.Errorf("the glob %q has a { without its }: [{] stands for the character", glob)
	}
	return nil
}

// classEnd returns the index of the ] that ends a class, or 0. A ] that comes first is in the class.
func classEnd(glob string) int {
	first := 1
	if strings.HasPrefix(glob, "[!") || strings.HasPrefix(glob, "[^") {
		first = 2
	}
	if first < len(glob) {
		if end := strings.IndexByte(glob[first+1:], ']'); end >= 0 {
			return first + 1 + end
		}
	}
	return 0
}

// class returns the expression for the inside of a class. As in .gitignore, no class has the / that ends the name of a folder.
func class(inside string) string {
	text, tree, err := classTree(inside)
	if err != nil {
		return text // compiling it will report the error
	}
	ranges, without := rangesOf(tree), []rune(nil)
	for i := 0; i+1 < len(ranges); i += 2 {
		if from, to := ranges[i], ranges[i+1]; from <= '/' && '/' <= to {
			without = appendRange(appendRange(without, from, '/'-1), '/'+1, to)
		} else {
			without = append(without, from, to)
		}
	}
	return (&syntax.Regexp{Op: syntax.OpCharClass, Rune: without}).String()
}

// classTree returns the class of an expression for the inside of one, as a text and parsed.
func classTree(inside string) (text string, tree *syntax.Regexp, err error) {
	not := ""
	if inside[0] == '!' || inside[0] == '^' {
		not, inside = "^", inside[1:]
	}
	text = "[" + not + strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(inside) + "]"
	tree, err = syntax.Parse(text, syntax.Perl|syntax.ClassNL)
	return text, tree, err
}

// rangesOf returns the runes of a class, however it was simplified.
func rangesOf(class *syntax.Regexp) []rune {
	switch class.Op {
	case syntax.OpLiteral: // of one rune, or of its cases: [aA] is the same as (?i:A)
		first := class.Rune[0]
		ranges := []rune{first, first}
		if class.Flags&syntax.FoldCase == 0 {
			return ranges
		}
		for r := unicode.SimpleFold(first); r != first; r = unicode.SimpleFold(r) {
			ranges = append(ranges, r, r)
		}
		return ranges
	case syntax.OpAnyChar:
		return []rune{0, utf8.MaxRune}
	case syntax.OpAnyCharNotNL:
		return []rune{0, '\n' - 1, '\n' + 1, utf8.MaxRune}
	}
	return class.Rune
}

func appendRange(ranges []rune, from, to rune) []rune {
	if from > to {
		return ranges
	}
	return append(ranges, from, to)
}
