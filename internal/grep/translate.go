package grep

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// dialect is a pattern in the syntax of Go, with the case of its literals.
type dialect struct {
	source            string
	literal, capitals bool // it has a literal; it has a capital one
}

// translate turns a pattern in ripgrep's syntax into one of Go's: \w, \d and \s are of Unicode.
// What Go would read as something else is refused.
func translate(pattern string) (dialect, error) {
	if !utf8.ValidString(pattern) {
		return dialect{}, fmt.Errorf("pattern %q is not UTF-8", pattern)
	}
	t := translator{rest: pattern}
	for t.rest != "" && t.err == nil {
		t.one()
	}
	if t.err != nil {
		return dialect{}, fmt.Errorf("pattern %q: %w", pattern, t.err)
	}
	t.source = t.out.String()
	return t.dialect, nil
}

type translator struct {
	dialect
	rest    string
	out     strings.Builder
	inClass bool
	atStart bool // at the start of a class, where ] is a literal
	err     error
}

// take copies n bytes to the output.
func (t *translator) take(n int) {
	t.out.WriteString(t.rest[:n])
	t.rest = t.rest[n:]
}

// one translates what comes next.
func (t *translator) one() {
	atStart := t.atStart
	t.atStart = false
	switch {
	case t.rest[0] == '\\':
		t.escape()
	case t.inClass:
		t.inside(atStart)
	case t.rest[0] == '[':
		t.inClass, t.atStart = true, true
		t.take(1)
		if strings.HasPrefix(t.rest, "^") {
			t.take(1)
		}
	case strings.HasPrefix(t.rest, "(?"):
		t.take(max(strings.IndexAny(t.rest, ":)>"), 0) + 1) // flags and names are no literals
	case strings.IndexByte("()|*+?^$.{}", t.rest[0]) >= 0:
		t.take(1)
	default:
		t.literalRune()
	}
}

// inside translates the next item of a class.
func (t *translator) inside(atStart bool) {
	switch {
	case t.rest[0] == ']' && !atStart:
		t.inClass = false
		t.take(1)
	case strings.HasPrefix(t.rest, "[:"):
		end := strings.Index(t.rest, ":]")
		if end < 0 {
			t.err = errors.New("[: without :]")
			return
		}
		t.take(end + 2)
	case t.rest[0] == '[', strings.HasPrefix(t.rest, "&&"), strings.HasPrefix(t.rest, "~~"),
		strings.HasPrefix(t.rest, "--") && !atStart:
		t.err = errors.New(`a class within a class, and its operators && -- ~~, are not supported; write \[ for the character`)
	case t.rest[0] == '-':
		t.take(1)
	default:
		t.literalRune()
	}
}

func (t *translator) literalRune() {
	r, size := utf8.DecodeRuneInString(t.rest)
	t.sawLiteral(r)
	t.take(size)
}

func (t *translator) sawLiteral(r rune) {
	t.literal = true
	t.capitals = t.capitals || unicode.IsUpper(r)
}

// escape translates a backslash sequence.
func (t *translator) escape() {
	if len(t.rest) < 2 {
		t.err = errors.New(`it ends in a backslash; write \\ for the character`)
		return
	}
	switch c := t.rest[1]; c {
	case 'd', 's', 'w', 'D', 'S', 'W':
		t.perlClass(c)
	case 'A', 'z':
		t.err = fmt.Errorf(`\%c is not supported: lines are searched, whose ends are ^ and $`, c)
	case 'Q', 'E', 'C':
		t.err = fmt.Errorf(`unrecognized escape sequence \%c`, c)
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		t.err = errors.New("backreferences are not supported")
	case '<', '>':
		if !t.inClass { // GNU's and newer ripgrep's end of a word
			t.err = fmt.Errorf(`\%c is not supported: write \b for the end of a word, or %c for the character`, c, c)
		}
		t.sawLiteral(rune(c))
		t.take(2)
	case 'p', 'P':
		t.take(2)
		if strings.HasPrefix(t.rest, "{") {
			if end := strings.IndexByte(t.rest, '}'); end > 0 {
				t.take(end + 1)
			}
			return
		}
		_, size := utf8.DecodeRuneInString(t.rest)
		t.take(size)
	case 'b', 'B':
		t.take(2)
	case 'x':
		t.number()
	default:
		r, size := utf8.DecodeRuneInString(t.rest[1:])
		t.sawLiteral(r)
		t.take(1 + size)
	}
}

// number takes the \x41 or \x{41} that comes next.
func (t *translator) number() {
	size, digits := min(4, len(t.rest)), t.rest[2:min(4, len(t.rest))]
	if strings.HasPrefix(digits, "{") {
		end := max(strings.IndexByte(t.rest, '}'), 3)
		size, digits = min(end+1, len(t.rest)), t.rest[3:min(end, len(t.rest))]
	}
	if n, err := strconv.ParseUint(digits, 16, 21); err == nil {
		t.sawLiteral(rune(n))
	}
	t.take(size)
}

// perlClass writes the class of Unicode that \d, \s or \w stands for.
func (t *translator) perlClass(c byte) {
	t.rest = t.rest[2:]
	class := classes()[c|0x20]
	negated := c < 'a'
	text := class.itself
	if negated {
		text = class.others
	}
	if !t.inClass {
		text = "[" + text + "]"
	}
	t.out.WriteString(text)
}

// class is a class of Unicode in the form for brackets, and the class of all other runes.
type class struct{ itself, others string }

// classes are what \d, \s and \w mean in Unicode, as its Technical Standard 18 defines them.
var classes = sync.OnceValue(func() map[byte]class {
	joiners := &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x200C, Hi: 0x200D, Stride: 1}}}
	return map[byte]class{
		'd': newClass(unicode.Nd),
		's': newClass(unicode.White_Space),
		'w': newClass(unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc, joiners),
	}
})

func newClass(tables ...*unicode.RangeTable) class {
	var ranges [][2]rune
	for _, t := range tables {
		for _, r := range t.R16 {
			ranges = appendRanges(ranges, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			ranges = appendRanges(ranges, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	slices.SortFunc(ranges, func(a, b [2]rune) int { return cmp.Compare(a[0], b[0]) })
	var itself, others strings.Builder
	next := rune(0) // the first after those written
	for i := 0; i < len(ranges); {
		from, to := ranges[i][0], ranges[i][1]
		for i++; i < len(ranges) && ranges[i][0] <= to+1; i++ {
			to = max(to, ranges[i][1])
		}
		writeRange(&itself, from, to)
		writeRange(&others, next, from-1)
		next = to + 1
	}
	writeRange(&others, next, unicode.MaxRune)
	return class{itself: itself.String(), others: others.String()}
}

func appendRanges(ranges [][2]rune, lo, hi, stride rune) [][2]rune {
	if stride == 1 {
		return append(ranges, [2]rune{lo, hi})
	}
	for r := lo; r <= hi; r += stride {
		ranges = append(ranges, [2]rune{r, r})
	}
	return ranges
}

func writeRange(b *strings.Builder, from, to rune) {
	if from <= to {
		fmt.Fprintf(b, `\x{%x}-\x{%x}`, from, to)
	}
}
