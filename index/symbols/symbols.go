// Package symbols finds where names are defined in source code: functions, types, constants
// and the like, in the languages that are used most. It reads tokens, not grammar: comments and
// strings are passed, and a table for each family of languages says which tokens announce a
// name. Text that is no code, or not complete, gives fewer names, never an error.
//
// Finding takes time linear in the text, and memory for the nesting of brackets only.
package symbols

import (
	"slices"
	"strings"
)

// Version of the finder. It grows with each change of what is found in some text: an index has
// what the finder of its time found.
const Version = 1

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

// String is the kind's name, such as "function".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// KindOf is the kind of a name, false if it is none.
func KindOf(name string) (Kind, bool) {
	i := slices.Index(kindNames[1:], name)
	return Kind(i + 1), i >= 0
}

// Kinds are the names of all kinds.
func Kinds() []string { return slices.Clone(kindNames[1:]) }

// KindSet is a set of kinds. The zero value stands for all of them.
type KindSet uint16

// Add adds a kind.
func (s *KindSet) Add(k Kind) { *s |= 1 << k }

// Has reports whether a kind is in the set.
func (s KindSet) Has(k Kind) bool { return s == 0 || s>>k&1 != 0 }

// String is the names of the kinds, with commas between them; empty for all.
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
	// Span is the name. No word, as package words has it, is in it in part.
	Span
	Kind Kind
	// Scope is the name of the innermost symbol that the definition is within, empty if there
	// is none or it is not known.
	Scope Span
	// Until is where the definition ends, such as behind its closing brace; 0 if it has no body
	// or that is not known.
	Until uint32
}

// Language is the rules of a language. It is immutable.
type Language struct {
	name  string
	lexis *lexis
	find  func(*finder)
	words *keywords
	flags flags
}

// For returns the rules for a language by its linguist name, nil if there are none.
func For(language string) *Language { return languages[language] }

// Append appends the symbols of a text in the order of their names' places; the names do not
// overlap. Of a nil Language there are none. It is safe for concurrent use.
func (l *Language) Append(dst []Symbol, text []byte) []Symbol {
	if l == nil {
		return dst
	}
	f := finder{lexer: lexer{lexis: l.lexis, text: text}, lang: l, found: dst, begin: len(dst)}
	l.find(&f)
	return f.settle()
}

// finder is one search of a text.
type finder struct {
	lexer
	lang   *Language
	found  []Symbol
	begin  int // of this text's in found
	frames []frame
	popped frame  // that was closed last
	last   string // the name that was found last, where a function has several equations
}

// frame is a pair of braces that is open.
type frame struct {
	name Span // of what it is of
	kind frameKind
	// symbol is the place in found of what it is the body of, from 1; 0: of nothing that was found.
	symbol int
	// typedef says that the name of a typedef may follow it.
	typedef bool
	// indent is how far the line is indented that opens it, where indentation says what is within.
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

// maxFrames bounds the braces whose kind is remembered; those within count as the last.
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

// scope is the name of the innermost frame that has one.
func (f *finder) scope() Span {
	for _, open := range slices.Backward(f.frames) {
		if open.name.End > 0 {
			return open.name
		}
	}
	return Span{}
}

// settle sorts what was found, and leaves out what overlaps.
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

// token is the place of the token.
func (f *finder) token() Span { return Span{uint32(f.start), uint32(f.pos)} }

// push opens a frame.
func (f *finder) push(kind frameKind, name Span) {
	if len(f.frames) < maxFrames {
		f.frames = append(f.frames, frame{name: name, kind: kind, symbol: f.symbolOf(name)})
	} else {
		f.balanced('{', '}')
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

// lastSymbols is how many symbols a body may follow the name of its own: parameters, for instance.
const lastSymbols = 32

// symbolOf returns the place in found of the symbol with a name, from 1; 0: it was not found lately.
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

// ends says where the body of a symbol ends.
func (f *finder) ends(symbol, at int) {
	if symbol > 0 {
		f.found[symbol-1].Until = uint32(at)
	}
}

// in is the kind of the innermost frame.
func (f *finder) in() frameKind {
	if n := len(f.frames); n > 0 {
		return f.frames[n-1].kind
	}
	return topFrame
}
