package query

import (
	"errors"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// hostile are queries that once cost a router or searcher seconds or gigabytes, with the limit that
// each exceeds.
func hostile() map[string]struct{ query, limit string } {
	atoms := func(n int, atom string) string { return strings.TrimSpace(strings.Repeat(atom+" ", n)) }
	return map[string]struct{ query, limit string }{
		"1,000 terms of 20,000 instructions": {atoms(1000, `(\w\d){999}x`), LimitPrograms},
		"repo: by repo:":                     {atoms(528, `r:(a.b){998}`), LimitRepos},
		"many repo:":                         {atoms(528, `r:a.b`), LimitFilters},
		"many file:":                         {atoms(501, `f:a.b`), LimitFilters},
		"type:repo in type:repo":             {strings.Repeat(`(type:repo r:a `, 11) + strings.Repeat(`)`, 11), LimitTypeRepo},
		"type:repo by type:repo":             {atoms(600, `(type:repo r:a.b)`), LimitTypeRepo},
		"Unicode classes":                    {strings.Repeat(`\pL`, 5000), LimitClasses},
		"Unicode classes by term":            {atoms(900, `\PL\pN`), LimitClasses},
		"wide ranges under (?i)":             {`(?i)` + strings.Repeat(`[b-\x{1e900}]`, 1000), LimitClasses},
		"wide ranges under (?i), as written": {atoms(900, `(?i)[b-𞤀]`), LimitClasses},
		"wide ranges in one class":           {`(?i)[` + strings.Repeat(`b-\x{1e900}`, 1000) + `]`, LimitClasses},
		"64 KiB":                             {strings.Repeat("word ", 13<<10), LimitBytes},
		"nested groups":                      {strings.Repeat("( ", 8000), LimitDepth},
		"nested expressions":                 {strings.Repeat("(a", 4000) + strings.Repeat(")", 4000), LimitDepth},
		"nested repetitions":                 {`((a{999}){999}){999}`, LimitRepetition},
		"negations":                          {strings.Repeat("-", 8000) + "a", LimitDepth},
	}
}

// TestHostileQueries: each query is refused with its limit, and needs little memory until then.
func TestHostileQueries(t *testing.T) {
	const most = 16 << 20 // measured: up to 2.2 MB
	for name, h := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse(h.query, ParseOptions{})
			runtime.ReadMemStats(&after)
			var limit *LimitError
			if !errors.As(err, &limit) || limit.Limit != h.limit {
				t.Errorf("error %v, want the limit %q", err, h.limit)
			} else if limit.Advice() == (&LimitError{}).Advice() {
				t.Errorf("no advice: %v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > most {
				t.Errorf("refused after %d KiB", took>>10)
			}
		})
	}
}

// TestLimitsLeaveRoom: usual queries of people and programs stay far below the limits.
func TestLimitsLeaveRoom(t *testing.T) {
	for _, q := range []string{
		strings.TrimSpace(strings.Repeat("word ", 1000)),
		`r:^github\.com/(` + strings.TrimSuffix(strings.Repeat("org/name-of-a-repo|", 400), "|") + `)$ foo`,
		strings.Repeat(`r:a/b or `, 400) + `r:c`,
		`(?i)[\p{Han}\p{L}]+ [一-鿿ぁ-ゖ]+`,
		`\b\w{1,100}\b.{0,200}foo`,
	} {
		if _, err := Parse(q, ParseOptions{}); err != nil {
			t.Errorf("%.40s…: %v", q, err)
		}
	}
}

// genTerm draws a term: texts and fields with expressions of all operators.
func genTerm() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "r:", "f:", "c:", "meta.a:"}).Draw(t, "field") + genExpression(t, rapid.IntRange(0, 3).Draw(t, "depth"))
	})
}

func genExpression(t *rapid.T, depth int) string {
	leaves := []string{"a", "foo", "[a-f]", ".", `\w`, `\pL`, "^", "$", `\b`, "(?i:k)", `[^x]`}
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	sub := func() string { return "(" + genExpression(t, depth-1) + ")" }
	switch rapid.IntRange(0, 5).Draw(t, "operator") {
	case 0:
		return sub() + sub()
	case 1:
		return sub() + "|" + sub() + "|" + sub()
	case 2:
		return sub() + rapid.SampledFrom([]string{"*", "+", "?", "*?", "+?", "??"}).Draw(t, "loop")
	case 3:
		return sub() + rapid.SampledFrom([]string{"{0}", "{0,1}", "{0,}", "{1,}", "{3}", "{2,7}", "{30,}", "{0,40}?", "{200}"}).Draw(t, "count")
	case 4:
		return "(?:" + sub() + "|)"
	}
	return rapid.SampledFrom(leaves).Draw(t, "leaf")
}

// TestBudgetIsMonotone: adding to a query never lowers its cost, and every part of an accepted
// query is accepted.
func TestBudgetIsMonotone(t *testing.T) {
	limits := Limits{Programs: 100, Program: 99, Repos: 60, Filters: 10, Classes: 10, TypeRepo: 2}
	rapid.Check(t, func(t *rapid.T) {
		terms := rapid.SliceOfN(genTerm(), 1, 30).Draw(t, "terms")
		refused := false
		list := &And{}
		for i := range terms {
			before := Instructions(list)
			q, err := Parse(strings.Join(terms[:i+1], " "), ParseOptions{Limits: limits})
			if refused && err == nil {
				t.Fatalf("%q is refused, and with %q it is not", terms[:i], terms[i])
			}
			if refused = refused || err != nil; refused {
				continue
			}
			if n := Instructions(q); n > limits.Programs {
				t.Fatalf("%q has %d instructions, at most %d", terms[:i+1], n, limits.Programs)
			}
			one, err := Parse(terms[i], ParseOptions{Limits: limits})
			if err != nil {
				t.Fatalf("%q is refused alone: %v", terms[i], err)
			}
			list.Children = append(list.Children, one)
			if Instructions(list) < before {
				t.Fatalf("%s costs %d, with one term less %d", list, Instructions(list), before)
			}
		}
	})
}

// TestInstructionsBoundPrograms: no program is longer than Instructions says.
func TestInstructionsBoundPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := genExpression(t, 4)
		tree, err := syntax.Parse(text, Flags)
		if err != nil {
			t.Skip(err)
		}
		bound := instructions(tree) + 2 // every program has two more
		prog, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if len(prog.Inst) > bound {
			t.Fatalf("%s has %d instructions, counted %d", text, len(prog.Inst), bound)
		}
	})
}
