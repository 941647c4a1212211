package search_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// TestLineScores: with LineScores each match has the score of its line, whether all lines of the file are shown or the best, and however its
// matches were found. The best line is the one that is shown where only one is.
func TestLineScores(t *testing.T) {
	text := "// render is slow\nthe prerendered\n\trender(1)\n\trender, then render\nfunc render() {\n" + strings.Repeat("\tvalue := compute(a, b)\n", 400) + "\trender(2)\n"
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
		{Path: "x.go", Content: []byte(text), Branches: []string{"main"}, Language: "Go"},
	}}}}))
	find := func(query string, opts search.Options) string {
		opts.MaxFiles = 1
		var lines []string
		for _, c := range mustSearch(t, s, parseNewest(t, query), opts).Files[0].Chunks {
			for _, r := range c.Ranges {
				lines = append(lines, fmt.Sprintf("%d:%.2f", r.Start.Line, r.LineScore))
			}
		}
		return strings.Join(lines, " ")
	}
	for _, query := range []string{"render", `"render"`, "rend[e]r"} {
		for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
			for most, want := range map[int]string{
				100: "1:0.73 2:0.68 3:0.98 4:0.96 4:0.96 5:1.94 406:0.98",
				3:   "3:0.98 5:1.94 406:0.98",
				1:   "5:1.94",
			} {
				if got := find(query, search.Options{Mode: mode, MaxMatchesPerFile: most, LineScores: true}); got != want {
					t.Errorf("%s, up to %d, mode %d: %s, want %s", query, most, mode, got, want)
				}
			}
			if got := find(query, search.Options{Mode: mode, MaxMatchesPerFile: 2}); strings.Count(got, ":0.00") != 2 {
				t.Errorf("%s, mode %d: scores that nobody asked for: %s", query, mode, got)
			}
		}
	}
	if got := find("f:x", search.Options{MaxMatchesPerFile: 9, LineScores: true}); got != "1:0.00" {
		t.Errorf("of a path: %s", got)
	}
}

// TestLineScoresAnywhere: the score of a line follows from the line, wherever in its content it stands, and however long the lines around it are. A
// line is looked for from 256 bytes before the superblock of its first match to 256 bytes after it.
func TestLineScoresAnywhere(t *testing.T) {
	const unit, reach = 4096, 256
	rng := rand.New(rand.NewPCG(21, 4))
	filler := func(n int) string { return strings.Repeat("x ", n/2) }
	for range 40 {
		var b strings.Builder
		for dense := rng.IntN(2); b.Len() < 40*unit; {
			switch rng.IntN(6) {
			case 5:
				b.WriteString(strings.Repeat("x\n", (1-dense)*rng.IntN(10*unit)))
			case 0:
				b.WriteString(filler(rng.IntN(2 * unit)))
			case 1:
				b.WriteString("\n// ")
			case 2, 3:
				b.WriteString(filler(rng.IntN(2*reach)) + "\n")
			default:
				b.WriteString([]string{"needle", " needles ", "aneedlea", "needle,\n"}[rng.IntN(4)])
			}
		}
		text := b.String()
		s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
			{Path: "x", Content: []byte(text), Branches: []string{"main"}},
		}}}}))
		end, share := 0, 0.0
		for _, c := range mustSearch(t, s, parseNewest(t, "needle"), search.Options{MaxFiles: 1, MaxMatchesPerFile: 1 << 20, LineScores: true, Mode: search.Exhaustive}).Files[0].Chunks {
			for _, r := range c.Ranges {
				if at := int(r.Start.Offset); at >= end {
					first := at / unit * unit
					least, most := max(0, first-reach), min(len(text), first+unit+reach)
					line := text[least:at]
					line = line[strings.LastIndexByte(line, '\n')+1:]
					rest, _, _ := strings.Cut(text[min(most, int(r.End.Offset)):most], "\n")
					end = int(r.End.Offset) + len(rest)
					share = 1 / (1 + float64(end-at+len(line))/500)
					if strings.HasPrefix(line, "// ") {
						share *= .75
					}
				}
				if best := float64(r.LineScore) / share; best < .69 || best > 1.01 {
					t.Fatalf("the line of the match at %d has score %v, which is %.3f of what its length allows", r.Start.Offset, r.LineScore, best)
				}
			}
		}
	}
}

// TestLineScoresOfDefinitions: a definition scores the same wherever in its content it stands.
func TestLineScoresOfDefinitions(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 5))
	var b strings.Builder
	for range 100 { // far apart, so that only parts of the text are read
		b.WriteString("func needle() {\n" + strings.Repeat("// x\n", rng.IntN(8000)) + "}\n")
	}
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
		{Path: "x.go", Content: []byte(b.String()), Branches: []string{"main"}, Language: "Go"},
	}}}}))
	for _, c := range mustSearch(t, s, parseNewest(t, "needle"), search.Options{MaxFiles: 1, MaxMatchesPerFile: 1000, LineScores: true}).Files[0].Chunks {
		for _, r := range c.Ranges {
			if got := fmt.Sprintf("%.3f", r.LineScore); got != "1.942" {
				t.Fatalf("the definition in line %d scores %s", r.Start.Line, got)
			}
		}
	}
}
