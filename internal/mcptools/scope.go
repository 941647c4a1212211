package mcptools

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Scope is the part of arguments that says where to look.
type Scope struct {
	Repos   []string `json:"repos,omitempty" jsonschema:"names of repos, such as github.com/org/name; * stands for any characters but /, ** for any; default all"`
	Paths   []string `json:"paths,omitempty" jsonschema:"globs of paths, any of which must match, such as src/** or *.go (a glob without / matches in every directory)"`
	Exclude []string `json:"exclude,omitempty" jsonschema:"globs of paths to leave out"`
	Branch  string   `json:"branch,omitempty" jsonschema:"only on branches with this text in their name; HEAD is the default branch; default all indexed branches"`
	Lang    string   `json:"lang,omitempty" jsonschema:"only in this language, such as go or c++"`
}

// repos is the part of the query that chooses repos.
func (s Scope) repos() string {
	return anyOf("r:", s.Repos, globRepo)
}

// query is the part of the query that chooses documents, repos included.
func (s Scope) query() string {
	parts := []string{s.repos(), anyOf("f:", s.Paths, globPath)}
	for _, glob := range s.Exclude {
		parts = append(parts, "-f:"+quote(globPath(meant(glob))))
	}
	if s.Branch != "" {
		parts = append(parts, "b:"+quote(s.Branch))
	}
	if s.Lang != "" {
		parts = append(parts, "lang:"+quote(s.Lang))
	}
	return join(parts...)
}

// exactRepos are the names of repos without a glob.
func (s Scope) exactRepos() (names []string) {
	for _, name := range s.Repos {
		if name = meant(name); !strings.ContainsAny(name, "*?") {
			names = append(names, name)
		}
	}
	return names
}

// anyOf is a field with any of the globs as an expression.
func anyOf(field string, globs []string, expression func(string) string) string {
	if len(globs) == 0 {
		return ""
	}
	all := make([]string, len(globs))
	for i, glob := range globs {
		all[i] = expression(meant(glob))
	}
	return field + quote(strings.Join(all, "|"))
}

// join puts the parts of a query that are not empty side by side.
func join(parts ...string) string {
	var all []string
	for _, p := range parts {
		if p != "" {
			all = append(all, p)
		}
	}
	return strings.Join(all, " ")
}

// quote writes an expression, or text, as a value of the query language.
func quote(expression string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(expression) + `"`
}

// unquotedOffset is the place in an expression that is at offset in quote(expression),
// behind its opening quote.
func unquotedOffset(expression string, offset int) int {
	for i := range len(expression) {
		if offset <= 0 {
			return i
		}
		if offset--; expression[i] == '\\' || expression[i] == '"' {
			offset--
		}
	}
	return len(expression)
}

// globRepo is the expression of a glob of names of repos.
func globRepo(glob string) string { return `(?i:^` + globBody(glob) + `$)` }

// globPath is the expression of a glob of paths.
func globPath(glob string) string {
	glob = strings.TrimPrefix(glob, "/")
	if strings.HasSuffix(glob, "/") {
		glob += "**"
	}
	if !strings.Contains(glob, "/") {
		return `(?:^|/)` + globBody(glob) + `$`
	}
	return `^` + globBody(glob) + `$`
}

// globBody translates *, ?, **, {a,b} and [a-z].
func globBody(glob string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case strings.HasPrefix(glob[i:], "**/"):
			b.WriteString(`(?:[^\n]*/)?`)
			i += 2
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(`[^\n]*`)
			i++
		case c == '*':
			b.WriteString(`[^/]*`)
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '{' && strings.Contains(glob[i:], "}"):
			b.WriteString(`(?:`)
			depth++
		case c == '}' && depth > 0:
			b.WriteByte(')')
			depth--
		case c == ',' && depth > 0:
			b.WriteByte('|')
		case c == '[' && classEnd(glob[i:]) > 0:
			end := classEnd(glob[i:])
			b.WriteString(class(glob[i+1 : i+end]))
			i += end
		default:
			_, n := utf8.DecodeRuneInString(glob[i:])
			b.WriteString(regexp.QuoteMeta(glob[i : i+n]))
			i += n - 1
		}
	}
	b.WriteString(strings.Repeat(")", depth))
	return b.String()
}

// classEnd is where the ] of a class stands, or 0.
func classEnd(glob string) int {
	if end := strings.IndexByte(glob, ']'); end > 1 && glob[:2] != "[!" || end > 2 {
		return end
	}
	return 0
}

// class is the expression of the inside of a class.
func class(inside string) string {
	not := ""
	if rest, ok := strings.CutPrefix(inside, "!"); ok {
		not, inside = "^", rest
	}
	return "[" + not + strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(inside) + "]"
}
