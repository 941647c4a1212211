package deptest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// listed matches an item of the lists in docs/promises.md: a folder and its tests.
var listed = regexp.MustCompile("(?m)^- `\\./([a-z0-9/]+)`: ((?:`\\w+`,?\\s+)+)")

// named matches the name of a test in such an item.
var named = regexp.MustCompile(`\w+`)

// shownBy matches, in a row of the table of faults, the name of a test, or the folder
// of the tests named before it.
var shownBy = regexp.MustCompile("`(?:((?:Test|Benchmark)[A-Z][A-Za-z]*)|\\./([a-z0-9/]+))`")

// TestPromisesNameTests: each test that shows a promise, or the outcome of a fault,
// is where the page says, and every fault has one.
func TestPromisesNameTests(t *testing.T) {
	root := repoRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "promises.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, item := range listed.FindAllStringSubmatch(string(text), -1) {
		for _, name := range named.FindAllString(item[2], -1) {
			found++
			if !hasTest(t, filepath.Join(root, item[1]), name) {
				t.Errorf("docs/promises.md: there is no %s in %s", name, item[1])
			}
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
				if !hasTest(t, filepath.Join(root, m[2]), name) {
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

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
