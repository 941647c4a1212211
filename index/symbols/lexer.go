package symbols

import (
	"bytes"
)

// Kinds of tokens. Any other token is a byte of punctuation, which is also its kind.
const (
	tokenEnd     = 0
	tokenWord    = 'w'
	tokenLiteral = 'l' // a string, a rune, a number, a regular expression
)

// lexis describes the comments, strings and words of a language.
type lexis struct {
	line         []string // starts a comment to the end of the line
	open, close  string   // of a block comment
	nested       bool     // block comments nest
	extra        string   // bytes of words in addition to letters, digits and the underscore
	single       bool     // '…' is a string
	rune         bool     // '…' is one rune; a quote alone means nothing
	raw          byte     // starts and ends a string without escapes, over lines
	template     bool     // `…${…}…`
	triple       bool     // """…"""
	tripleSingle bool     // '''…'''
	multiline    bool     // strings may span lines
	verbatim     bool     // @"…" of C#
	rawCpp       bool     // R"x(…)x"
	rawRust      bool     // r#"…"#
	regexps      bool     // /…/
	preprocessor bool     // lines that start with #

	class [256]class
}

type class uint8

// Classes of bytes, by what a byte may start.
const (
	punctuation class = iota
	space
	newline
	wordByte // may continue a word
	digit    // may continue a word
	quote
	comment // a comment or punctuation
)

// ready fills the table of classes.
func (x *lexis) ready() *lexis {
	for c := range x.class {
		switch {
		case c == '\n':
			x.class[c] = newline
		case c <= ' ':
			x.class[c] = space
		case c >= '0' && c <= '9':
			x.class[c] = digit
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
			x.class[c] = wordByte
		case c == '"' || c == '\'' && (x.single || x.rune || x.tripleSingle) || c == '`' && (x.raw == '`' || x.template):
			x.class[c] = quote
		}
	}
	for i := range len(x.extra) {
		x.class[x.extra[i]] = wordByte
	}
	for _, start := range append([]string{x.open}, x.line...) {
		if start != "" {
			x.class[start[0]] = comment
		}
	}
	if x.regexps {
		x.class['/'] = comment
	}
	return x
}

// lexer splits a text into tokens. Comments and white space are not tokens.
type lexer struct {
	*lexis
	text       []byte
	start, pos int  // of the token
	broken     bool // a line break precedes the token
	kind       byte // of the token
	before     byte // kind of the token before
	nesting    int  // of templates
	lineAt     int  // where the line of the token starts
	openEnded  int  // heredocs without an end
}

// maxNesting bounds the nesting of templates in which code is looked at.
const maxNesting = 16

// next moves to the next token and returns its kind.
func (l *lexer) next() byte {
	l.before = l.kind
	l.kind = l.scan()
	return l.kind
}

func (l *lexer) scan() byte {
	l.broken = l.pos == 0
	for l.pos < len(l.text) {
		l.spaces()
		if l.start = l.pos; l.start == len(l.text) {
			break
		}
		c := l.text[l.start]
		switch l.class[c] {
		case wordByte:
			l.pos = l.wordEnd(l.pos + 1)
			if l.prefixed() {
				return tokenLiteral
			}
			return tokenWord
		case digit:
			l.number()
			return tokenLiteral
		case quote:
			if l.quoted(c) {
				return tokenLiteral
			}
			l.pos++
			return c
		case comment:
			if l.comment() {
				continue
			}
			if c == '/' && l.regexps && l.regexp() {
				return tokenLiteral
			}
			l.pos++
			return c
		default:
			l.pos++
			return c
		}
	}
	l.start = l.pos
	return tokenEnd
}

// spaces skips white space.
func (l *lexer) spaces() {
	text, classes, at := l.text, &l.class, l.pos
	for ; at < len(text); at++ {
		class := classes[text[at]]
		if class == newline {
			l.broken, l.lineAt = true, at+1
		} else if class != space {
			break
		}
	}
	l.pos = at
}

func (l *lexer) wordEnd(at int) int {
	text, classes := l.text, &l.class
	for at < len(text) && classes[text[at]]-wordByte <= digit-wordByte {
		at++
	}
	return at
}

// number skips digits and separators between them, including the quotes of C++ and others.
func (l *lexer) number() {
	for l.pos = l.wordEnd(l.pos); l.rune && l.pos+1 < len(l.text) && l.text[l.pos] == '\'' && l.class[l.text[l.pos+1]] == digit; {
		l.pos = l.wordEnd(l.pos + 1)
	}
}

// word returns the bytes of the token.
func (l *lexer) word() []byte { return l.text[l.start:l.pos] }

// peek returns the next byte that is not white space.
func (l *lexer) peek() byte {
	for at := l.pos; at < len(l.text); at++ {
		if l.text[at] > ' ' {
			return l.text[at]
		}
	}
	return 0
}

// comment skips a comment, if one starts here.
func (l *lexer) comment() bool {
	rest := l.text[l.pos:]
	if l.open != "" && hasPrefix(rest, l.open) {
		l.pos = l.blockEnd()
		return true
	}
	for _, start := range l.line {
		if hasPrefix(rest, start) {
			l.pos = lineEnd(l.text, l.pos)
			return true
		}
	}
	return false
}

func hasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}

func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}

// blockEnd returns the end of the block comment that starts here.
func (l *lexer) blockEnd() int {
	if !l.nested {
		return l.after(l.pos+len(l.open), l.close)
	}
	for at, depth := l.pos, 0; at < len(l.text); {
		switch {
		case hasPrefix(l.text[at:], l.open):
			depth++
			at += len(l.open)
		case hasPrefix(l.text[at:], l.close):
			depth--
			at += len(l.close)
			if depth == 0 {
				return at
			}
		default:
			at++
		}
	}
	return len(l.text)
}

// after returns the end of the next occurrence of mark at or after at, or the end of the text.
func (l *lexer) after(at int, mark string) int {
	if at > len(l.text) {
		return len(l.text)
	}
	i := bytes.Index(l.text[at:], []byte(mark))
	if i < 0 {
		return len(l.text)
	}
	return at + i + len(mark)
}

// prefixed skips a raw string whose prefix is the word before it.
func (l *lexer) prefixed() bool {
	if l.pos >= len(l.text) {
		return false
	}
	c := l.text[l.pos]
	if c != '"' && c != '#' {
		return false
	}
	last := l.text[l.pos-1]
	switch {
	case l.rawCpp && c == '"' && last == 'R' && l.pos-l.start <= 3:
		open := bytes.IndexByte(l.text[l.pos:min(l.pos+20, len(l.text))], '(')
		if open < 0 {
			return false
		}
		l.pos = l.after(l.pos, ")"+string(l.text[l.pos+1:l.pos+open])+"\"")
		return true
	case l.rawRust && last == 'r' && l.pos-l.start <= 2:
		hashes := l.pos
		for hashes < len(l.text) && l.text[hashes] == '#' {
			hashes++
		}
		if hashes == len(l.text) || l.text[hashes] != '"' || hashes-l.pos > 16 {
			return false
		}
		l.pos = l.after(hashes+1, "\""+string(l.text[l.pos:hashes]))
		return true
	}
	return false
}

// quoted skips a string or rune that starts with c.
func (l *lexer) quoted(c byte) bool {
	rest := l.text[l.pos:]
	switch {
	case c == '"' && l.triple && hasPrefix(rest, `"""`):
		l.pos = l.tripleEnd(`"""`)
	case c == '\'' && l.tripleSingle && hasPrefix(rest, "'''"):
		l.pos = l.tripleEnd("'''")
	case c == '`' && l.template:
		l.passTemplate()
	case c == l.raw:
		l.pos = l.after(l.pos+1, string(c))
	case c == '\'' && l.rune && !l.single:
		return l.passRune()
	case c == '"' && l.verbatim && l.pos > 0 && (l.text[l.pos-1] == '@' || l.pos > 1 && l.text[l.pos-1] == '$' && l.text[l.pos-2] == '@'):
		for l.pos++; ; l.pos++ {
			if l.pos = l.after(l.pos, `"`); l.pos >= len(l.text) || l.text[l.pos] != '"' {
				break
			}
		}
	default:
		l.pos = l.stringEnd(l.pos+1, c)
	}
	return true
}

// tripleEnd returns the end of a string in triple quotes.
func (l *lexer) tripleEnd(quotes string) int {
	for at := l.pos + 3; at < len(l.text); at++ {
		switch l.text[at] {
		case '\\':
			at++
		case quotes[0]:
			if hasPrefix(l.text[at:], quotes) {
				return at + 3
			}
		}
	}
	return len(l.text)
}

// stringEnd returns the end of a string that c ends. The end of a line ends it too, unless strings
// may span lines. So an apostrophe in text that is not code does not hide what follows.
func (l *lexer) stringEnd(at int, c byte) int {
	for ; at < len(l.text); at++ {
		switch l.text[at] {
		case c:
			return at + 1
		case '\\':
			at++
		case '\n':
			if !l.multiline {
				return at
			}
		}
	}
	return len(l.text)
}

// passRune skips a rune in quotes. For a lifetime it skips nothing.
func (l *lexer) passRune() bool {
	end := min(l.pos+16, len(l.text))
	for at := l.pos + 1; at < end && l.text[at] != '\n'; at++ {
		if l.text[at] == '\\' {
			at++
		} else if l.text[at] == '\'' && at > l.pos+1 {
			if at > l.pos+6 && l.text[l.pos+1] != '\\' {
				return false
			}
			l.pos = at + 1
			return true
		}
	}
	return false
}

// passTemplate skips a template with the code in it.
func (l *lexer) passTemplate() {
	for l.pos++; l.pos < len(l.text); l.pos++ {
		switch l.text[l.pos] {
		case '\\':
			l.pos++
		case '`':
			l.pos++
			return
		case '$':
			if l.nesting < maxNesting && l.pos+1 < len(l.text) && l.text[l.pos+1] == '{' {
				l.pos += 2
				l.passCode()
				l.pos--
			}
		}
	}
	l.pos = min(l.pos, len(l.text))
}

// passCode skips the code of a template up to its closing brace.
func (l *lexer) passCode() {
	start, broken, kind, before := l.start, l.broken, l.kind, l.before
	l.nesting++
	l.balanced('{')
	l.nesting--
	l.start, l.broken, l.kind, l.before = start, broken, kind, before
}

// longestRegexp bounds the search for the end of a regular expression.
const longestRegexp = 1024

// regexp skips a regular expression, if one may start after the token before.
func (l *lexer) regexp() bool {
	switch l.kind {
	case tokenWord, tokenLiteral, ')', ']', '}':
		if l.kind != tokenWord || !l.wordBefore() {
			return false
		}
	}
	class := false
	for at := l.pos + 1; at < min(len(l.text), l.pos+longestRegexp); at++ {
		switch l.text[at] {
		case '\\':
			at++
		case '\n':
			return false
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				l.pos = l.wordEnd(at + 1)
				return true
			}
		}
	}
	return false
}

// wordBefore reports whether the word before is a keyword that an expression may follow.
func (l *lexer) wordBefore() bool {
	end := l.pos
	for end > 0 && l.text[end-1] <= ' ' {
		end--
	}
	start := end
	for start > 0 && l.class[l.text[start-1]] == wordByte {
		start--
	}
	switch string(l.text[start:end]) {
	case "return", "typeof", "case", "in", "of", "do", "else", "void", "delete", "throw", "new", "await", "yield":
		return true
	}
	return false
}

// brackets skips what is in brackets, if an opening one comes next.
func (l *lexer) brackets(opening byte) (there bool) {
	if there = l.peek() == opening; there {
		l.next()
		l.balanced(opening)
	}
	return there
}

// balanced skips everything up to the closing bracket of the one that was the last token.
func (l *lexer) balanced(opening byte) {
	closing := opening + 2 // in ASCII
	if opening == '(' {
		closing = ')'
	}
	for depth := 1; depth > 0; {
		switch l.next() {
		case tokenEnd:
			return
		case opening:
			depth++
		case closing:
			depth--
		}
	}
}
