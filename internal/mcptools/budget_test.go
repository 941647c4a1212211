package mcptools

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/testrun"
)

// corpusWords are words of corpora: frequent and rare, long, hostile.
var corpusWords = []string{
	"err", "nil", "func", "needle", "Shutdown", "a", "\\", `"`, "<b>", "\t", "日本", "\xff\xfe", "\x1b[31m", strings.Repeat("long", 300),
}

// randomLibrary makes some repos of hostile names and contents.
func randomLibrary(t testing.TB, seed uint64) map[string]map[string]string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	repos := make(map[string]map[string]string)
	count, sizes := 1+rng.IntN(4), []int{5, 60, 400}
	if seed%6 == 0 { // too many repos to name each
		count, sizes = 250, []int{1, 2, 5}
	}
	for i := range count {
		files := make(map[string]string)
		for j := range 1 + rng.IntN(sizes[rng.IntN(3)]) {
			dir := []string{"", "src/", "a/b/c/d/e/f/g/", "odd\nname/", "\xff/", strings.Repeat("deep/", 40), `quo"te/`, "tab\t/"}[rng.IntN(8)]
			var content strings.Builder
			for range rng.IntN([]int{3, 30, 300}[rng.IntN(3)]) {
				for range rng.IntN(8) {
					content.WriteString(corpusWords[rng.IntN(len(corpusWords))] + " ")
				}
				content.WriteString([]string{"\n", "\r\n"}[rng.IntN(2)])
			}
			files[fmt.Sprintf("%sf%d.go", dir, j)] = content.String()
		}
		repos[fmt.Sprintf("host/org/repo%d", i)] = files
	}
	return repos
}

// totals counts matches and files by brute force.
func totals(repos map[string]map[string]string, word string) (matches, files uint64) {
	find := regexp.MustCompile(regexp.QuoteMeta(word))
	for _, of := range repos {
		for _, content := range of {
			if n := uint64(len(find.FindAllString(content, -1))); n > 0 {
				matches, files = matches+n, files+1
			}
		}
	}
	return matches, files
}

// TestBudgetAndTotals: for any call, no form of an answer exceeds its budget, the shown
// and the left-out results add up to the exact totals, and no text of a file can pass for
// another part of the answer.
func TestBudgetAndTotals(t *testing.T) {
	var all []map[string]map[string]string
	var sessions []*mcp.ClientSession
	for seed := range uint64(6) {
		all = append(all, randomLibrary(t, seed+1))
		sessions = append(sessions, connect(t, newLibrary(t, all[seed])))
	}
	rapid.Check(t, func(rt *rapid.T) {
		corpus := rapid.IntRange(0, len(all)-1).Draw(rt, "corpus")
		repos, session := all[corpus], sessions[corpus]
		tokens := rapid.IntRange(-5, 27_000).Draw(rt, "max_tokens")
		if rapid.Bool().Draw(rt, "small") {
			tokens = rapid.IntRange(1000, 1500).Draw(rt, "few")
		}
		// Only words that are valid UTF-8, since arguments are.
		searched := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"err", "nil", "needle", "a", `\`, `"`, "日本", "absent", "<b>"}), 1, 8, rapid.ID).Draw(rt, "patterns")
		detail := rapid.SampledFrom([]string{"", "auto", "lines", "short", "numbers", "files", "directories"}).Draw(rt, "detail")
		r := good(rt, session, "grep", args{"patterns": searched, "literal": true, "detail": detail, "max_tokens": tokens, "context": rapid.IntRange(0, 3).Draw(rt, "context")})
		checkForm(rt, r, tokens)
		of := r.results(rt)
		for i, word := range searched {
			matches, files := totals(repos, word)
			checkTotals(rt, of.Results[i], matches, files, repos, word)
		}
		for tool, arguments := range map[string]args{
			"glob":       {"patterns": []string{"**"}},
			"list_tree":  {"repo": "host/org/repo0", "depth": rapid.IntRange(0, 30).Draw(rt, "depth")},
			"list_repos": {},
			"search":     {"query": searched[0] + " err"},
			"read_file":  {"files": someFiles(repos, 9)},
		} {
			if strings.ContainsAny(searched[0], `"\<`) && tool == "search" {
				continue
			}
			arguments["max_tokens"] = tokens
			checkForm(rt, good(rt, session, tool, arguments), tokens)
		}
	})
}

// checkForm checks what holds for every answer.
func checkForm(t *rapid.T, r reply, tokens int) {
	t.Helper()
	limit := newBudget(tokens).bytes()
	if limit > mostTokens*bytesPerToken || tokens > leastTokens && limit > tokens*bytesPerToken {
		t.Fatalf("a budget of %d bytes for %d tokens", limit, tokens)
	}
	if len(r.text) > limit || len(r.data) > limit {
		t.Fatalf("text of %d bytes and data of %d, the budget has %d", len(r.text), len(r.data), limit)
	}
	if !utf8.ValidString(r.text) || strings.ContainsFunc(r.text, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }) {
		t.Fatalf("control characters or no UTF-8 in %q", r.text)
	}
}

// checkTotals checks one result against brute force.
func checkTotals(t *rapid.T, of found, matches, files uint64, repos map[string]map[string]string, word string) {
	t.Helper()
	if of.Matches != matches || of.Files != files || of.LowerBounds {
		t.Fatalf("%q in %s: %d matches in %d files, want %d in %d", of.Query, of.Detail, of.Matches, of.Files, matches, files)
	}
	var shownMatches, shownFiles uint64
	for _, repo := range of.Counts {
		shownMatches, shownFiles = shownMatches+repo.Matches, shownFiles+repo.Files
		var inDirs uint64
		for _, d := range repo.Directories {
			inDirs += d.Matches
		}
		if len(repo.Directories) > 0 && inDirs != repo.Matches {
			t.Fatalf("directories of %s have %d matches, the repo %d", repo.Repo, inDirs, repo.Matches)
		}
	}
	for _, repo := range of.Repos {
		shownFiles += uint64(len(repo.Files))
		for _, f := range repo.Files {
			if of.Detail == Files {
				shownMatches += f.Matches
			}
			lines := strings.Split(repos[repo.Repo][meant(f.Path)], "\n")
			for _, l := range f.Lines {
				shownMatches += uint64(strings.Count(lines[l.Number-1], word))
			}
			for _, n := range f.Numbers {
				shownMatches += uint64(strings.Count(lines[n-1], word))
			}
		}
	}
	left := leftOut{}
	if of.LeftOut != nil {
		left = *of.LeftOut
	}
	if shownFiles+left.Files != files {
		t.Fatalf("%s: %d files shown and %d left out of %d", of.Detail, shownFiles, left.Files, files)
	}
	if shownMatches+left.Matches != matches {
		t.Fatalf("%s: %d matches shown and %d left out of %d", of.Detail, shownMatches, left.Matches, matches)
	}
	if (left.Matches > 0 || left.Files > 0) && of.Cursor == "" && of.Detail != Directories && of.Detail != "" {
		t.Fatalf("%s: %v left out without a cursor", of.Detail, left)
	}
}

// someFiles are ranges of up to n files, some of which do not exist.
func someFiles(repos map[string]map[string]string, n int) (list []args) {
	for repo, files := range repos {
		for path := range files {
			if n--; n < 0 {
				return list
			}
			list = append(list, args{"repo": repo, "path": shown(path, 1<<20)})
		}
	}
	return append(list, args{"repo": "host/org/repo0", "path": "f.go"})
}

// TestPagesMakeUpTheWhole: the pages of a fixed detail show every matching line once, in
// any budget.
func TestPagesMakeUpTheWhole(t *testing.T) {
	for seed := range uint64(testrun.Rounds(2, 4)) {
		repos := randomLibrary(t, seed+1)
		session := connect(t, newLibrary(t, repos))
		for _, detail := range []Detail{Lines, ShortLines, LineNumbers, Files} {
			want := make(map[string]bool)
			for repo, files := range repos {
				for path, content := range files {
					for i, l := range strings.Split(content, "\n") {
						if strings.Contains(l, "err") {
							number := uint32(i + 1)
							if detail == Files {
								number = 0
							}
							want[fmt.Sprintf("%s %s %d", repo, shown(path, 1<<20), number)] = true
						}
					}
				}
			}
			got := pagesOf(t, session, args{"patterns": []string{"err"}, "detail": detail, "max_tokens": 1000 + int(seed)*5000})
			for _, place := range got {
				if !want[place] {
					t.Fatalf("seed %d, %s: %s is wrong or twice there", seed, detail, place)
				}
				delete(want, place)
			}
			if len(want) > 0 {
				t.Fatalf("seed %d, %s: %d places are missing, such as %v", seed, detail, len(want), want)
			}
		}
	}
}

// pagesOf are the places on all pages of a grep for one pattern.
func pagesOf(t *testing.T, session *mcp.ClientSession, arguments args) (places []string) {
	t.Helper()
	for range 10_000 {
		of := good(t, session, "grep", arguments).results(t).Results[0]
		for _, repo := range of.Repos {
			for _, f := range repo.Files {
				place := func(n uint32) { places = append(places, fmt.Sprintf("%s %s %d", repo.Repo, f.Path, n)) }
				for _, n := range f.Numbers {
					place(n)
				}
				for _, l := range f.Lines {
					place(l.Number)
				}
				if of.Detail == Files {
					place(0)
				}
			}
		}
		if of.Cursor == "" {
			return places
		}
		arguments["cursor"] = of.Cursor
	}
	t.Fatal("pages without end")
	return nil
}

// TestManyReposHaveTheirNumber: an answer without matches does not spend its budget on the names of very many repos.
func TestManyReposHaveTheirNumber(t *testing.T) {
	repos := map[string]map[string]string{}
	for i := range namedRepos + 1 {
		repos[fmt.Sprintf("host/r%d", i)] = map[string]string{"a.txt": "heron\n"}
	}
	session := connect(t, newLibrary(t, repos))
	if r := good(t, session, "grep", args{"patterns": []string{"whale"}}); !strings.Contains(r.text, fmt.Sprintf("Complete over %d repos.\n", namedRepos+1)) {
		t.Errorf("got %s", r.text)
	}
	if r := good(t, session, "grep", args{"patterns": []string{"whale"}, "repos": []string{"host/r1*"}}); !strings.Contains(r.text, "Complete over 11 repos at these commits: host/r1@") {
		t.Errorf("got %s", r.text)
	}
}
