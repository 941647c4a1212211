package query

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// String returns "all" or "none".
func (q *Const) String() string {
	if q.Value {
		return "all"
	}
	return "none"
}

func (q *And) String() string { return list("and", q.Children) }
func (q *Or) String() string {
	if q.Words != nil {
		return list("any", q.Children)
	}
	return list("or", q.Children)
}
func (q *Not) String() string { return "(not " + q.Child.String() + ")" }

func (q *Substring) String() string {
	return atom("substring", q.Scope, q.CaseSensitive, q.Pattern)
}

func (q *Regexp) String() string {
	return atom("regexp", q.Scope, q.CaseSensitive, q.Tree.String())
}

func (q *Symbol) String() string {
	if q.Kinds == 0 {
		return "(symbol " + q.Child.String() + ")"
	}
	return fmt.Sprintf("(symbol %s %s)", q.Kinds, q.Child)
}

func (q *Reference) String() string { return "(reference " + q.Child.String() + ")" }

func (q *Repo) String() string     { return fmt.Sprintf("repo:%q", q.Tree) }
func (q *Language) String() string { return fmt.Sprintf("lang:%q", q.Name) }
func (q *Meta) String() string     { return fmt.Sprintf("meta.%q:%q", q.Key, q.Tree) }

func (q *RepoSet) String() string {
	names := slices.Sorted(maps.Keys(q.Names))
	names = slices.DeleteFunc(names, func(n string) bool { return !q.Names[n] })
	return fmt.Sprintf("(repos %q)", names)
}

func (q *Branch) String() string {
	if q.Exact {
		return fmt.Sprintf("branch=%q", q.Pattern)
	}
	return fmt.Sprintf("branch:%q", q.Pattern)
}

func (q *RepoFact) String() string {
	if q.Value {
		return q.Fact.String() + ":yes"
	}
	return q.Fact.String() + ":no"
}

func (q *Type) String() string {
	return fmt.Sprintf("(type:%s %s)", q.Kind, q.Child)
}

// String returns the field's name in the query language.
func (f Fact) String() string {
	return nameOf([]string{"archived", "fork", "public"}, uint8(f))
}

// String returns the value of type: in the query language.
func (k Kind) String() string {
	return nameOf([]string{"filematch", "filename", "repo"}, uint8(k))
}

// String returns the field's name in the query language, or "text" for Either.
func (s Scope) String() string {
	return nameOf([]string{"text", "content", "file"}, uint8(s))
}

func nameOf(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}

func list(op string, children []Q) string {
	var b strings.Builder
	b.WriteString("(" + op)
	for _, c := range children {
		b.WriteString(" " + c.String())
	}
	return b.String() + ")"
}

func atom(kind string, scope Scope, caseSensitive bool, pattern string) string {
	prefix := ""
	if caseSensitive {
		prefix = "case "
	}
	if scope != Either {
		prefix += scope.String() + " "
	}
	return fmt.Sprintf("%s%s:%q", prefix, kind, pattern)
}
