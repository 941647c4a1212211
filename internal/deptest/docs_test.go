package deptest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// markdown calls f for each Markdown file of the repository.
func markdown(t *testing.T, f func(path, text string)) {
	t.Helper()
	root := repoRoot(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			f(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLinksLeadSomewhere: every relative link of every page has a target, and every
// anchor in a page is a heading there.
func TestLinksLeadSomewhere(t *testing.T) {
	anchors := map[string]map[string]bool{}
	markdown(t, func(path, text string) { anchors[path] = anchorsOf(text) })
	checked := 0
	markdown(t, func(path, text string) {
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", path, target)
				continue
			}
			if known, isPage := anchors[file]; anchor != "" && isPage {
				checked++
				if !known[anchor] {
					t.Errorf("%s: %s has no heading #%s", path, file, anchor)
				}
			}
		}
	})
	if checked < 50 {
		t.Errorf("only %d anchors were checked", checked)
	}
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+?)\s*$`)
	linking = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// anchorsOf returns the anchors that GitHub gives to the headings of a page: in lower case,
// without punctuation, with dashes for spaces. A heading that is repeated gets a number.
func anchorsOf(page string) map[string]bool {
	anchors := map[string]bool{}
	count := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		text := strings.ToLower(linking.ReplaceAllString(m[1], "$1"))
		anchor := strings.ReplaceAll(dropped.ReplaceAllString(text, ""), " ", "-")
		if n := count[anchor]; n > 0 {
			anchors[fmt.Sprintf("%s-%d", anchor, n)] = true
		} else {
			anchors[anchor] = true
		}
		count[anchor]++
	}
	return anchors
}

func TestAnchorsOf(t *testing.T) {
	page := "# One, *two*\n\n## A `b_c` - [d](e.md)\n\n```\n# code\n```\n\n### Größe\n\n## One two\n"
	got := anchorsOf(page)
	for _, want := range []string{"one-two", "a-b_c---d", "größe", "one-two-1"} {
		if !got[want] {
			t.Errorf("no #%s in %v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("%v", got)
	}
}

// TestArchitectureNamesEveryFolder: the page mentions each package folder.
func TestArchitectureNamesEveryFolder(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repoRoot(t), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, m := range markdownLink.FindAllStringSubmatch(string(text), -1) {
		linked[strings.TrimSuffix(strings.TrimPrefix(m[1], "../"), "/")] = true
	}
	for _, p := range listPackages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module+"/")
		// The internal packages of other services and commands are described on their own
		// pages.
		if head, _, found := strings.Cut(rel, "/internal/"); found && head != "services/searcher" {
			rel = head
		}
		// The parts of the integration tests and benchmarks need no lines of their own
		// either.
		if head, _, _ := strings.Cut(rel, "/"); head == "integration" || head == "bench" {
			rel = head
		}
		if !linkedOrParent(linked, rel) {
			t.Errorf("docs/architecture.md has no link to %s", rel)
		}
	}
}

// linkedOrParent reports whether the folder, or the package folder it is a
// part of (buckettest of bucket, v1 of a proto package), is linked.
func linkedOrParent(linked map[string]bool, rel string) bool {
	return linked[rel] || (strings.Count(rel, "/") >= 2 && !strings.Contains(rel, "/internal/") && linkedOrParent(linked, filepath.ToSlash(filepath.Dir(rel))))
}

// TestDecisionsAreNumbered: records of decisions have distinct, unbroken
// numbers, and the architecture page links each that still holds.
func TestDecisionsAreNumbered(t *testing.T) {
	root := repoRoot(t)
	files, err := filepath.Glob(filepath.Join(root, "docs", "adr", "[0-9]*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no records of decisions: %v", err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		name := filepath.Base(file)
		if want := numbered(i + 1); !strings.HasPrefix(name, want) {
			t.Errorf("%s: the numbers of records have no gaps: this one is to begin with %s", name, want)
		}
		record, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "adr/"+name) && !strings.Contains(string(record), "Status: superseded") {
			t.Errorf("docs/architecture.md has no link to %s", name)
		}
	}
}

func numbered(n int) string { return fmt.Sprintf("%04d-", n) }
