package symbols

import "strings"

// lines finds the definitions of languages in which they start a line: shells, Perl, Lua, Elixir,
// Haskell, R and SQL. A line in a string over several lines may look like a definition, too.
func lines(find func(line)) func(*finder) {
	return func(f *finder) {
		for f.pos < len(f.text) {
			at, end := f.pos, lineEnd(f.text, f.pos)
			start := afterBlanks(f.text, at)
			f.pos = end + 1
			if start < end {
				f.start = start
				find(line{f, start, end, uint32(start - at)})
			}
		}
	}
}

// line is a line without its indentation.
type line struct {
	*finder
	at, end int
	indent  uint32
}

// wordAt returns the word at a place of the line, with the bytes in extra.
func (l line) wordAt(at int, extra string) Span {
	end := at
	for end < l.end && (isWordByte(l.text[end]) || l.text[end] >= 0x80 || contains(extra, l.text[end])) {
		end++
	}
	return Span{uint32(at), uint32(end)}
}

func contains(set string, c byte) bool { return strings.IndexByte(set, c) >= 0 }

// skip returns the next place that is not blank.
func (l line) skip(at int) int { return max(at, min(afterBlanks(l.text, at), l.end)) }

// byteAt returns the byte at a place, 0 after the line.
func (l line) byteAt(at int) byte {
	if at < l.end {
		return l.text[at]
	}
	return 0
}

func (l line) string(s Span) string { return string(l.text[s.Start:s.End]) }

func (l line) shell() {
	const extra = "-.:+@/"
	first := l.wordAt(l.at, extra)
	if int(first.End) < l.end && l.text[l.at] != '#' {
		if i := indexHeredoc(l.text[l.at:l.end]); i >= 0 {
			defer l.heredoc(l.at + i + 2)
		}
	}
	if first.Start == first.End {
		return
	}
	next := l.skip(int(first.End))
	switch {
	case l.byteAt(next) == '(' && l.byteAt(l.skip(next+1)) == ')':
		l.add(Function, first)
	case l.string(first) == "function" && next > int(first.End):
		l.add(Function, l.wordAt(next, extra))
	case l.string(first) == "alias" && next > int(first.End):
		if name := l.wordAt(next, extra); l.byteAt(int(name.End)) == '=' {
			l.add(Function, name)
		}
	}
}

// indexHeredoc returns where a heredoc is announced, or a negative number.
func indexHeredoc(text []byte) int {
	for i := 0; i+2 < len(text); i++ {
		if text[i] == '#' && (i == 0 || text[i-1] <= ' ') {
			return -1
		}
		if text[i] == '<' && text[i+1] == '<' && text[i+2] != '<' && (i == 0 || text[i-1] != '<') {
			return i
		}
	}
	return -1
}

func (l line) perl() {
	switch l.text[l.at] {
	case '=':
		if l.indent == 0 && l.at+1 < l.end && l.text[l.at+1] >= 'a' && l.text[l.at+1] <= 'z' {
			l.pos = l.after(l.at, "\n=cut")
			l.pos = lineEnd(l.text, l.pos)
		}
		return
	case '#', '_':
		if w := l.string(l.wordAt(l.at, "")); w == "__END__" || w == "__DATA__" {
			l.pos = len(l.text)
		}
		return
	}
	first := l.wordAt(l.at, "")
	next := l.skip(int(first.End))
	if i := indexHeredoc(l.text[l.at:l.end]); i >= 0 && contains("\"'~EDHTSAMUXC_", l.text[l.at+i+2]) {
		defer l.heredoc(l.at + i + 2)
	}
	switch l.string(first) {
	case "sub":
		name := l.wordAt(next, "")
		for int(name.End)+2 < l.end && (l.text[name.End] == ':' && l.text[name.End+1] == ':' || l.text[name.End] == '\'') {
			start := int(name.End) + 1
			if l.text[name.End] == ':' {
				start++
			}
			name = l.wordAt(start, "")
		}
		if after := l.skip(int(name.End)); l.byteAt(after) != ';' {
			l.add(Function, name)
		}
	case "package":
		l.add(Module, l.wordAt(next, ":"))
	case "use":
		if name := l.wordAt(next, ""); l.string(name) == "constant" {
			if at := l.skip(int(name.End)); l.byteAt(at) != '{' {
				l.add(Constant, l.wordAt(at, ""))
			} else {
				l.perlConstants(at + 1)
			}
		}
	}
}

// perlConstants handles the names before => up to a closing brace.
func (l line) perlConstants(at int) {
	for n := 0; at < len(l.text) && n < 100_000; n++ {
		c := l.text[at]
		switch {
		case c == '}':
			l.pos = lineEnd(l.text, at)
			return
		case c == '#':
			at = lineEnd(l.text, at)
		case isWordByte(c):
			end := afterWord(l.text, at)
			name := Span{uint32(at), uint32(end)}
			end = afterBlanks(l.text, end)
			if hasPrefix(l.text[end:], "=>") {
				l.add(Constant, name)
				for end < len(l.text) && !contains(",}\n", l.text[end]) {
					end++
				}
			}
			at = end
		default:
			at++
		}
	}
	l.pos = at
}

func (l line) lua() {
	if hasPrefix(l.text[l.at:l.end], "--[[") {
		l.pos = l.after(l.at, "]]")
		return
	}
	first := l.wordAt(l.at, "")
	next := l.skip(int(first.End))
	if l.string(first) == "local" {
		first = l.wordAt(next, "")
		next = l.skip(int(first.End))
	}
	if l.string(first) == "function" {
		name := l.wordAt(next, "")
		for c := l.byteAt(int(name.End)); c == '.' || c == ':'; c = l.byteAt(int(name.End)) {
			name = l.wordAt(int(name.End)+1, "")
		}
		l.add(Function, name)
		return
	}
	name := first
	for c := l.byteAt(int(name.End)); c == '.'; c = l.byteAt(int(name.End)) {
		name = l.wordAt(int(name.End)+1, "")
		next = l.skip(int(name.End))
	}
	if l.byteAt(next) == '=' && l.string(l.wordAt(l.skip(next+1), "")) == "function" {
		l.add(Function, name)
	}
}

func (l line) elixir() {
	if hasPrefix(l.text[l.at:l.end], `@doc """`) || hasPrefix(l.text[l.at:l.end], `@moduledoc """`) || hasPrefix(l.text[l.at:l.end], `"""`) {
		l.pos = l.after(l.after(l.at, `"""`), `"""`)
		return
	}
	at := l.at
	if l.text[at] == '@' {
		at++
	}
	first := l.wordAt(at, "")
	next := l.skip(int(first.End))
	l.dedent(l.indent)
	if next == int(first.End) || !isNameStart(l.byteAt(next)) {
		return
	}
	name := l.wordAt(next, "")
	if c := l.byteAt(int(name.End)); c == '?' || c == '!' {
		name.End++
	}
	switch l.string(first) {
	case "def", "defp", "defdelegate", "defguard", "defguardp", "defcallback", "callback":
		l.add(Function, name)
	case "defmacro", "defmacrop":
		l.add(Macro, name)
	case "type", "typep", "opaque":
		if at > l.at {
			l.add(Type, name)
		}
	case "defmodule", "defprotocol", "defimpl":
		name = l.wordAt(next, ".")
		l.add(Module, name)
		l.within(typeFrame, name, l.indent)
	}
}

func (l line) haskell() {
	if hasPrefix(l.text[l.at:l.end], "{-") {
		l.pos = l.after(l.at, "-}")
		return
	}
	if l.indent > 0 || !isNameStart(l.text[l.at]) {
		return
	}
	first := l.wordAt(l.at, "'")
	next := l.skip(int(first.End))
	switch l.string(first) {
	case "data", "newtype", "type", "class":
		if name := l.haskellType(next); name.End > name.Start {
			l.add(Type, name)
		}
	case "module":
		l.add(Module, l.wordAt(next, "."))
	case "import", "instance", "infixl", "infixr", "infix", "deriving", "default", "foreign", "where":
	default:
		if c := l.text[l.at]; c >= 'A' && c <= 'Z' || l.last == l.string(first) {
			return
		}
		l.last = l.string(first)
		l.add(Function, first)
	}
}

// haskellType returns the name of a type, after a context.
func (l line) haskellType(at int) Span {
	for i := at; i+1 < l.end; i++ {
		if l.text[i] == '=' && l.text[i+1] == '>' {
			at = l.skip(i + 2)
			break
		}
		if l.text[i] == '=' {
			break
		}
	}
	name := l.wordAt(at, "'")
	switch l.string(name) {
	case "instance":
		return Span{}
	case "family":
		return l.wordAt(l.skip(int(name.End)), "'")
	}
	return name
}

func (l line) r() {
	const extra = "."
	name := l.wordAt(l.at, extra)
	next := l.skip(int(name.End))
	switch {
	case name.Start == name.End:
		return
	case hasPrefix(l.text[next:l.end], "<-"):
		next += 2
	case l.byteAt(next) == '=' && l.byteAt(next+1) != '=':
		next++
	default:
		return
	}
	if word := l.wordAt(l.skip(next), ""); l.string(word) == "function" {
		l.add(Function, name)
	} else if l.indent == 0 {
		l.add(Variable, name)
	}
}

func (l line) sql() {
	at := l.at
	create := false
	for range 12 {
		word := l.wordAt(at, "")
		if word.Start == word.End {
			return
		}
		at = l.skip(int(word.End))
		switch strings.ToLower(l.string(word)) {
		case "create":
			create = true
		case "table", "view", "type", "sequence", "domain":
			l.sqlName(at, Type, create)
			return
		case "function", "procedure", "trigger":
			l.sqlName(at, Function, create)
			return
		case "index":
			l.sqlName(at, Variable, create)
			return
		case "or", "replace", "temporary", "temp", "global", "local", "unlogged", "materialized", "unique", "constraint", "definer", "recursive":
		default:
			return
		}
	}
}

// sqlName adds the last part of a name, which may be quoted.
func (l line) sqlName(at int, kind Kind, create bool) {
	if create && at == l.end && l.pos < len(l.text) { // the name is on the next line
		l.end = lineEnd(l.text, l.pos)
		at = l.skip(l.pos)
	}
	for create {
		for at < l.end && contains("`\"[", l.text[at]) {
			at++
		}
		name := l.wordAt(at, "$#")
		at = int(name.End)
		for at < l.end && contains("`\"]", l.text[at]) {
			at++
		}
		if word := strings.ToLower(l.string(name)); word == "if" || word == "not" || word == "exists" || word == "concurrently" || word == "only" {
			at = l.skip(at)
			continue
		}
		if l.byteAt(at) == '.' {
			at++
			continue
		}
		l.add(kind, name)
		return
	}
}
