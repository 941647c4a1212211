package resolve

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/symbols"
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
	if n := len(before); n == 0 || before[n-1] != '{' && before[n-1] != ',' && before[n-1] != '/' && !bytes.HasSuffix(before, []byte("*/")) && !afterComment(before) {
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

var ending = regexp.MustCompile(`(?:[A-Za-z_]\w*(?:\.|::))?[A-Za-z_]\w*$`)

// typeEnding is the name at the end of a text, with its package.
func typeEnding(text []byte) string {
	t := string(ending.Find(text[max(0, len(text)-200):]))
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
			slices.Reverse(chain)
			return chain
		}
		l, start := linkBefore(text, skipSpaceBack(text, i))
		if l.name == "" && !l.call {
			slices.Reverse(chain)
			return chain
		}
		chain = append(chain, l)
		if at = start; l.name == "" || l.asserted || len(chain) > 8 {
			slices.Reverse(chain)
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

// declaredHere reports whether a name that may also be one of an import is declared in the function around a place.
func (r *resolver) declaredHere(name string, at int) bool {
	_, ok := r.declaration(name, at)
	return ok
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

// declaration is a declaration of a name in the function around a place.
type declaration struct {
	// typ is the declared type.
	typ string
	// value is where the expression of its value begins in the text, if it has no type, and result which of its results the name is.
	value  int
	result int
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
	madeOf     = regexp.MustCompile(`^(?:new|make)\(\s*[\[\]*&]*((?:\w+\.)?[A-Za-z_]\w*)|^(?:new|await new)\s+((?:\w+(?:\.|::))*[A-Za-z_]\w*)`)
	leading    = regexp.MustCompile(`^(?:[&*(\s]|await\s|<-|\[\w*\])+`)
	composite  = regexp.MustCompile(`^((?:[A-Za-z_]\w*\.)?[A-Z_a-z]\w*)(?:\[[^\]\n]*\])?\{`)
	identifier = regexp.MustCompile(`^[A-Za-z_$]\w*`)
)

// expressionAt reads an expression: its parts, or what type it makes.
func (r *resolver) expressionAt(at int) (chain []link, made string) {
	text := r.place.Text[at:min(at+4096, len(r.place.Text))]
	if m := madeOf.FindSubmatch(text); m != nil {
		return nil, string(m[1]) + string(m[2])
	}
	text = text[len(leading.Find(text)):]
	if m := madeOf.FindSubmatch(text); m != nil {
		return nil, string(m[1]) + string(m[2])
	}
	if m := composite.FindSubmatch(text); m != nil && r.family == golang {
		return nil, string(m[1])
	}
	for {
		name := identifier.Find(text)
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
		if len(chain) > 8 || len(text) == 0 || !isWord(text[0]) || text[0] <= ' ' {
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

// typeWords are what a type may begin with.
const goType = `((?:\.\.\.|\*|\[[\w.]*\]|map\[[^\]\n]*\]|<-\s*|chan\s+)*(?:func\(|(?:\w+\.)?[A-Za-z_]\w*))`

// declaration finds the last declaration of a name before a place, in the function around it.
func (r *resolver) declaration(name string, at int) (declaration, bool) {
	if at < 0 || name == "" {
		return declaration{}, false
	}
	text := r.place.Text[:at]
	begin := r.functionAt(at)
	q := regexp.QuoteMeta(name)
	switch r.family.style {
	case typeAfter:
		return goDeclared(text, begin, q)
	case afterColon:
		return colonDeclared(text, begin, q)
	case typeBefore:
		return typeDeclared(text, begin, q)
	}
	return declaration{}, false
}

// functionAt is where the function around a place begins; the place itself if there is none.
func (r *resolver) functionAt(at int) int {
	begin := at
	for _, s := range r.symbols {
		if int(s.Start) > at {
			break
		}
		if (s.Kind == symbols.Function || s.Kind == symbols.Method) && int(s.Until) > at {
			begin = int(s.Start)
			break
		}
	}
	if n := bytes.LastIndexByte(r.place.Text[:begin], '\n'); begin < at {
		return n + 1
	}
	return begin
}

func goDeclared(text []byte, begin int, q string) (best declaration, ok bool) {
	region, last := text[begin:], -1
	typed := regexp.MustCompile(`(?:[(,]\s*|\bvar\s+|(?m:^)\s*)(` + q + `)(?:\s*,\s*\w+)*\s+` + goType)
	for _, m := range typed.FindAllSubmatchIndex(region, -1) {
		t := goTypeName(region[m[4]:])
		if m[2] > last && t != "" {
			best, ok, last = declaration{typ: t}, true, m[2]
		}
	}
	defined := regexp.MustCompile(`((?:\b\w+\s*,\s*)*)\b` + q + `(?:\s*,\s*\w+)*\s*:=\s*(range\s+)?|\bvar\s+` + q + `\s*=\s*`)
	for _, m := range defined.FindAllSubmatchIndex(region, -1) {
		if m[0] <= last {
			continue
		}
		d := declaration{value: begin + m[1]}
		if m[2] >= 0 {
			d.result = bytes.Count(region[m[2]:m[3]], []byte(","))
		}
		if m[4] >= 0 {
			d.result = 0
		}
		best, ok, last = d, true, m[0]
		line := region[m[1]:]
		if n := bytes.IndexByte(line, '\n'); n >= 0 {
			line = line[:n]
		}
		if bytes.Contains(line, []byte(".(type)")) { // a switch: the last case
			cases := regexp.MustCompile(`\bcase\s+\*?((?:\w+\.)?\w+)\s*:`).FindAllSubmatch(region[m[1]:], -1)
			if len(cases) == 0 {
				return declaration{}, false
			}
			best = declaration{typ: string(cases[len(cases)-1][1])}
		}
	}
	return best, ok
}

// goTypeName is the name of the type at the beginning of a text in Go, or of its elements; empty if it has none.
func goTypeName(text []byte) string {
	t := string(text[:min(len(text), 300)])
	for {
		before := t
		t = strings.TrimLeft(t, " \t*.&")
		switch {
		case strings.HasPrefix(t, "["):
			if end := closeAfter([]byte(t)); end > 0 {
				t = t[end+1:]
			}
		case strings.HasPrefix(t, "map["):
			if end := closeAfter([]byte(t[3:])); end > 0 {
				t = t[3+end+1:]
			}
		case strings.HasPrefix(t, "func("):
			if end := closeAfter([]byte(t[4:])); end > 0 {
				t = strings.TrimPrefix(strings.TrimLeft(t[4+end+1:], " "), "(")
			}
		default:
			t = strings.TrimPrefix(strings.TrimPrefix(t, "<-"), "chan ")
		}
		if t == before {
			break
		}
	}
	name := typeBeginning.FindString(t)
	if goKeywords[name] {
		return ""
	}
	return name
}

var (
	typeBeginning = regexp.MustCompile(`^(?:[A-Za-z_]\w*\.)?[A-Za-z_]\w*`)
	goKeywords    = map[string]bool{
		"struct": true, "interface": true, "in": true, "range": true, "if": true, "for": true, "case": true, "return": true, "else": true, "func": true, "chan": true, "map": true,
	}
)

func colonDeclared(text []byte, begin int, q string) (best declaration, ok bool) {
	region, last := text[begin:], -1
	typed := regexp.MustCompile(`\b` + q + `\??\s*:\s*(?:&\s*(?:'\w+\s+)?)?(?:mut\s+|dyn\s+|impl\s+)*((?:\w+(?:\.|::))*[A-Za-z_]\w*)`)
	for _, m := range typed.FindAllSubmatchIndex(region, -1) {
		best, ok, last = declaration{typ: string(region[m[2]:m[3]])}, true, m[0]
	}
	defined := regexp.MustCompile(`\b` + q + `\s*=\s*(?:await\s+)?|\bwith\s+[^\n]*\bas\s+` + q + `\b`)
	for _, m := range defined.FindAllIndex(region, -1) {
		if m[0] > last && (m[1] >= len(region) || region[m[1]] != '=') {
			best, ok, last = declaration{value: begin + m[1]}, true, m[0]
		}
	}
	return best, ok
}

var notTypes = map[string]bool{
	"return": true, "new": true, "else": true, "case": true, "goto": true, "delete": true, "throw": true, "in": true, "instanceof": true, "typedef": true,
	"struct": true, "class": true, "enum": true, "import": true, "package": true, "using": true, "namespace": true, "public": true, "static": true, "final": true, "const": true,
}

func typeDeclared(text []byte, begin int, q string) (best declaration, ok bool) {
	region := text[begin:]
	declared := regexp.MustCompile(`\b((?:\w+::)*[A-Za-z_]\w*)(?:<[^;(){}]*>)?(?:\[\])*(?:\s+(?:const\s+)?|\s*[*&]+\s*(?:const\s+)?)` + q + `\s*([=;,):\[({]|$)`)
	for _, m := range declared.FindAllSubmatchIndex(region, -1) {
		t := string(region[m[2]:m[3]])
		if notTypes[t] {
			continue
		}
		if t == "auto" || t == "var" || t == "val" {
			best, ok = declaration{value: begin + m[1] + len(region[m[1]:]) - len(bytes.TrimLeft(region[m[1]:], " \t"))}, true
			continue
		}
		best, ok = declaration{typ: t}, true
	}
	return best, ok
}

// declared is the name of the type that a definition gives what a link names; empty if there is none.
func (s style) declared(d *Definition, l link) string {
	if d.At+len(l.name) > len(d.Text) {
		return ""
	}
	after := d.Text[d.At+len(l.name):]
	switch s {
	case typeAfter:
		return goDeclaredType(after, l)
	case afterColon:
		if l.call && bytes.HasPrefix(after, []byte("(")) {
			end := closeAfter(after)
			if end < 0 {
				return ""
			}
			after = after[end+1:]
		}
		if m := colonType.FindSubmatch(after); m != nil {
			return string(m[1])
		}
	case typeBefore:
		if m := typeBeforeName.FindSubmatch(d.Text[:d.At]); m != nil && !notTypes[string(m[1])] {
			return string(m[1])
		}
	}
	return ""
}

var (
	colonType      = regexp.MustCompile(`^\??\s*(?::|->)\s*(?:&\s*(?:'\w+\s+)?)?(?:mut\s+|dyn\s+|impl\s+)*((?:\w+(?:\.|::))*[A-Za-z_]\w*)`)
	typeBeforeName = regexp.MustCompile(`((?:\w+::)*[A-Za-z_]\w*)(?:<[^;(){}]*>)?(?:\[\])*[\s*&]+(?:\w+::)*$`)
	goValue        = regexp.MustCompile(`^\s*:?=\s*&?((?:\w+\.)?[A-Za-z_]\w*)([{(])`)
	goList         = regexp.MustCompile(`^(?:\s*,\s*\w+)+`)
	goNamed        = regexp.MustCompile(`^\s*[A-Za-z_]\w*\s+[\w*\[<.]`)
)

func goDeclaredType(after []byte, l link) string {
	if bytes.HasPrefix(after, []byte("[")) && l.call { // type parameters
		if end := closeAfter(after); end > 0 {
			after = after[end+1:]
		}
	}
	if bytes.HasPrefix(after, []byte("(")) {
		end := closeAfter(after)
		if end < 0 {
			return ""
		}
		after = bytes.TrimLeft(after[end+1:], " ")
		end = -1
		if bytes.HasPrefix(after, []byte("(")) {
			end = closeAfter(after)
		}
		if end > 0 {
			return goResult(topLevel(after[1:end]), l.result)
		}
		return goTypeName(after)
	}
	after = after[len(goList.Find(after)):]
	m := goValue.FindSubmatch(after)
	if m == nil {
		return goTypeName(after)
	}
	name := string(m[1])
	if m[2][0] == '{' {
		return name
	}
	pkg, f, qualified := cutLast(name, ".")
	made, ok := strings.CutPrefix(f, "New")
	switch {
	case !ok || made == "":
		return ""
	case qualified:
		return pkg + "." + made
	}
	return made
}

// goResult is the name of the type of one of the results of a function.
func goResult(results [][]byte, n int) string {
	if n >= len(results) {
		return ""
	}
	if !slices.ContainsFunc(results, func(r []byte) bool { return goNamed.Match(r) }) {
		return goTypeName(results[n])
	}
	for _, r := range results[n:] { // the first with a type has it for those before
		if goNamed.Match(r) {
			_, t, _ := bytes.Cut(bytes.TrimLeft(r, " \t\n"), []byte(" "))
			return goTypeName(t)
		}
	}
	return ""
}

// topLevel splits a list at the commas that are in no brackets.
func topLevel(list []byte) (parts [][]byte) {
	depth, start := 0, 0
	for i, c := range list {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				parts, start = append(parts, list[start:i]), i+1
			}
		}
	}
	return append(parts, list[start:])
}
