package query

import (
	"slices"
	"strings"
)

type tokenKind uint8

const (
	tokenNone  tokenKind = iota // the end, a newline, or empty quotes: nothing that could be searched
	tokenText                   // also regex:
	tokenOpen                   // a parenthesis that opens a group
	tokenClose                  // a parenthesis that closes a group
	tokenMinus
	tokenOr
	tokenArchived
	tokenBranch
	tokenCase
	tokenContent
	tokenFile
	tokenFork
	tokenLang
	tokenMeta
	tokenPublic
	tokenRepo
	tokenSym
	tokenType
	tokenRef
	tokenSymKind
	tokenMatch
	tokenPath
	tokenRev
	tokenNear
	tokenCount
	tokenTimeout
	tokenSelect
)

type field struct {
	prefix string
	kind   tokenKind
}

// fields are the prefixes that make a token a field. None begins another.
var fields = []field{
	{"archived:", tokenArchived},
	{"b:", tokenBranch},
	{"branch:", tokenBranch},
	{"c:", tokenContent},
	{"case:", tokenCase},
	{"content:", tokenContent},
	{"f:", tokenFile},
	{"file:", tokenFile},
	{"fork:", tokenFork},
	{"lang:", tokenLang},
	{"meta.", tokenMeta},
	{"public:", tokenPublic},
	{"r:", tokenRepo},
	{"regex:", tokenText},
	{"repo:", tokenRepo},
	{"sym:", tokenSym},
	{"t:", tokenType},
	{"type:", tokenType},
}

// ownFields are fields with those that syntax version 2 adds.
var ownFields = append(slices.Clone(fields), []field{
	{"count:", tokenCount},
	{"match:", tokenMatch},
	{"near:", tokenNear},
	{"path:", tokenPath},
	{"ref:", tokenRef},
	{"rev:", tokenRev},
	{"select:", tokenSelect},
	{"sym.kind:", tokenSymKind},
	{"timeout:", tokenTimeout},
}...)

// token is a piece of the query. Its text is what remains of the input without
// field prefix and quotes; at holds the input position of each byte of it, and
// one more for its end.
type token struct {
	kind       tokenKind
	field      string // prefix as written, empty for bare text
	text       []byte
	at         []int
	start, end int // in the input
}

// cut drops the first n bytes of the text.
func (t *token) cut(n int) { t.text, t.at = t.text[n:], t.at[n:] }

// scanner reads one token. The rules are zoekt's: parentheses within a token
// belong to it as long as they balance. So a space decides whether a leading
// parenthesis opens a group or belongs to a regular expression.
type scanner struct {
	in     string
	fields []field
	pos    int
	token  token
	open   int  // unquoted parentheses open in this token
	space  bool // ended by a separator while some were open
	done   bool // the token is complete although input remains
}

// scan reads the token that begins at pos, which is not a separator.
func scan(in string, fields []field, pos int) (token, error) {
	if pos < len(in) && in[pos] == '-' {
		return token{kind: tokenMinus, start: pos, end: pos + 1}, nil
	}
	s := scanner{in: in, fields: fields, pos: pos, token: token{start: pos}}
	for !s.atEnd() {
		if err := s.step(); err != nil {
			return token{}, err
		}
	}
	s.token.end = s.pos
	s.token.at = append(s.token.at, s.pos)
	s.classify()
	return s.token, nil
}

func (s *scanner) atEnd() bool {
	if s.done || s.pos == len(s.in) {
		return true
	}
	switch s.in[s.pos] {
	case ' ', '\t', '\n':
		s.space = s.open > 0
		return true
	case ')':
		return s.open == 0 && len(s.token.text) > 0
	}
	return false
}

func (s *scanner) step() error {
	switch s.in[s.pos] {
	case '"':
		return s.quoted()
	case '\\':
		if s.pos+1 == len(s.in) {
			return &SyntaxError{s.pos, `a \ at the end`, `a character after it; write \\ to search for one \`}
		}
		s.take(2)
	case '(':
		s.open++
		s.take(1)
	case ')':
		s.done = s.open == 0 // no text before it, so it is a token of its own
		s.open--
		s.take(1)
	default:
		s.take(1)
	}
	return nil
}

// take moves n bytes of the input to the text of the token.
func (s *scanner) take(n int) {
	for range n {
		s.token.text = append(s.token.text, s.in[s.pos])
		s.token.at = append(s.token.at, s.pos)
		s.pos++
	}
}

// quoted reads up to the closing quote. A backslash there only protects the
// next character and is dropped.
func (s *scanner) quoted() error {
	opening := s.pos
	s.pos++
	for s.pos < len(s.in) && s.in[s.pos] != '"' {
		if s.in[s.pos] == '\\' && s.pos+1 < len(s.in) {
			s.pos++
		}
		s.take(1)
	}
	if s.pos == len(s.in) {
		return &SyntaxError{opening, "a quote that is never closed", `a closing "; write \" to search for a quote`}
	}
	s.pos++
	return nil
}

// classify decides what the token is. As in zoekt, it looks at the text, not at
// the input: a single parenthesis counts even if it was quoted, and so does one
// at the start of a token with an open space.
func (s *scanner) classify() {
	t := &s.token
	input := s.in[t.start:t.end]
	switch {
	case len(t.text) == 0:
		t.kind = tokenNone
		return
	case s.space && t.text[0] == '(':
		t.kind, t.end = tokenOpen, t.start+1
		return
	case string(t.text) == "(":
		t.kind = tokenOpen
		return
	case string(t.text) == ")":
		t.kind = tokenClose
		return
	case input == "or":
		t.kind = tokenOr
		return
	}
	t.kind = tokenText
	for _, f := range s.fields {
		if strings.HasPrefix(input, f.prefix) {
			t.kind, t.field = f.kind, f.prefix
			t.cut(len(f.prefix))
			return
		}
	}
}
