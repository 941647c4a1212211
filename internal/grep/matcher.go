package grep

import (
	"bytes"
	"iter"
	"unicode/utf8"
)

// matcher finds the matches of a pattern in one text.
type matcher struct {
	*Pattern

	text []byte
	// find is exact in the whole text. Without Multiline it is nil: each line is looked at by itself.
	find func(text []byte, from int) (Match, bool)
}

// Match is a match in a text: text[Start:End].
type Match struct {
	Start, End int
	groups     []int // see thread; that of the match itself is not set
}

func (p *Pattern) in(text []byte) *matcher {
	m := &matcher{Pattern: p, text: text}
	if p.multiline {
		m.find = p.finder(text)
	}
	return m
}

// finder returns what finds the leftmost match in a text from a place on, exactly.
func (p *Pattern) finder(text []byte) func([]byte, int) (Match, bool) {
	sure := p.isSure(text)
	if sure && p.replacement == nil {
		return func(text []byte, from int) (m Match, ok bool) {
			m.Start, m.End, ok = p.loose.Find(text, from)
			return m, ok
		}
	}
	return func(text []byte, from int) (Match, bool) {
		at, _, ok := p.loose.Find(text, from)
		if !ok {
			return Match{}, false
		}
		// What is before a word is part of what the machine looks at.
		return p.machine.find(text, from+lineStart(text[from:], at-from))
	}
}

func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

// next finds the next matching line from the beginning of a line on, text[start:end] without its line break. With Multiline it finds the
// lines of the next match, with matching lines that follow.
func (m *matcher) next(from int) (start, end int, ok bool) {
	if m.multiline {
		return m.nextLines(from)
	}
	for from < len(m.text) {
		at, _, ok := m.loose.Find(m.text, from)
		if !ok || m.isEnd(at) {
			return 0, 0, false
		}
		start, end = lineStart(m.text, at), lineEnd(m.text, at)
		if m.matchesLine(m.text[start:end]) {
			return start, end, true
		}
		from = end + 1
	}
	return 0, 0, false
}

// isEnd reports whether a place is the end of the last line: it begins no other.
func (m *matcher) isEnd(at int) bool { return at == len(m.text) && (at == 0 || m.text[at-1] == '\n') }

func (m *matcher) nextLines(from int) (start, end int, ok bool) {
	for from <= len(m.text) {
		match, found := m.find(m.text, from)
		if !found || m.isEnd(match.Start) {
			break
		}
		if !ok || match.Start > end { // not in the lines so far
			first := lineStart(m.text, match.Start)
			if ok && first > end+1 {
				break
			}
			if !ok {
				start = first
			}
		}
		if last := max(match.Start, match.End-1); !ok || last > end {
			end, ok = lineEnd(m.text, last), true
		}
		from = m.after(match)
	}
	return start, end, ok
}

// after is where the search for the match after one begins.
func (m *matcher) after(match Match) int {
	if match.Start < match.End {
		return match.End
	}
	_, size := utf8.DecodeRune(m.text[match.End:])
	return match.End + max(size, 1)
}

// matchesLine decides about a line that loose found.
func (p *Pattern) matchesLine(line []byte) bool {
	if p.isSure(line) {
		return true
	}
	if isASCII(line) {
		_, _, ok := p.ascii.Find(line, 0)
		return ok
	}
	_, ok := p.machine.find(line, 0)
	return ok
}

// isSure reports whether loose is exact in a text.
func (p *Pattern) isSure(text []byte) bool {
	return !p.unsure && (!p.unsureInvalid || utf8.Valid(text))
}

func isASCII(text []byte) bool {
	for _, b := range text {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// matches are the successive matches in lines that next found, including empty ones, except an empty one where
// another match ends.
func (m *matcher) matches(start, end int) iter.Seq[Match] {
	text, find := m.text, m.find
	if find == nil {
		text, find = m.text[:end], m.finder(m.text[start:end])
	}
	return func(yield func(Match) bool) {
		for from, last := start, -1; from <= end; {
			match, ok := find(text, from)
			if !ok || match.Start > end {
				return
			}
			from = m.after(match)
			if match.Start == match.End && match.End == last {
				continue
			}
			last = match.End
			if !yield(match) {
				return
			}
		}
	}
}

// shown is what is shown of a match: itself, or what replaces it.
func (m *matcher) shown(match Match) []byte {
	if m.replacement == nil {
		return m.text[match.Start:match.End]
	}
	groups := append([]int{match.Start, match.End}, match.groups[min(2, len(match.groups)):]...) // the whole is group 0
	return m.expander.Expand(nil, []byte(*m.replacement), m.text, groups)
}
