package indextest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/internal/testrun"
)

// oracleEngine is a correct engine.
func oracleEngine(c *Corpus) Engine {
	return func(q query.Q) ([]Result, error) {
		results, err := Eval(c, q)
		slices.Reverse(results)
		return results, err
	}
}

func TestCheckAcceptsTheOracle(t *testing.T) {
	for seed := range uint64(20) {
		c := Random(seed)
		Check(t, c, Queries(c, seed, 2*len(kinds)), oracleEngine(c))
	}
}

func TestCompareSeesEveryDifference(t *testing.T) {
	broken := map[string]struct {
		change func([]Result) []Result
		want   string
	}{
		"a result less":     {func(r []Result) []Result { return r[1:] }, "missing: "},
		"a result more":     {func(r []Result) []Result { return append(r, Result{Repo: "z", Path: "z"}) }, "too much: "},
		"another path":      {func(r []Result) []Result { r[0].Path += "x"; return r }, "missing: "},
		"another branch":    {func(r []Result) []Result { r[0].Branches = []string{"x"}; return r }, "missing: "},
		"a range less":      {func(r []Result) []Result { r[0].Content = nil; return r }, "other ranges: "},
		"a range moved":     {func(r []Result) []Result { r[0].Content = []Range{{1, 4}}; return r }, "other ranges: "},
		"a range too far":   {func(r []Result) []Result { r[0].Content = []Range{{0, 4000}}; return r }, "outside of the text"},
		"a name range more": {func(r []Result) []Result { r[0].Name = []Range{{0, 1}}; return r }, "other ranges: "},
	}
	for what, b := range broken {
		diff := Compare(small, "foo", func(q query.Q) ([]Result, error) {
			results, err := Eval(small, q)
			return b.change(results), err
		})
		if !strings.Contains(diff, b.want) {
			t.Errorf("%s: got %q, want it to say %q", what, diff, b.want)
		}
	}
	diff := Compare(small, "foo", func(query.Q) ([]Result, error) { return nil, query.ErrUnresolved })
	if !strings.Contains(diff, "engine's error") {
		t.Errorf("an error: got %q", diff)
	}
}

// TestRandomHasWhatItPromises checks that the corpora have every oddity.
func TestRandomHasWhatItPromises(t *testing.T) {
	seen := map[string]int{}
	contents := map[string]string{} // from a content to its first repo and path
	for seed := range uint64(60) {
		c := Random(seed)
		if !reflect.DeepEqual(c, Random(seed)) {
			t.Fatalf("seed %d gives two corpora", seed)
		}
		clear(contents)
		for _, r := range c.Repos {
			note(seen, "empty repo", len(r.Documents) == 0)
			for i, d := range r.Documents {
				s := string(d.Content)
				first, again := contents[s]
				note(seen, "shared in a repo", again && len(s) > 0 && strings.HasPrefix(first, r.Name+":"))
				note(seen, "shared over repos", again && len(s) > 0 && !strings.HasPrefix(first, r.Name+":"))
				contents[s] = r.Name + ":" + d.Path
				note(seen, "versions of a path", i > 0 && r.Documents[i-1].Path == d.Path)
				note(seen, "several branches", len(d.Branches) > 1)
				note(seen, "skipped", d.Skipped)
				note(seen, "empty", !d.Skipped && s == "")
				note(seen, "one byte", len(s) == 1)
				note(seen, "several superblocks", len(s) > 8192)
				note(seen, "CRLF", strings.Contains(s, "\r\n"))
				note(seen, "no newline at the end", s != "" && !strings.HasSuffix(s, "\n"))
				note(seen, "Kelvin sign", strings.Contains(s, "\u212A"))
				note(seen, "long s", strings.Contains(s, "ſ"))
				note(seen, "CJK", strings.Contains(s, "日本"))
				note(seen, "not UTF-8", strings.ToValidUTF8(s, "") != s)
				note(seen, "newline in a path", strings.Contains(d.Path, "\n"))
				note(seen, "path not UTF-8", strings.ToValidUTF8(d.Path, "") != d.Path)
				if strings.ContainsRune(s, 0) || len(d.Branches) == 0 || d.Skipped && s != "" {
					t.Fatalf("seed %d: %q is not a right document", seed, d.Path)
				}
			}
		}
	}
	for what, n := range seen {
		if n == 0 {
			t.Errorf("no corpus has: %s", what)
		}
	}
}

func note(seen map[string]int, what string, is bool) {
	if seen[what] += 0; is {
		seen[what]++
	}
}

// TestWordsHasWhatItPromises checks that the corpora have every oddity.
func TestWordsHasWhatItPromises(t *testing.T) {
	seen := map[string]int{}
	for _, n := range append(slices.Clone(lengths), hugeWord) {
		seen[fmt.Sprintf("word of %d bytes", n)] = 0
	}
	for n := range 6 {
		for _, what := range []string{"word %d bytes before a superblock", "word %d bytes into a superblock"} {
			seen[fmt.Sprintf(what, n)] = 0
		}
		for _, what := range []string{"word %d bytes before a block", "word %d bytes into a block"} {
			seen[fmt.Sprintf(what, n+1)] = 0
		}
	}
	for _, n := range []int{superblockSize - 2, superblockSize - 1, 0, 1} {
		seen[fmt.Sprintf("wide rune at %d of a superblock", n)] = 0
	}
	for seed := range uint64(120) {
		c := Words(seed)
		if !reflect.DeepEqual(c, Words(seed)) {
			t.Fatalf("seed %d gives two corpora", seed)
		}
		for _, r := range c.Repos {
			for _, d := range r.Documents {
				noteWords(seen, string(d.Content))
				note(seen, "low priority", rank.LowPriority([]byte(d.Path)))
				note(seen, "several branches", len(d.Branches) > 1)
				note(seen, "skipped", d.Skipped)
				note(seen, "no word", len(d.Content) > 0 && !bytes.ContainsFunc(d.Content, func(r rune) bool { return r < utf8.RuneSelf && ngram.IsWord(byte(r)) }))
			}
		}
	}
	for what, n := range seen {
		if n == 0 {
			t.Errorf("no corpus has: %s", what)
		}
	}
}

var wordPattern = regexp.MustCompile(`\w+`)

func noteWords(seen map[string]int, s string) {
	has := func(what string, n int) { seen[fmt.Sprintf(what, n)]++ }
	for _, loc := range wordPattern.FindAllStringIndex(s, -1) {
		start, end := loc[0], loc[1]
		if slices.Contains(lengths, end-start) || end-start == hugeWord {
			has("word of %d bytes", end-start)
		}
		if border := (start/superblockSize + 1) * superblockSize; border < end {
			has("word %d bytes before a superblock", border-start)
			has("word %d bytes into a superblock", end-border)
		}
		if border := (start/blockSize + 1) * blockSize; border < end {
			has("word %d bytes before a block", border-start)
			has("word %d bytes into a block", end-border)
		}
		if start > 0 && start%superblockSize == 0 {
			has("word %d bytes before a superblock", 0)
		}
		if end%superblockSize == 0 {
			has("word %d bytes into a superblock", 0)
		}
		note(seen, "word at both ends", start == 0 && end == len(s))
		for name, beside := range oddBesides {
			note(seen, name+" before a word", strings.HasSuffix(s[:start], beside))
			note(seen, name+" after a word", strings.HasPrefix(s[end:], beside))
		}
	}
	for _, loc := range wideRunes.FindAllStringIndex(s, -1) {
		if loc[0] > 3 {
			has("wide rune at %d of a superblock", loc[0]%superblockSize)
		}
	}
	note(seen, "CRLF", strings.Contains(s, "\r\n"))
	note(seen, "one long line", len(s) > superblockSize && !strings.Contains(s, "\n"))
	note(seen, "repetition", strings.Contains(s, "aaaa"))
}

var oddBesides = map[string]string{"Kelvin sign": "\u212A", "long s": "\u017F", "no UTF-8": "\xff", "CJK": "日", "no-break space": "\u00a0"}

var wideRunes = regexp.MustCompile(`[\x{212A}\x{17F}]`)

// TestQueries checks that all queries parse, that they have every kind of node,
// and that most of each kind find something in some corpus.
func TestQueries(t *testing.T) {
	nodes := map[string]bool{}
	found, made := map[string]int{}, map[string]int{}
	for seed := range testrun.Rounds[uint64](10, 30) {
		c := Random(seed)
		if seed%2 == 1 {
			c = Words(seed)
		}
		o := NewOracle(c)
		for _, q := range Queries(c, seed, 2*len(kinds)) {
			tree, err := query.Parse(q.Text, query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion})
			if err != nil {
				t.Fatalf("query %d of seed %d (%s): %q: %v", q.Number, seed, q.Kind, q.Text, err)
			}
			query.Walk(tree, func(n query.Q) bool { nodes[reflect.TypeOf(n).Elem().Name()] = true; return true })
			if tree, err = o.Resolve(tree); err != nil {
				t.Fatal(err)
			}
			results, err := o.Eval(tree)
			if err != nil {
				t.Fatalf("%s: %v", q.Text, err)
			}
			made[q.Kind]++
			found[q.Kind] += min(1, len(results))
		}
	}
	for _, node := range []string{"And", "Or", "Not", "Const", "Substring", "Regexp", "Symbol", "Repo", "Branch", "Language", "Meta", "RepoFact", "Type"} {
		if !nodes[node] {
			t.Errorf("no query has a node %s", node)
		}
	}
	for _, k := range kinds {
		if !k.rare && 7*found[k.name] < made[k.name] {
			t.Errorf("only %d of %d queries of kind %q find anything", found[k.name], made[k.name], k.name)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, text := range []string{"a", "a b", `a"b`, `a\b`, "(", ")", "-x", "or", "file:x", "a\nb", `\`, `"`, "日本 (", "x{2}", "\t"} {
		q, err := query.Parse("case:yes "+Quote(text), query.ParseOptions{})
		want := &query.Substring{Pattern: text, CaseSensitive: true}
		if err != nil || !reflect.DeepEqual(q, query.Q(want)) {
			t.Errorf("Quote(%q) = %s, parsed to %v, %v", text, Quote(text), q, err)
		}
	}
}

func TestFromFolder(t *testing.T) {
	dir := t.TempDir()
	for path, content := range map[string]string{
		"b/x.go": "package x\n", "a.txt": "text", "binary": "a\x00b", ".git/config": "hidden", "large": strings.Repeat("x", maxFileSize+1),
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	c, err := FromFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range c.Repos[0].Documents {
		got = append(got, d.Path+"="+string(d.Content)+"="+d.Language)
	}
	want := []string{"a.txt=text=Text", "b/x.go=package x\n=Go", "binary==", "large=="}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := FromFolder(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing folder: no error")
	}
}
