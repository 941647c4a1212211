package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/testrun"
)

const root = "../.."

// TestEveryMutationCanBeTried: the test of each mutation exists, and docs/promises.md names it
// for the promise. Every promise has mutations.
func TestEveryMutationCanBeTried(t *testing.T) {
	all, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	shown := promises(t)
	of := map[int]int{}
	for _, m := range all {
		of[m.promise]++
		if testrun.Source(t, filepath.Join(root, m.pkg), m.test) == "" {
			t.Errorf("%d: %s: there is no %s in %s", m.promise, m.what, m.test, m.pkg)
		}
		if !strings.Contains(shown[m.promise], "`"+m.test+"`") {
			t.Errorf("%d: %s: docs/promises.md does not name %s among what shows promise %d", m.promise, m.what, m.test, m.promise)
		}
	}
	for promise := range shown {
		if of[promise] == 0 {
			t.Errorf("no mutation breaks promise %d", promise)
		}
	}
	if len(all) < 60 || len(shown) < 13 {
		t.Errorf("%d mutations of %d promises", len(all), len(shown))
	}
}

// TestThePageHasEveryMutation: docs/mutations.md has a row for each mutation of the list and no
// others, and all of them were killed.
func TestThePageHasEveryMutation(t *testing.T) {
	all, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "mutations.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if row := m.killedRow(); !strings.Contains(string(page), "\n"+row) {
			t.Errorf("docs/mutations.md lacks this row, which make mutate writes:\n%s", row)
		}
	}
	sum := fmt.Sprintf(": %d killed, 0 lived.\n", len(all))
	if rows := strings.Count(string(page), "\n| ") - 1; rows != len(all) || !strings.Contains(string(page), sum) {
		t.Errorf("docs/mutations.md has %d rows, and the list %d mutations; the page must say %q", rows, len(all), sum)
	}
}

// TestThePageKeepsWhatIsNotTried: the page after a few mutations has their results, and those of a whole run for the others.
func TestThePageKeepsWhatIsNotTried(t *testing.T) {
	all, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "page.md")
	var results []result
	for _, m := range all {
		results = append(results, result{m, failed, nil})
	}
	for _, step := range []struct {
		results []result
		killed  int
		row     string
	}{
		{results[:len(all)-1], len(all) - 1, result{all[len(all)-1], notTried, nil}.row()},
		{results[len(all)-1:], len(all), all[len(all)-1].killedRow()},
		{[]result{{all[3], passed, nil}}, len(all) - 1, result{all[3], passed, nil}.row()},
		{results, len(all), all[3].killedRow()},
	} {
		if err := writePage(page, step.results); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(page)
		if sum := fmt.Sprintf(": %d killed, %d lived.\n", step.killed, len(all)-step.killed); err != nil || !strings.Contains(string(text), sum) || !strings.Contains(string(text), step.row) {
			t.Errorf("after %d results the page lacks %q or %q: %v", len(step.results), sum, step.row, err)
		}
	}
	if text, err := os.ReadFile(page); err != nil || !lastWhole.Match(text) {
		t.Errorf("no date of the whole run: %v", err)
	}
}

// promises are the sections of docs/promises.md about the tests of each promise, by
// number.
func promises(t *testing.T) map[int]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "promises.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[int]string{}
	for section := range strings.SplitSeq(string(page), "\n##") {
		var number int
		if n, _ := fmt.Sscanf(section, "# Promise %d", &number); n == 1 {
			sections[number] = section
		}
	}
	return sections
}

const example = `# a comment
1: what changes
--- a/b.go
 	if ready {
-		return nil
+		return errors.New("x")
=== a TestB
`

func TestApply(t *testing.T) {
	all, err := parse(example)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	m := all[0]
	if m.promise != 1 || m.what != "what changes" || m.file != "a/b.go" || m.pkg != "a" || m.test != "TestB" {
		t.Errorf("parsed %+v", m)
	}
	const once = "func f() {\n\t\tif ready {\n\t\t\treturn nil\n\t\t}\n\treturn nil\n}"
	got, err := m.apply(once)
	if want := "func f() {\n\tif ready {\n\t\treturn errors.New(\"x\")\n\t\t}\n\treturn nil\n}"; err != nil || got != want {
		t.Errorf("applied: %q, %v", got, err)
	}
	if _, err := m.apply(once + once); !errors.Is(err, errTwice) {
		t.Errorf("where the lines are twice: %v", err)
	}
	for _, source := range []string{"", "if ready {", "if ready {\nreturn 1"} {
		if _, err := m.apply(source); !errors.Is(err, errNotFound) {
			t.Errorf("in %q: %v", source, err)
		}
	}
}

func TestListsThatAreRefused(t *testing.T) {
	for what, list := range map[string]string{
		"no number":     strings.Replace(example, "1: ", "", 1),
		"no file":       strings.Replace(example, "--- a/b.go\n", "", 1),
		"no test":       strings.Replace(example, "=== a TestB\n", "", 1),
		"no test name":  strings.Replace(example, "a TestB", "a", 1),
		"no change":     "1: what\n--- a.go\n x\n=== a TestB\n",
		"only new text": "1: what\n--- a.go\n+x\n=== a TestB\n",
		"another line":  strings.Replace(example, "+", "?", 1),
	} {
		if all, err := parse(list); err == nil {
			t.Errorf("%s: %+v", what, all)
		}
	}
}

// TestJudge: a mutation is killed by a test that fails, and by nothing else.
func TestJudge(t *testing.T) {
	for events, want := range map[string]verdict{
		`{"Action":"fail","Test":"TestA"}`:                              failed,
		`{"Action":"pass","Test":"TestA"}`:                              passed,
		`{"Action":"skip","Test":"TestA"}`:                              skipped,
		`{"Action":"fail","Test":"TestB"}` + "\n" + `{"Action":"fail"}`: notThere,
		`{"Action":"build-fail"}` + "\n" + `{"Action":"fail"}`:          noBuild,
		"go: no such package\n":                                         notThere,
		`{"Action":"pass"}`:                                             notThere,
		`{"Action":"output","Test":"TestA","Output":"panic: nil\n"}` + "\n" + `{"Action":"fail","Test":"TestA"}`:                     failed,
		`{"Action":"output","Test":"TestA","Output":"panic: test timed out after 1m\n"}` + "\n" + `{"Action":"fail","Test":"TestA"}`: timedOut,
	} {
		if got := judge([]byte(events), []string{"TestA"})["TestA"]; got != want {
			t.Errorf("%s: %s, want %s", events, got, want)
		}
	}
}

// TestTry kills one mutation and lets one live, in a module of its own, whose source
// does not change.
func TestTry(t *testing.T) {
	dir := t.TempDir()
	source := "package m\n\nfunc one() int {\n\treturn 1\n}\n"
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n", "p/m.go": source,
		"p/m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {\n\tif one() == 2 {\n\t\tt.Error(2)\n\t}\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	m := mutation{file: "p/m.go", pkg: "p", test: "TestA", before: []string{"return 1"}}
	for after, want := range map[string]verdict{"return 2": failed, "return 3": passed, "return x": noBuild} {
		m.after = []string{after}
		if got, err := m.try(t.Context(), dir, t.TempDir()); err != nil || got != want {
			t.Errorf("%s: the test %s, %v, want %s", after, got, err, want)
		}
	}
	if now, err := os.ReadFile(filepath.Join(dir, "p", "m.go")); err != nil || string(now) != source {
		t.Errorf("the source is now %q, %v", now, err)
	}
	m.after = []string{"return 2"}
	unfit := m
	unfit.test = "TestNone"
	all := []mutation{unfit, m}
	tests, err := unfitTests(t.Context(), dir, all)
	if err != nil {
		t.Fatal(err)
	}
	results, err := tryAll(t.Context(), dir, all, tests, 2)
	if err != nil || results[0].String() != string(notTried) || results[1].String() != "killed" {
		t.Errorf("one test is not there: %v, %v", results, err)
	}
}
