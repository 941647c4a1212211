package search_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
)

// TestBestLines: of a file with more matches than are shown, the best lines are shown, in their order. The file has many other lines, so
// that words lead to parts of it.
func TestBestLines(t *testing.T) {
	filler := strings.Repeat("\tvalue := compute(a, b)\n", 400) // 9 KiB
	for _, c := range []struct {
		query, lines string
		most         int
		want         string
	}{
		{
			"match:any how does the router match a route by host",
			"// Copyright the authors. The use of this source code is governed by a license\n// that can be found in the LICENSE file. How to use it by itself is there.\nfunc (r *Route) Host(tpl string) *Route {\n\treturn r.match(host, tpl)\n}\n// the host of a route must match the one that the router has\n", 6,
			"// the host of a route must match the one that the router has",
		},
		{"lock file version", "file one\nfile two\nthe lock file\nfile three\nthe version of a lock file\nlocked profile, inversion\n", 3, "the version of a lock file"},
		{"file version", "a file\na file\na file\na version\na file\n", 1, "a version"},
		{"render", "\trender()\n\tx := prerendered\nfunc render() {\n\trender()\n", 1, "func render() {"},
		{"render", "\tprerendered()\n\t// render is slow\n\trender()\n", 1, "\trender()"},
		{"close file", "close the door to the file\nclosing a close file\nfile to close\nfile or close\n", 2, "closing a close file"},
		{"render", "\trender(1)\n\trender(2)\n\trender(3)\n", 2, "\trender(1)|\trender(2)"},
		{"none remote users", "none\n" + strings.Repeat("remote\nusers\n", 8) + "remote, or the users\n", 2, "remote, or the users"},
		{"parse chunked encoding", "\tx.parseChunkedEncoding(x)\n\ty := parseChunkedEncoding\nfunc parseChunkedEncoding(x int) {\n\tx.parseChunkedEncoding(x)\n", 3, "func parseChunkedEncoding(x int) {"},
		{"chunked encoding", "\tx := chunked_encoding + chunked_encoding\ntype _chunked_encoding_ struct {\n\tx := chunked_encoding\n", 2, "type _chunked_encoding_ struct {"},
		{"read file", "\tread file here and there, and in a line that goes on after both of the words were found\n\tread file here\n", 2, "\tread file here"},
		{"read file", "\tread file read file read file\n\tread the file, read file\n\tread file\n", 2, "\tread file"},
		{`"render\\("`, "\t// render(1)\n\trender(2)\n\trender(3)\n", 2, "\trender(2)|\trender(3)"},
		{`"re[n]der\\("`, "\t// render(1)\n\trender(2)\n\trender(3)\n", 2, "\trender(2)|\trender(3)"},
	} {
		for _, before := range []int{0, 1, 3} {
			for _, after := range []int{0, 2} {
				text := strings.Repeat(filler, before) + c.lines + strings.Repeat(filler, after)
				s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
					{Path: "x.go", Content: []byte(text), Branches: []string{"main"}, Language: "Go"},
				}}}}))
				for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
					opts := search.Options{Mode: mode, MaxFiles: 1, MaxMatchesPerFile: c.most}
					if got := shownLines(mustSearch(t, s, parseNewest(t, c.query), opts)); got != c.want {
						t.Errorf("%s, up to %d, mode %d, after %d and before %d bytes:\n%s\nwant\n%s", c.query, c.most, mode, before*len(filler), after*len(filler), got, c.want)
					}
				}
			}
		}
	}
}

// TestBestLinesOfBodies: what a line defines may show only in the lines after it, such as a function of C.
func TestBestLinesOfBodies(t *testing.T) {
	text := strings.Repeat("int curl_easy_send(void *curl, int n);\n", 20) + "int curl_easy_send(void *curl,\n    int n)\n{\n  return n;\n}\n"
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
		{Path: "x.c", Content: []byte(text), Branches: []string{"main"}, Language: "C"},
	}}}}))
	got := shownLines(mustSearch(t, s, parseNewest(t, "curl easy send"), search.Options{MaxFiles: 1, MaxMatchesPerFile: 3}))
	if want := "int curl_easy_send(void *curl,"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestBestLinesFarBehind: the best line of a long file is shown, also of a file whose start has matches enough.
func TestBestLinesFarBehind(t *testing.T) {
	text := strings.Repeat("the read, and the file"+strings.Repeat(" of it", 20)+"\n", 800) // 112 KiB
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
		{Path: "x.go", Content: []byte(text[:100<<10] + "\nfunc readFile() {\n" + text), Branches: []string{"main"}, Language: "Go"},
	}}}}))
	for _, words := range []string{"read file", "readfile", "match:any read file header"} {
		got := shownLines(mustSearch(t, s, parseNewest(t, words), search.Options{MaxFiles: 1, MaxMatchesPerFile: 2}))
		if want := "func readFile() {"; got != want {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
}

// TestMostLines: a bound on lines shows the best ones, with all of their matches.
func TestMostLines(t *testing.T) {
	text := strings.Repeat("sea, sea and sea\n", 30) + "func sea(sea int) {\n" + strings.Repeat("the sea\n", 30)
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
		{Path: "x.go", Content: []byte(text), Branches: []string{"main"}, Language: "Go"},
	}}}}))
	for _, words := range []string{"sea", `"sea"`, "s[e]a", "sea or none"} {
		for _, most := range []int{1, 2, 40, 61, 1000} {
			for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
				opts := search.Options{Mode: mode, MaxFiles: 1, MaxMatchesPerFile: 1000, MaxLinesPerFile: most}
				res := mustSearch(t, s, parseNewest(t, words), opts)
				got, ranges := shownLines(res), 0
				for _, c := range res.Files[0].Chunks {
					ranges += len(c.Ranges)
				}
				if n := strings.Count(got, "|") + 1; n != min(most, 61) || !strings.Contains(got, "func sea(sea int) {") || ranges != strings.Count(got, "sea") {
					t.Errorf("%s, up to %d lines, mode %d: %d lines with %d matches:\n%s", words, most, mode, n, ranges, got)
				}
			}
		}
	}
}

// parseNewest parses a query in the newest syntax.
func parseNewest(t *testing.T, text string) query.Q {
	t.Helper()
	q, err := query.Parse(text, query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion})
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return q
}

// shownLines returns the lines shown of the first file.
func shownLines(res *search.Result) string {
	var lines []string
	for _, c := range res.Files[0].Chunks {
		lines = append(lines, strings.Split(strings.TrimSuffix(string(c.Content), "\n"), "\n")...)
	}
	return strings.Join(lines, "|")
}

// TestMarksOfLetters: a letter within a word is not marked in a line that has a rarer text, unless all matches are shown.
func TestMarksOfLetters(t *testing.T) {
	text := "a data table\n" + strings.Repeat("a\n", 50) + "a router has a data table\n"
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
		{Path: "x.txt", Content: []byte(text), Branches: []string{"main"}},
	}}}}))
	for most, want := range map[int]string{4: "[-100 -99] [0 1] [2 8] [13 14]", 1000: ""} {
		res := mustSearch(t, s, parseNewest(t, "match:any a router"), search.Options{MaxFiles: 1, MaxMatchesPerFile: most})
		if want == "" {
			if n := strings.Count(text, "a") + 1; len(shownRanges(res)["x.txt"]) != n || res.Files[0].MatchCount != n {
				t.Errorf("%d of %d ranges, %+v", len(shownRanges(res)["x.txt"]), n, res.Files[0])
			}
			continue
		}
		var got []string
		last := strings.LastIndex(text, "a router")
		for _, r := range shownRanges(res)["x.txt"] {
			got = append(got, fmt.Sprint([]int{r.Start - last, r.End - last}))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("up to %d: %s, want %s", most, strings.Join(got, " "), want)
		}
	}
}
