// Package ignore decides which files of a folder ripgrep skips: hidden ones, and those that .gitignore,
// .ignore and .rgignore exclude.
package ignore

import (
	"bytes"
	"strings"
)

// Decision is the verdict of the rules on a path.
type Decision uint8

// Decisions of rules.
const (
	None Decision = iota
	Ignore
	Include
)

// Rules are the lines of one ignore file. They do not change, and nil has none.
type Rules struct{ rules []rule }

// rule is one line. The last rule that matches decides.
type rule struct {
	kind     kind
	text     string
	onlyDirs bool
	include  bool
}

// kind is how a rule compares. Most rules are not globs, which are slow.
type kind uint8

const (
	name   kind = iota // the last element of the path is text
	suffix             // the path ends in text, which has no slash
	path               // the path is text
	base               // the last element matches the glob text
	glob               // the path matches the glob text
)

var bom = []byte("\xef\xbb\xbf")

// Parse reads an ignore file, in gitignore's syntax with ripgrep's {a,b}. Lines that are not valid globs
// match nothing.
func Parse(content []byte) *Rules {
	r := new(Rules)
	for line := range bytes.Lines(bytes.TrimPrefix(content, bom)) {
		r.add(string(bytes.TrimRight(line, "\r\n")))
	}
	return r
}

func (r *Rules) add(line string) {
	if strings.HasPrefix(line, "#") {
		return
	}
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " \t\v\f\r")
	}
	var next rule
	anchored := false
	if strings.HasPrefix(line, `\!`) || strings.HasPrefix(line, `\#`) {
		line = line[1:]
	} else {
		line, next.include = strings.CutPrefix(line, "!")
		line, anchored = strings.CutPrefix(line, "/")
	}
	line, next.onlyDirs = strings.CutSuffix(line, "/")
	if line == "" {
		return
	}
	for _, next.text = range alternatives(line) {
		r.rules = append(r.rules, next.of(anchored))
	}
}

// of is the rule with its kind. An anchored text is that of a path, even without a slash.
func (r rule) of(anchored bool) rule {
	const special = `*?[\`
	isGlob := strings.ContainsAny(r.text, special)
	switch {
	case anchored || strings.Contains(r.text, "/"):
		r.kind = path
		if isGlob {
			r.kind = glob
		}
	case !isGlob:
		r.kind = name
	case r.text[0] == '*' && !strings.ContainsAny(r.text[1:], special):
		r.kind, r.text = suffix, r.text[1:]
	default:
		r.kind = base
	}
	return r
}

// Match decides about a path, with slashes, relative to the folder of the rules.
func (r *Rules) Match(p string, isDir bool) Decision {
	if r == nil {
		return None
	}
	last := p[strings.LastIndexByte(p, '/')+1:]
	for i := len(r.rules) - 1; i >= 0; i-- {
		rule := &r.rules[i]
		if rule.onlyDirs && !isDir || !rule.matches(p, last) {
			continue
		}
		if rule.include {
			return Include
		}
		return Ignore
	}
	return None
}

func (r *rule) matches(p, last string) bool {
	switch r.kind {
	case name:
		return last == r.text
	case suffix:
		return strings.HasSuffix(p, r.text)
	case path:
		return p == r.text
	case base:
		return match(r.text, last)
	}
	return match(r.text, p)
}

// Globs are the globs of -g: in gitignore's syntax, but files that match are searched, and with ! they
// are not.
type Globs struct {
	rules    Rules
	included bool // one is without !
}

// NewGlobs reads globs.
func NewGlobs(globs []string) *Globs {
	g := new(Globs)
	for _, line := range globs {
		g.rules.add(line)
		g.included = g.included || !strings.HasPrefix(line, "!")
	}
	return g
}

// Match decides about a path. If there is a glob without !, files that match none are
// not searched.
func (g *Globs) Match(p string, isDir bool) Decision {
	if g == nil {
		return None
	}
	switch g.rules.Match(p, isDir) {
	case Ignore:
		return Include
	case Include:
		return Ignore
	}
	if g.included && !isDir {
		return Ignore
	}
	return None
}
