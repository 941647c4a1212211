package resolve

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/symbols"
	"github.com/trawl-search/trawl/internal/lazyregexp"
)

// declaration is a declaration of a name in the function around a place.
type declaration struct {
	// typ is the declared type.
	typ string
	// value is where the expression of its value begins in the text, if it has no type, and result which of its results the name is.
	value  int
	result int
}

// goType matches the beginning of a type in Go.
const goType = `((?:\.\.\.|\*|\[[\w.]*\]|map\[[^\]\n]*\]|<-\s*|chan\s+)*(?:func\(|(?:\w+\.)?[A-Za-z_]\w*))`

// declaration finds the last declaration of a name before a place, in the function around it.
func (r *resolver) declaration(name string, at int) (declaration, bool) {
	if at < 0 || name == "" || !utf8.ValidString(name) { // as no expression can be
		return declaration{}, false
	}
	text := r.place.Text[:at]
	begin := max(r.functionAt(at), at-farthestDeclaration)
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

// farthestDeclaration bounds how far before a place a declaration is looked for, in bytes.
const farthestDeclaration = 64 << 10

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
	name := typeBeginning().FindString(t)
	if goKeywords[name] {
		return ""
	}
	return name
}

var (
	typeBeginning = lazyregexp.New(`^(?:[A-Za-z_]\w*\.)?[A-Za-z_]\w*`)
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
		if m := colonType().FindSubmatch(after); m != nil {
			return string(m[1])
		}
	case typeBefore:
		if m := typeBeforeName().FindSubmatch(d.Text[:d.At]); m != nil && !notTypes[string(m[1])] {
			return string(m[1])
		}
	}
	return ""
}

var (
	colonType      = lazyregexp.New(`^\??\s*(?::|->)\s*(?:&\s*(?:'\w+\s+)?)?(?:mut\s+|dyn\s+|impl\s+)*((?:\w+(?:\.|::))*[A-Za-z_]\w*)`)
	typeBeforeName = lazyregexp.New(`((?:\w+::)*[A-Za-z_]\w*)(?:<[^;(){}]*>)?(?:\[\])*[\s*&]+(?:\w+::)*$`)
	goValue        = lazyregexp.New(`^\s*:?=\s*&?((?:\w+\.)?[A-Za-z_]\w*)([{(])`)
	goList         = lazyregexp.New(`^(?:\s*,\s*\w+)+`)
	goNamed        = lazyregexp.New(`^\s*[A-Za-z_]\w*\s+[\w*\[<.]`)
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
	after = after[len(goList().Find(after)):]
	m := goValue().FindSubmatch(after)
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
	if !slices.ContainsFunc(results, func(r []byte) bool { return goNamed().Match(r) }) {
		return goTypeName(results[n])
	}
	for _, r := range results[n:] { // the first with a type has it for those before
		if goNamed().Match(r) {
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
