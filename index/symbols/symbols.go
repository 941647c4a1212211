// Package symbols finds where source code defines names: functions, types, constants and the like,
// in the most common languages. It reads tokens, not grammar: it skips comments and strings, and a
// table for each family of languages says which tokens announce a name. Text that is not code, or
// is incomplete, yields fewer names but never an error.
//
// Finding takes time linear in the text, and memory for the nesting of brackets only.
package symbols

import (
	"bytes"
	"slices"
	"strings"
)

// Version of the finder. Every change of its results increases it: an index has what the finder of
// its time found.
const Version = 2

// Kind of a symbol.
type Kind uint8

// Kinds of symbols.
const (
	Function Kind = 1 + iota
	Method
	Type
	Constant
	Macro
	Field
	Variable
	Module
)

var kindNames = [...]string{"", "function", "method", "type", "constant", "macro", "field", "variable", "module"}

// String returns the kind's name, such as "function".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// KindOf returns the kind with a name; ok is false if there is none.
func KindOf(name string) (Kind, bool) {
	i := slices.Index(kindNames[1:], name)
	return Kind(i + 1), i >= 0
}

// Kinds returns the names of all kinds.
func Kinds() []string { return slices.Clone(kindNames[1:]) }

// KindSet is a set of kinds. The zero value stands for all of them.
type KindSet uint16

// Add adds a kind.
func (s *KindSet) Add(k Kind) { *s |= 1 << k }

// Has reports whether a kind is in the set.
func (s KindSet) Has(k Kind) bool { return s == 0 || s>>k&1 != 0 }

// String returns the names of the kinds, separated by commas; empty for all kinds.
func (s KindSet) String() string {
	var names []string
	for k, name := range kindNames {
		if s>>k&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// Span is the bytes [Start, End) of a text.
type Span struct{ Start, End uint32 }

// Symbol is a name that is defined in a text.
type Symbol struct {
	// Span is the name. Every word in it, in the sense of package words, is complete.
	Span
	Kind Kind
	// Scope is the name of the innermost symbol that contains the definition; empty if there is
	// none or it is unknown.
	Scope Span
	// Until is where the definition ends, such as after its closing brace; 0 if it has no body or
	// the end is unknown.
	Until uint32
}

// Language has the rules of a language. It is immutable.
type Language struct {
	name  string
	lexis *lexis
	find  func(*finder)
	words *keywords
	flags flags
}

// For returns the rules for a language by its linguist name; nil if there are none.
func For(language string) *Language { return languages[language] }

// Append appends the symbols of a text, ordered by the places of their names, which do not overlap.
// A nil Language has no symbols. It is safe for concurrent use.
func (l *Language) Append(dst []Symbol, text []byte) []Symbol {
	if l == nil {
		return dst
	}
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') >= 0 {
		text = bytes.ReplaceAll(text, []byte{'\r'}, []byte{'\n'}) // as an old Macintosh ends lines, and as most compilers take them
	}
	f := finder{lexer: lexer{lexis: l.lexis, text: text}, lang: l, found: dst, begin: len(dst)}
	l.find(&f)
	return f.settle()
}

// finder is the search of one text.
type finder struct {
	lexer
	lang   *Language
	found  []Symbol
	begin  int // index in found of this text's first symbol
	frames []frame
	popped frame  // closed last
	last   string // name found last, for languages in which a function has several equations
}

// frame is an open pair of braces.
type frame struct {
	name Span // of what the frame belongs to
	kind frameKind
	// symbol is the index in found, from 1, of the symbol whose body the frame is; 0 if there is
	// none.
	symbol int
	// typedef says that the name of a typedef may follow the frame.
	typedef bool
	// indent is the indentation of the line that opens the frame, for languages in which
	// indentation shows nesting.
	indent uint32
}

type frameKind uint8

// Kinds of frames.
const (
	topFrame    frameKind = iota // a file or a namespace
	typeFrame                    // members
	enumFrame                    // constants, then members
	bodyFrame                    // code of a function
	otherFrame                   // values, or anything else
	objectFrame                  // an object literal
)

// maxFrames bounds the nesting of braces whose kind is remembered. Deeper ones count as the
// deepest.
const maxFrames = 200

// add adds a symbol.
func (f *finder) add(kind Kind, name Span) {
	if name.End <= name.Start {
		return
	}
	text := f.text
	if isWordByte(text[name.Start]) && name.Start > 0 && isWordByte(text[name.Start-1]) ||
		isWordByte(text[name.End-1]) && int(name.End) < len(text) && isWordByte(text[name.End]) {
		return
	}
	f.found = append(f.found, Symbol{Span: name, Kind: kind, Scope: f.scope()})
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// afterWord returns the end of the ASCII word at at, and afterBlanks that of the blanks.
func afterWord(text []byte, at int) int {
	for at < len(text) && isWordByte(text[at]) {
		at++
	}
	return at
}

func afterBlanks(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	return at
}

// scope returns the name of the innermost frame that has one.
func (f *finder) scope() Span {
	for _, open := range slices.Backward(f.frames) {
		if open.name.End > 0 {
			return open.name
		}
	}
	return Span{}
}

// settle sorts the symbols found and drops those that overlap others.
func (f *finder) settle() []Symbol {
	for _, open := range f.frames {
		f.ends(open.symbol, len(f.text))
	}
	own := f.found[f.begin:]
	ascending := func(a, b Symbol) int { return int(int64(a.Start) - int64(b.Start)) }
	if !slices.IsSortedFunc(own, ascending) {
		slices.SortStableFunc(own, ascending)
	}
	kept := own[:0]
	for _, s := range own {
		if n := len(kept); n > 0 && s.Start < kept[n-1].End {
			continue
		}
		kept = append(kept, s)
	}
	return f.found[:f.begin+len(kept)]
}

// named adds a symbol whose name is the next token, if that is a word.
func (f *finder) named(kind Kind) {
	if f.next() == tokenWord {
		f.add(kind, f.token())
	}
}

// action returns what the token, a word, announces.
func (f *finder) action() action { return f.lang.words.action(f.word()) }

// token returns the span of the token.
func (f *finder) token() Span { return Span{uint32(f.start), uint32(f.pos)} }

// push opens a frame.
func (f *finder) push(kind frameKind, name Span) {
	if len(f.frames) < maxFrames {
		f.frames = append(f.frames, frame{name: name, kind: kind, symbol: f.symbolOf(name)})
	} else {
		f.balanced('{')
	}
}

// pop closes the innermost frame.
func (f *finder) pop() {
	f.popped = frame{}
	if n := len(f.frames); n > 0 {
		f.popped = f.frames[n-1]
		f.frames = f.frames[:n-1]
		f.ends(f.popped.symbol, f.pos)
	}
}

// lastSymbols is the most symbols, such as parameters, between the name of a function and its body.
const lastSymbols = 32

// symbolOf returns the index in found, from 1, of a recent symbol with a name; 0 if there is none.
func (f *finder) symbolOf(name Span) int {
	if name.End == 0 {
		return 0
	}
	for i := len(f.found); i > max(f.begin, len(f.found)-lastSymbols); i-- {
		if f.found[i-1].Span == name {
			return i
		}
	}
	return 0
}

// ends records where the body of a symbol ends.
func (f *finder) ends(symbol, at int) {
	if symbol > 0 {
		f.found[symbol-1].Until = uint32(at)
	}
}

// in returns the kind of the innermost frame.
func (f *finder) in() frameKind {
	if n := len(f.frames); n > 0 {
		return f.frames[n-1].kind
	}
	return topFrame
}
