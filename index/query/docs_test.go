package query

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// examples gives the queries in the fenced blocks of the reference that are
// marked with the language.
func examples(t *testing.T, reference, language string) []string {
	t.Helper()
	var found []string
	inside := false
	for line := range strings.Lines(reference) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "```") {
			inside = line == "```"+language
			continue
		}
		if inside {
			text, _, ok := strings.Cut(line, "⇒")
			if !ok {
				t.Errorf("%s: no explanation", line)
			}
			found = append(found, strings.TrimRight(text, " "))
		}
	}
	return found
}

// TestReference checks docs/query.md against the parser: its examples are right
// or wrong as it says, and it names every field and every limit.
func TestReference(t *testing.T) {
	data, err := os.ReadFile("../../docs/query.md")
	if err != nil {
		t.Fatal(err)
	}
	reference := string(data)
	right, wrong := examples(t, reference, "query"), examples(t, reference, "query-error")
	if len(right) < 40 || len(wrong) < 15 {
		t.Errorf("only %d examples and %d errors found", len(right), len(wrong))
	}
	for _, text := range right {
		if _, err := Parse(text, ParseOptions{Language: linguist}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range examples(t, reference, "query-2") {
		q, err := Parse(text, ParseOptions{Language: linguist, SyntaxVersion: 2})
		if first, _ := Parse(text, ParseOptions{Language: linguist}); err != nil || first != nil && first.String() == q.String() {
			t.Errorf("%s: %v, %v: version 2 reads it like version 1", text, q, err)
		}
	}
	for _, text := range wrong {
		var e *SyntaxError
		if _, err := Parse(text, ParseOptions{}); !errors.As(err, &e) {
			t.Errorf("%s: error %v, want a syntax error", text, err)
		}
	}
	for _, f := range ownFields {
		if !strings.Contains(reference, "`"+f.prefix) {
			t.Errorf("the field %s is not in the reference", f.prefix)
		}
	}
	l := Limits{}.withDefaults()
	for name, most := range map[string]int{
		LimitBytes: l.Bytes, LimitDepth: l.Depth, LimitAtoms: l.Atoms, LimitProgram: l.Program, LimitPrograms: l.Programs,
		LimitClasses: l.Classes, LimitFilters: l.Filters, LimitRepos: l.Repos, LimitTypeRepo: l.TypeRepo, LimitRepetition: l.Repetition,
	} {
		if !limitIsDocumented(reference, name, most) {
			t.Errorf("the limit on %s, %d, is not in the reference", name, most)
		}
	}
}

func limitIsDocumented(reference, name string, most int) bool {
	return slices.ContainsFunc(strings.Split(reference, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "| "+name) && strings.HasSuffix(line, "| "+withCommas(most)+" |")
	})
}

func withCommas(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
