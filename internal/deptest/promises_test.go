package deptest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/testrun"
)

// listed matches an item of the lists in docs/promises.md: whether only make test-all runs its
// tests, their folder, and their names.
var listed = regexp.MustCompile("(?m)^- (in `make test-all`, )?`\\./([a-z0-9/]+)`: ((?:`\\w+`,?\\s+)+)")

// named matches the name of a test in such an item.
var named = regexp.MustCompile(`\w+`)

// shownBy matches, in a row of the table of faults, the name of a test, or the folder
// of the tests named before it.
var shownBy = regexp.MustCompile("`(?:(Test\\w+)|\\./([a-z0-9/]+))`")

// TestPromisesNameTests: each test that shows a promise, or the outcome of a fault,
// is where the page says, and every fault has one.
func TestPromisesNameTests(t *testing.T) {
	root := repoRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "promises.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	runs := containersOfMakeTest(t)
	for section := range strings.SplitSeq(string(text), "\n### ") {
		title, _, _ := strings.Cut(section, "\n")
		always := 0
		for _, item := range listed.FindAllStringSubmatch(section, -1) {
			for _, name := range named.FindAllString(item[3], -1) {
				found++
				body := testrun.Source(t, filepath.Join(root, item[2]), name)
				if body == "" {
					t.Errorf("docs/promises.md: there is no %s in %s", name, item[2])
				}
				seldom := item[2] == "integration/k8s" || item[2] == "integration/cluster" && !slices.Contains(runs, name) ||
					strings.Contains(body, "testrun.NeedAll(t)")
				if seldom != (item[1] != "") {
					t.Errorf("docs/promises.md: only make test-all runs %s: %t; the page says %t", name, seldom, item[1] != "")
				}
				if !seldom {
					always++
				}
			}
		}
		if strings.HasPrefix(title, "Promise ") && always == 0 {
			t.Errorf("docs/promises.md: make test runs nothing that shows %s", title)
		}
	}
	_, happens, _ := strings.Cut(string(text), "| what happens |")
	for line := range strings.Lines(happens) {
		if strings.HasPrefix(line, "| ") && !strings.Contains(line, "` in `./") {
			t.Errorf("docs/promises.md: no test shows %s", line)
		}
		var names []string
		for _, m := range shownBy.FindAllStringSubmatch(line, -1) {
			if m[1] != "" {
				names = append(names, m[1])
				continue
			}
			for _, name := range names {
				found++
				if testrun.Source(t, filepath.Join(root, m[2]), name) == "" {
					t.Errorf("docs/promises.md: there is no %s in %s", name, m[2])
				}
			}
			if !strings.Contains(line, "` and `./") { // the same tests in two folders
				names = nil
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d tests are named", found)
	}
}

// containersOfMakeTest are the tests in containers that make test runs, as the Makefile says.
func containersOfMakeTest(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, tests, ok := strings.Cut(string(text), "\nCONTAINERS := ^(")
	tests, _, closed := strings.Cut(tests, ")$$\n")
	if !ok || !closed {
		t.Fatal("the Makefile does not say which tests in containers make test runs")
	}
	return strings.Split(tests, "|")
}
