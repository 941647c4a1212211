package search_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/testrun"
)

const conformanceFile = "testdata/conformance.txt"

// conformance is one case of the file: a query, and what it must mean.
type conformance struct {
	line    int
	kind    string // zoekt, v1 or v2
	text    string // exactly as in the file
	query   string
	meaning []string
}

func (c *conformance) version() int {
	if c.kind == "v2" {
		return 2
	}
	return 1
}

// conformanceCases reads the cases. Lines outside of all cases are kept in other, by the number of cases before them.
func conformanceCases(t *testing.T) (cases []conformance, other map[int][]string) {
	t.Helper()
	data, err := os.ReadFile(conformanceFile)
	if err != nil {
		t.Fatal(err)
	}
	other = map[int][]string{}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		kind, text, header := strings.Cut(line, " |")
		switch {
		case header && slices.Contains([]string{"zoekt", "v1", "v2"}, kind):
			text = strings.TrimPrefix(text, " ")
			c := conformance{line: i + 1, kind: kind, text: text, query: text}
			if quoted, ok := strings.CutPrefix(text, "`"); ok {
				if c.query, err = strconv.Unquote(strings.TrimSuffix(quoted, "`")); err != nil {
					t.Fatalf("line %d: %v", i+1, err)
				}
			}
			cases = append(cases, c)
		case strings.HasPrefix(line, "  ") && len(cases) > 0:
			last := &cases[len(cases)-1]
			last.meaning = append(last.meaning, strings.TrimSpace(line))
		default:
			other[len(cases)] = append(other[len(cases)], line)
		}
	}
	return cases, other
}

// TestConformance checks what each query of the file means: the parser gives the tree or the error, and the oracle and
// a shard find the files and lines.
func TestConformance(t *testing.T) {
	cases, other := conformanceCases(t)
	if len(cases) < 400 {
		t.Errorf("only %d cases", len(cases))
	}
	corpus := conformanceCorpus()
	oracle, engine := indextest.NewOracle(corpus), engine(openShard(t, buildShard(t, corpus)))
	seen := map[string]bool{}
	for i := range cases {
		c := &cases[i]
		if key := fmt.Sprint(c.version(), c.query); seen[key] {
			t.Errorf("line %d: %s is there twice", c.line, c.text)
		} else {
			seen[key] = true
		}
		got, err := conforms(oracle, engine, c)
		switch {
		case err != nil:
			t.Errorf("line %d: %s: %v", c.line, c.text, err)
		case testrun.Update():
			c.meaning = got
		case !slices.Equal(got, c.meaning):
			t.Errorf("line %d: %s\n got %s\nwant %s\nIf the new meaning is right, run the test with -update.", c.line, c.text, strings.Join(got, "\n     "), strings.Join(c.meaning, "\n     "))
		}
	}
	if testrun.Update() {
		writeConformance(t, cases, other)
	}
}

// conforms returns what a query means, in the form of the file. The error reports a difference between shard and
// oracle.
func conforms(oracle *indextest.Oracle, engine indextest.Engine, c *conformance) ([]string, error) {
	q, asks, err := query.ParseAnswer(c.query, query.ParseOptions{SyntaxVersion: c.version(), Language: conformanceLanguage})
	if err != nil {
		syntax, ok := errors.AsType[*query.SyntaxError](err)
		if !ok {
			return []string{"error " + err.Error()}, nil
		}
		return []string{fmt.Sprintf("error %d found %s; expected %s", syntax.Position, syntax.Found, syntax.Expected)}, nil
	}
	meaning := []string{"reads " + q.String()}
	if asks != (query.Answer{}) {
		meaning = append(meaning, fmt.Sprintf("asks  count %d, timeout %s, select %d", asks.Count, asks.Timeout, asks.Select))
	}
	if q, err = oracle.Resolve(q); err != nil {
		return nil, err
	}
	want, err := oracle.Eval(q)
	if err != nil {
		return nil, err
	}
	got, err := engine(q)
	if err != nil {
		return nil, err
	}
	a, b := foundPlaces(got), foundPlaces(want)
	if !slices.Equal(a, b) {
		return nil, fmt.Errorf("the shard finds %q, the oracle %q", a, b)
	}
	if len(a) == 0 {
		a = []string{"nothing"}
	}
	return append(meaning, "finds "+strings.Join(a, "  ")), nil
}

// foundPlaces lists the files in order, with the lines on which matches in the content begin.
func foundPlaces(results []indextest.Result) (places []string) {
	for _, r := range results {
		content := ""
		for _, d := range documentsAt(r.Repo, r.Path) {
			if slices.Contains(d.Branches, r.Branches[0]) {
				content = string(d.Content)
			}
		}
		var lines []int
		for _, m := range r.Content {
			lines = append(lines, 1+strings.Count(content[:m.Start], "\n"))
		}
		places = append(places, foundPlace(r.Repo, r.Path, r.Branches, lines))
	}
	slices.Sort(places)
	return places
}

func foundPlace(repo, path string, branches []string, lines []int) string {
	place := repo + "/" + path
	if !slices.Contains(branches, "main") {
		place += "@" + branches[0]
	}
	for i, line := range slices.Compact(lines) {
		place += string(":,"[min(i, 1)]) + strconv.Itoa(line)
	}
	return place
}

func writeConformance(t *testing.T, cases []conformance, other map[int][]string) {
	t.Helper()
	var b strings.Builder
	for i := range len(cases) + 1 {
		for _, line := range other[i] {
			b.WriteString(line + "\n")
		}
		if i == len(cases) {
			break
		}
		b.WriteString(strings.TrimRight(cases[i].kind+" | "+cases[i].text, " ") + "\n")
		for _, line := range cases[i].meaning {
			b.WriteString("  " + line + "\n")
		}
	}
	if err := os.WriteFile(conformanceFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// conformanceLanguage knows the languages of the corpus by their names and aliases.
func conformanceLanguage(name string) string {
	return map[string]string{
		"go": "Go", "golang": "Go", "c": "C", "markdown": "Markdown", "md": "Markdown", "python": "Python", "py": "Python", "text": "Text",
	}[strings.ToLower(name)]
}

func documentsAt(repo, path string) (all []indextest.Document) {
	for _, r := range conformanceCorpus().Repos {
		for _, d := range r.Documents {
			if r.Name == repo && d.Path == path {
				all = append(all, d)
			}
		}
	}
	return all
}

// conformanceCorpus has two repos with everything that the cases look for.
func conformanceCorpus() *indextest.Corpus {
	pond := indextest.Repo{
		Name: "pond", Branches: []string{"main", "release/1"}, Public: true, Meta: map[string]string{"team": "infra", "owner": "a b"},
	}
	lake := indextest.Repo{Name: "lake", Branches: []string{"main"}, Archived: true, Fork: true, Meta: map[string]string{"team": "web"}}
	for _, f := range conformanceFiles {
		repo := &pond
		if f.repo == "lake" {
			repo = &lake
		}
		repo.Documents = append(repo.Documents, indextest.Document{
			Path: f.path, Content: []byte(f.content), Branches: f.branches, Language: f.language,
		})
	}
	pond.Documents = append(pond.Documents, indextest.Document{Path: "bin/data", Branches: []string{"main", "release/1"}, Skipped: true})
	return &indextest.Corpus{Name: "conformance", Repos: []indextest.Repo{lake, pond}}
}

var (
	onMain    = []string{"main"}
	onRelease = []string{"release/1"}
	onBoth    = []string{"main", "release/1"}
)

// conformanceFiles are the files of the corpus, in order of repo and path.
var conformanceFiles = []struct {
	repo, path string
	branches   []string
	language   string
	content    string
}{
	{"lake", "LICENSE", onMain, "Text", "License of the lake: do what you like.\nNo fish were harmed.\n"},
	{"lake", "fish.go", onMain, "Go", "package lake\n\n// Swim is not here.\nfunc Bird() {}\n"},
	{"lake", "go.mod", onMain, "Go Module", "module lake\n\ngo 1.26\n"},
	{"lake", "lake.md", onMain, "Markdown", "# The lake\n\nA bird and a fish.\n"},
	{"pond", "README.md", onBoth, "Markdown", "# The pond\n\nFish swim in the pond. A fish is no bird.\nSee http://example.com/fish?x=1 and path:x.\n"},
	{"pond", "docs/a space.txt", onBoth, "Text", "a file with a space in its name\n"},
	{"pond", "docs/weird.txt", onBoth, "Text", strings.Join([]string{
		"foo(bar baz) and foo(bar) and foobar", `say "hi" to f:main file:x case:yes meta:x`, "a -Wall option dashes-- end",
		"sub-pixel or super-pixel", `[a-z]+ (x|y) a.b a*b \d 123 aaa`, "日本語 Ünïcode É é", "300 K is a temperature: \u212aelvin", "abc def abcde Abc (fish )",
		"ſign and sign", "begin", "middle", "end\\\\d", "oracle of orchids abccase:yes CASE:yes types:x paths:x \"path:x\" rev:main count:5 abcf:main (f:main)",
	}, "\n")},
	{"pond", "docs/日本.md", onBoth, "Markdown", "caf\u00e9\n"},
	{"pond", "src/fish.go", onRelease, "Go", "package pond\n\n// An old fish.\ntype Fish int\n"},
	{"pond", "src/fish.go", onMain, "Go", "package pond\n\n// Fish swims. TODO: feed it\ntype Fish struct{ name string }\n\nfunc NewFish(name string) *Fish { return &Fish{name: name} }\n\nfunc (f *Fish) Swim() { swim(f, 1) }\n\nfunc swim(f *Fish, how int) {}\n"},
	{"pond", "src/fish_test.go", onMain, "Go", "package pond\n\nimport \"testing\"\n\nfunc TestSwim(t *testing.T) { NewFish(\"x\").Swim() }\n"},
	{"pond", "src/pond.c", onBoth, "C", "#include <stdio.h>\n#define MAX_FISH 10\nstatic int kmalloc(int n) { return n; }\nint main(void) { printf(\"fish\"); return kmalloc(MAX_FISH); }\n"},
	{"pond", "vendor/lib/lib.py", onBoth, "Python", "import\ndef swim(fish):\n    return fish  # (abc)(de)\n"},
}
