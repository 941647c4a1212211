package resolve

import (
	"bytes"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/symbols"
	"github.com/trawl-search/trawl/internal/lazyregexp"
)

// useAt reads the text around a name.
func (r *resolver) useAt(name string, at int) use {
	u := use{name: name, at: at}
	text := r.place.Text
	u.of = chainBefore(text, at)
	if len(u.of) > 0 || !r.family.keyed {
		return u
	}
	after := bytes.TrimLeft(text[at+len(name):], " \t")
	if r.family == cfamily { // .name = value
		u.key = at > 0 && text[at-1] == '.' && bytes.HasPrefix(after, []byte("="))
		return u
	}
	if !bytes.HasPrefix(after, []byte(":")) || bytes.HasPrefix(after, []byte(":=")) || bytes.HasPrefix(after, []byte("::")) {
		return u
	}
	before := bytes.TrimRight(text[:at], " \t\r\n")
	if n := len(before); n == 0 || before[n-1] != '{' && before[n-1] != ',' && before[n-1] != '/' && !afterComment(before) {
		return u
	}
	if of, ok := r.braces(at, 0); ok {
		u.key, u.types = true, of
	}
	return u
}

// afterComment reports whether the last line is one with a comment.
func afterComment(text []byte) bool {
	line := text[bytes.LastIndexByte(text, '\n')+1:]
	return bytes.Contains(line, []byte("//"))
}

// farthestBrace is how far before a name the brace of its literal is looked for.
const farthestBrace = 16 << 10

// braces returns the types of what the innermost braces around a place make; ok is false if they make nothing with names.
func (r *resolver) braces(at, outer int) (types []typ, ok bool) {
	text, depth := r.place.Text, 0
	for i := at - 1; i >= max(0, at-farthestBrace); i-- {
		switch text[i] {
		case '}', ')', ']':
			depth++
		case '(', '[':
			if depth--; depth < 0 {
				return nil, false
			}
		case '{':
			if depth--; depth >= 0 {
				continue
			}
			before := bytes.TrimRight(text[:i], " \t\r\n")
			if n := len(before); n > 0 && (before[n-1] == '{' || before[n-1] == ',' || before[n-1] == ':') && outer < 3 { // an element of a literal
				return r.braces(i, outer+1)
			}
			t := typeEnding(before)
			if t == "" {
				return nil, false
			}
			if start := len(before) - len(t); outer == 0 && start > 0 && before[start-1] == ']' && bytes.Contains(before[max(0, start-80):start], []byte("map[")) {
				return nil, false // names are keys of a map
			}
			return []typ{r.typeNamed(t)}, true
		}
	}
	return nil, false
}

var ending = lazyregexp.New(`(?:[A-Za-z_]\w*(?:\.|::))?[A-Za-z_]\w*$`)

// typeEnding is the name at the end of a text, with its package.
func typeEnding(text []byte) string {
	t := string(ending().Find(text[max(0, len(text)-200):]))
	switch t {
	case "else", "do", "try", "return", "struct", "interface", "range", "select", "switch", "if", "for", "func":
		return ""
	}
	return t
}

// typeNamed is the type with a name as the file of the place has it.
func (r *resolver) typeNamed(name string) typ {
	name = strings.ReplaceAll(name, "::", ".")
	pkg, t, qualified := cutLast(name, ".")
	if !qualified {
		if r.family == golang {
			return typ{name: name, dir: elements(r.place.Repo + "/" + dirOf(r.place.Path))}
		}
		return typ{name: name}
	}
	for _, i := range r.importsNamed(pkg) {
		if r.family.byFolder {
			return typ{t, i.elements}
		}
	}
	return typ{name: t}
}

// typeIn is the type with a name as the file of a definition has it.
func (r *resolver) typeIn(d *Definition, name string) typ {
	if d.Repo == r.place.Repo && d.Path == r.place.Path {
		return r.typeNamed(name)
	}
	name = strings.ReplaceAll(name, "::", ".")
	pkg, t, qualified := cutLast(name, ".")
	if r.family != golang {
		return typ{name: t}
	}
	if !qualified {
		return typ{t, elements(d.Repo + "/" + dirOf(d.Path))}
	}
	return typ{t, []string{pkg}}
}

func cutLast(s, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(s, separator); at >= 0 {
		return s[:at], s[at+len(separator):], true
	}
	return "", s, false
}

// chainBefore is the expression before a dot, arrow or colons that end at a place; nil if there is none.
func chainBefore(text []byte, at int) (chain []link) {
	defer func() { slices.Reverse(chain) }()
	for {
		i := skipSpaceBack(text, at)
		switch {
		case i >= 2 && (text[i-2] == '-' && text[i-1] == '>' || text[i-2] == ':' && text[i-1] == ':'):
			i -= 2
		case i >= 1 && text[i-1] == '.' && (i < 2 || text[i-2] != '.'):
			if i--; i > 0 && (text[i-1] == '?' || text[i-1] == '!') {
				i--
			}
		default:
			return chain
		}
		l, start := linkBefore(text, skipSpaceBack(text, i))
		if l.name == "" && !l.call {
			return chain
		}
		chain = append(chain, l)
		if at = start; l.name == "" || l.asserted || len(chain) > 8 {
			return chain
		}
	}
}

// linkBefore is the last part of an expression that ends at a place. Without a name it is an unknown value.
func linkBefore(text []byte, end int) (l link, start int) {
	for end > 0 && (text[end-1] == ')' || text[end-1] == ']' || text[end-1] == '}') {
		open := openBefore(text, end)
		if open < 0 {
			return link{call: true}, 0
		}
		inside := text[open+1 : end-1]
		switch text[end-1] {
		case ')':
			if i := skipSpaceBack(text, open); i > 0 && text[i-1] == '.' { // x.(T)
				return link{name: strings.TrimLeft(string(bytes.TrimSpace(inside)), "*&[]"), asserted: true}, open
			}
			l.call, l.element = true, false
		case ']':
			l.element = !bytes.ContainsRune(inside, ':') || bytes.ContainsRune(inside, '"')
		case '}':
			t := typeEnding(text[:open])
			return link{name: t, asserted: true, call: t == ""}, open - len(t)
		}
		end = open
	}
	start = end
	for start > 0 && isWord(text[start-1]) {
		start--
	}
	if l.name = string(text[start:end]); l.name == "" {
		l.call = true
	}
	return l, start
}

// openBefore is the place of the bracket that the one before end closes; -1 if it is too far.
func openBefore(text []byte, end int) int {
	depth := 0
	for i := end - 1; i >= max(0, end-farthestBrace); i-- {
		switch text[i] {
		case ')', ']', '}':
			depth++
		case '(', '[', '{':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func skipSpaceBack(text []byte, i int) int {
	for i > 0 && (text[i-1] == ' ' || text[i-1] == '\t' || text[i-1] == '\n' || text[i-1] == '\r') {
		i--
	}
	return i
}

// typesOf are the types that the value of an expression may have; none if that is not known.
func (r *resolver) typesOf(chain []link, at, depth int) ([]typ, error) {
	if depth > deepest || r.family.style == noTypes && len(chain) > 1 {
		return nil, nil
	}
	last := chain[len(chain)-1]
	switch {
	case last.asserted:
		return []typ{r.typeNamed(last.name)}, nil
	case last.name == "":
		return nil, nil
	}
	if len(chain) == 1 {
		if slices.Contains(r.family.self, last.name) {
			if scope := r.scopeAt(at); scope != "" {
				return []typ{r.typeNamed(scope)}, nil
			}
			return nil, nil
		}
		if d, ok := r.declaration(last.name, at); ok {
			return r.typesOfDeclaration(d, last, at, depth)
		}
	}
	found, err := r.resolve(use{name: last.name, at: at, of: chain[:len(chain)-1]}, 1, depth)
	if err != nil || len(found) == 0 || !found[0].mayBeMeant() {
		return nil, err
	}
	d := &found[0].Definition
	if d.Kind == symbols.Type {
		return []typ{r.typeIn(d, last.name)}, nil
	}
	t := r.family.style.declared(d, last)
	if t == "" {
		return nil, nil
	}
	return []typ{r.typeIn(d, t)}, nil
}

// typesOfDeclaration are the types of a value that is declared here.
func (r *resolver) typesOfDeclaration(d declaration, l link, at, depth int) ([]typ, error) {
	if d.typ != "" {
		return []typ{r.typeNamed(d.typ)}, nil
	}
	chain, made := r.expressionAt(d.value)
	if made != "" {
		return []typ{r.typeNamed(made)}, nil
	}
	if len(chain) == 0 || len(chain) == 1 && chain[0].name == l.name && !chain[0].call {
		return nil, nil
	}
	if d.value >= at {
		return nil, nil
	}
	chain[len(chain)-1].result = d.result
	return r.typesOf(chain, d.value, depth+1)
}

var (
	madeOf     = lazyregexp.New(`^(?:new|make)\(\s*[\[\]*&]*((?:\w+\.)?[A-Za-z_]\w*)|^(?:new|await new)\s+((?:\w+(?:\.|::))*[A-Za-z_]\w*)`)
	leading    = lazyregexp.New(`^(?:[&*(\s]|await\s|<-|\[\w*\])+`)
	composite  = lazyregexp.New(`^((?:[A-Za-z_]\w*\.)?[A-Z_a-z]\w*)(?:\[[^\]\n]*\])?\{`)
	identifier = lazyregexp.New(`^[A-Za-z_$]\w*`)
)

// expressionAt reads an expression: its parts, or what type it makes.
func (r *resolver) expressionAt(at int) (chain []link, made string) {
	text := r.place.Text[at:min(at+4096, len(r.place.Text))]
	if m := madeOf().FindSubmatch(text); m != nil {
		return nil, string(m[1]) + string(m[2])
	}
	text = text[len(leading().Find(text)):]
	if m := madeOf().FindSubmatch(text); m != nil {
		return nil, string(m[1]) + string(m[2])
	}
	if m := composite().FindSubmatch(text); m != nil && r.family == golang {
		return nil, string(m[1])
	}
	for {
		name := identifier().Find(text)
		if name == nil {
			return chain, ""
		}
		text = text[len(name):]
		l := link{name: string(name)}
		for len(text) > 0 && (text[0] == '(' || text[0] == '[') {
			end := closeAfter(text)
			if end < 0 {
				return append(chain, l), ""
			}
			if text[0] == '(' {
				l.call, l.element = true, false
			} else {
				l.element = !bytes.ContainsRune(text[1:end], ':')
			}
			text = text[end+1:]
		}
		chain = append(chain, l)
		for _, dot := range []string{".", "?.", "->", "::"} {
			if bytes.HasPrefix(text, []byte(dot)) {
				text = text[len(dot):]
				break
			}
		}
		if bytes.HasPrefix(text, []byte("(")) { // x.(T)
			if end := closeAfter(text); end > 0 {
				return nil, strings.TrimLeft(string(bytes.TrimSpace(text[1:end])), "*&[]")
			}
		}
		if len(chain) > 8 || len(text) == 0 || !isWord(text[0]) {
			return chain, ""
		}
	}
}

// closeAfter is the place of the bracket that closes the one at the beginning; -1 if there is none.
func closeAfter(text []byte) int {
	depth := 0
	for i, c := range text {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
