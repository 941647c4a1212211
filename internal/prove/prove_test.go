package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/testrun"
)

// makefile makes a folder with a Makefile the working folder.
func makefile(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
}

// outcomes runs the parts and returns the results of their tests by name, with all output.
func outcomes(t *testing.T, parts []part) (actions, output map[string]string, results []result) {
	t.Helper()
	var events bytes.Buffer
	results = prove(t.Context(), parts, &stream{to: &events})
	actions, output = map[string]string{}, map[string]string{}
	for lines := bufio.NewScanner(&events); lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		actions[e.Package+" "+e.Test] = e.Action
		output[e.Package+" "+e.Test] += e.Output
	}
	return actions, output, results
}

// TestPartsAreIndependent: a part that fails, or that takes too long with a child of its own, is
// reported with its output and stops no other, and events of Go tests arrive as they are.
func TestPartsAreIndependent(t *testing.T) {
	makefile(t, `
built:
	@echo built; touch built
good: built
	@printf '%s\n' '{"Action":"run","Package":"p","Test":"TestA"}' '{"Action":"pass","Package":"p","Test":"TestA"}' 'no event'
bad:
	@echo went wrong; echo why >&2; printf 'without an end'; exit 3
hangs:
	@echo started; sleep 1000
last:
	@test -f built; echo a warning >&2
`)
	actions, output, results := outcomes(t, []part{
		{target: "built", lane: first, limit: time.Minute, checks: true},
		{target: "bad", lane: waits, limit: time.Minute, checks: true},
		{target: "last", lane: waits, limit: time.Minute, checks: true},
		{target: "hangs", lane: computes, limit: time.Second, checks: true},
		{target: "good", lane: computes, limit: time.Minute},
		{target: "good", lane: alone, limit: time.Minute, again: true},
	})
	for name, want := range map[string]string{
		"make/built built": "pass", "make/bad bad": "fail", "make/bad ": "fail", "make/last last": "pass", "make/hangs hangs": "fail",
		"make/good ": "pass", "p TestA": "pass", "good/p TestA": "pass",
	} {
		if actions[name] != want {
			t.Errorf("%s: %q, want %q", name, actions[name], want)
		}
	}
	for name, want := range map[string]string{
		"make/bad bad": "went wrong\nwithout an end\nwhy\nmake", "make/last last": "a warning\n", "make/hangs hangs": errTime.Error(), "make/good ": "no event\n",
	} {
		if !strings.Contains(output[name], want) {
			t.Errorf("%s printed %q, want %q in it", name, output[name], want)
		}
	}
	var table bytes.Buffer
	if failed := report(&table, results); failed != 2 {
		t.Errorf("%d failed, want 2:\n%s", failed, &table)
	}
	if n := strings.Count(table.String(), "FAILED"); n != 2 || strings.Count(table.String(), "\n") != 8 {
		t.Errorf("the table should show 6 parts, 2 of them failed:\n%s", &table)
	}
}

// TestEnd: what a part that is ended has started can still clean up, and then is gone.
func TestEnd(t *testing.T) {
	makefile(t, `
part:
	@bash -c 'trap "sleep 0.2; touch cleaned; exit 1" INT; touch started; while :; do sleep 0.1; done'
`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		p := part{target: "part", limit: time.Minute, checks: true}
		done <- p.run(ctx, &stream{to: io.Discard})
	}()
	testrun.Eventually(t, "it has started", func(context.Context) error { _, err := os.Stat("started"); return err })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a part that was ended: %v", err)
	}
	if _, err := os.Stat("cleaned"); err != nil {
		t.Errorf("it could not clean up: %v", err)
	}
}

// TestNothingRunsAfterTheEnd: parts that have not begun when the run is ended fail, and the table has
// them all.
func TestNothingRunsAfterTheEnd(t *testing.T) {
	makefile(t, "one two three:\n\t@touch $@\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results := prove(ctx, []part{
		{target: "one", lane: first, limit: time.Minute}, {target: "two", lane: waits, limit: time.Minute, checks: true},
		{target: "three", lane: computes, limit: time.Minute},
	}, &stream{to: io.Discard})
	for _, r := range results {
		if _, err := os.Stat(r.target); !errors.Is(r.err, context.Canceled) || err == nil {
			t.Errorf("%s: %v, and its file: %v", r.target, r.err, err)
		}
	}
}

// TestTestsDecide: a part whose tests failed or did not end has failed, whatever its program says, and a part
// that leaves a process with its output says so.
func TestTestsDecide(t *testing.T) {
	makefile(t, `
fails:
	@echo '{"Action":"run","Package":"p","Test":"TestA"}'; echo '{"Action":"fail","Package":"p","Test":"TestA"}'
leaves:
	@echo '{"Action":"run","Package":"p","Test":"TestB"}'
skips:
	@echo '{"Action":"run","Package":"p","Test":"TestC"}'; echo '{"Action":"skip","Package":"p","Test":"TestC"}'
nothing:
	@echo '{"Action":"pass","Package":"p"}'
`)
	for target, want := range map[string]string{"fails": "tests failed", "leaves": "TestB in p did not end", "skips": "", "nothing": "no test ran"} {
		_, _, results := outcomes(t, []part{{target: target, limit: time.Minute}})
		if err := results[0].err; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
	}
}

// TestLongLines: gotestsum reads no line of 64 KiB and more, neither of a text nor of an event.
func TestLongLines(t *testing.T) {
	makefile(t, `
text:
	@head -c 200000 /dev/zero | tr '\0' '\1'; echo
event:
	@echo '{"Action":"run","Package":"p","Test":"TestA"}'; echo '{"Action":"pass","Package":"p","Test":"TestA"}'
	@printf '{"Action":"output","Package":"p","Output":"'; head -c 200000 /dev/zero | tr '\0' a; printf '%s\n' '\n"}'
`)
	for _, p := range []part{{target: "text", limit: time.Minute, checks: true}, {target: "event", limit: time.Minute}} {
		var events bytes.Buffer
		if err := p.run(t.Context(), &stream{to: &events}); err != nil {
			t.Fatal(err)
		}
		output := 0
		for line := range bytes.Lines(events.Bytes()) {
			var e event
			if err := json.Unmarshal(line, &e); err != nil || len(line) >= 64<<10 {
				t.Fatalf("%s: a line of %d bytes: %v", p.target, len(line), err)
			}
			output += len(e.Output)
		}
		if output != 200001 {
			t.Errorf("%s: %d bytes of output, want 200001", p.target, output)
		}
	}
}

// TestPartsAreTargets: every part is a target of the Makefile, and is in make test-all if the
// environment asks for it.
func TestPartsAreTargets(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	all := partsOf(true, func(string) string { return "build" })
	for i, p := range all {
		if !regexp.MustCompile(`(?m)^([a-z0-9-]+ )*` + p.target + `( [a-z0-9-]+)*:`).Match(text) {
			t.Errorf("the Makefile has no target %s", p.target)
		}
		if slices.ContainsFunc(all[:i], func(other part) bool { return other.target == p.target }) {
			t.Errorf("%s is there twice", p.target)
		}
	}
	for _, p := range parts {
		if p.limitAll == 0 || p.limitAll < p.limit {
			t.Errorf("%s has less time in make test-all", p.target)
		}
	}
	if n := len(partsOf(true, func(string) string { return "" })); n != len(all)-2 {
		t.Errorf("%d of %d parts without Kubernetes and OpenTofu", n, len(all))
	}
}

// TestRaceTestsExist: every test that race.txt names is in its package, and says what it is for.
func TestRaceTestsExist(t *testing.T) {
	text, err := os.ReadFile("race.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) < 3 {
			t.Errorf("%s: want a package, a test and what it is for", line)
			continue
		}
		found++
		if testrun.Source(t, filepath.Join("../..", words[0]), words[1]) == "" {
			t.Errorf("there is no %s in %s", words[1], words[0])
		}
	}
	if found < 10 {
		t.Errorf("race.txt names only %d tests", found)
	}
}

// names are the words of a variable of the Makefile.
func names(t *testing.T, variable string) []string {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	value := regexp.MustCompile(`(?m)^` + variable + ` := (.*)$`).FindSubmatch(text)
	if value == nil {
		t.Fatalf("the Makefile has no %s", variable)
	}
	return regexp.MustCompile(`\w+`).FindAllString(string(value[1]), -1)
}

// TestContainersExist: `go test -run` is content with a name that no test has.
func TestContainersExist(t *testing.T) {
	for _, name := range names(t, "CONTAINERS") {
		if testrun.Source(t, "../../integration/cluster", name) == "" {
			t.Errorf("there is no %s in integration/cluster", name)
		}
	}
}

// TestPackagesOfTheIndex: each package of the index that starts goroutines has a test in race.txt. No other test of the index runs under the race
// detector.
func TestPackagesOfTheIndex(t *testing.T) {
	race, err := os.ReadFile("race.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../index/*/*.go")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		at := "./index/" + filepath.Base(filepath.Dir(file)) + " "
		if strings.HasSuffix(file, "_test.go") || strings.Contains(string(race), at) || at == "./index/indextest " { // which only tests use
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			_, starts := n.(*ast.GoStmt)
			if call, ok := n.(*ast.SelectorExpr); starts || ok && call.Sel.Name == "Go" {
				t.Errorf("%s starts a goroutine: race.txt wants a test of its package", set.Position(n.Pos()))
			}
			return true
		})
	}
}

// TestRaceSaysThatItDoesNotRun: without a C compiler the part is skipped, and counted as such.
func TestRaceSaysThatItDoesNotRun(t *testing.T) {
	t.Chdir("../..")
	t.Setenv("CC", "no-such-compiler -m64")
	t.Setenv("CI", "")
	actions, output, results := outcomes(t, []part{{target: "race", lane: first, limit: time.Minute, again: true}})
	if name := "race/make race"; results[0].err != nil || actions[name] != "skip" || !strings.Contains(output[name], "needs a C compiler\n") {
		t.Errorf("%v, %v, %v", results[0].err, actions, output)
	}
}

// TestReader: the run fails with the command that gets its events, and ends with it.
func TestReader(t *testing.T) {
	makefile(t, "part:\n\t@touch ran\nlong:\n\t@while :; do echo more || exit; done\n")
	short := []part{{target: "part", limit: time.Minute, checks: true}}
	for script, fails := range map[string]bool{"cat > events": false, "cat > events; exit 3": true} {
		if err := count(t.Context(), short, []string{"sh", "-c", script}); (err != nil) != fails {
			t.Errorf("%s: %v", script, err)
		}
	}
	if events, err := os.ReadFile("events"); err != nil || !bytes.Contains(events, []byte(`"pass"`)) {
		t.Errorf("it got %s, %v", events, err)
	}
	err := count(t.Context(), []part{{target: "long", limit: time.Hour, checks: true}}, []string{"sh", "-c", "head -n 3 > events"})
	if !errors.Is(err, errParts) {
		t.Errorf("a part whose events nobody reads: %v", err)
	}
}
