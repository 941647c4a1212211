package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func location(offset, line uint32) *searchv1.Location {
	return &searchv1.Location{ByteOffset: offset, LineNumber: line, Column: 1}
}

func match(start, end uint32) *searchv1.Range {
	return &searchv1.Range{Start: location(start, 1), End: location(end, 1)}
}

// example is two lines of a file from byte 100 on, "needle" found in each, and
// the path found as well.
func example() *searchv1.FileMatch {
	return &searchv1.FileMatch{
		Repo: "example.org/r", Path: []byte("a/needle.go"), Branches: []string{"main", "old"}, MatchCount: 5, Score: 2,
		Chunks: []*searchv1.ChunkMatch{
			{Content: []byte("a/needle.go"), FileName: true, Ranges: []*searchv1.Range{match(2, 8)}},
			{
				Content: []byte("x needle\nneedle y\n"), ContentStart: location(100, 7),
				Ranges: []*searchv1.Range{match(102, 108), match(109, 115)},
			},
			{Content: []byte("far needle"), ContentStart: location(400, 40), Ranges: []*searchv1.Range{match(404, 410)}},
		},
	}
}

func TestTextWithoutColor(t *testing.T) {
	var out bytes.Buffer
	if err := NewText(&out, false, true).File(example()); err != nil {
		t.Fatal(err)
	}
	want := `example.org/r a/needle.go (main, old)
     7  x needle
     8  needle y
   ⋮
    40  far needle
   … and 1 more
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestTextHighlights(t *testing.T) {
	var out bytes.Buffer
	if err := NewText(&out, true, false).File(example()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), string(styleMatch)+"needle"+reset); got != 4 {
		t.Errorf("%d of 4 matches are highlighted in\n%q", got, out.String())
	}
}

func TestMatchOverTwoLinesIsHighlightedOnBoth(t *testing.T) {
	f := &searchv1.FileMatch{Chunks: []*searchv1.ChunkMatch{{
		Content: []byte("one\ntwo\n"), ContentStart: location(0, 1), Ranges: []*searchv1.Range{match(1, 6)},
	}}}
	var out bytes.Buffer
	if err := NewText(&out, true, false).File(f); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{string(styleMatch) + "ne" + reset, string(styleMatch) + "tw" + reset + "o"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
}

// TestMatchOfALineBreak: the line that ends with it is one that matches, as in ripgrep, though no character of it is shown as a match.
func TestMatchOfALineBreak(t *testing.T) {
	f := &searchv1.FileMatch{Repo: "r", Path: []byte("f"), Chunks: []*searchv1.ChunkMatch{{
		Content: []byte("one\r\n\ntwo\nend\n"), ContentStart: location(0, 1), Ranges: []*searchv1.Range{match(4, 7), match(9, 10)},
	}}}
	for _, tt := range []struct {
		style LineStyle
		want  string
	}{
		{LineStyle{}, "r:f:1:one\nr:f:2:\nr:f:3:two\nr:f-4-end\n"},
		{LineStyle{Column: true}, "r:f:1:4:one\nr:f:2:1:\nr:f:3:1:two\nr:f-4-end\n"},
		{LineStyle{Only: true}, "r:f:3:t\n"},
		{LineStyle{Raw: true}, "r:f:1:one\r\nr:f:2:\nr:f:3:two\nr:f-4-end\n"},
		{LineStyle{Raw: true, Column: true}, "r:f:1:5:one\r\nr:f:2:1:\nr:f:3:1:two\nr:f-4-end\n"},
		{LineStyle{Raw: true, Only: true}, "r:f:3:t\n"},
	} {
		var out bytes.Buffer
		if err := NewLines(&out, &out, tt.style).File(f); err != nil || out.String() != tt.want {
			t.Errorf("%+v: %v, got %q\nwant %q", tt.style, err, out.String(), tt.want)
		}
	}
}

// TestBranchesOfOneFile: on a terminal, the second content of a file is printed with its branch.
// Other programs get names without branches.
func TestBranchesOfOneFile(t *testing.T) {
	file := func(path, blob string, branches ...string) *searchv1.FileMatch {
		return &searchv1.FileMatch{Repo: "r", Path: []byte(path), Blob: []byte(blob), Branches: branches, Chunks: []*searchv1.ChunkMatch{{
			Content: []byte("x\ny\n"), ContentStart: location(0, 1), Ranges: []*searchv1.Range{match(0, 1)},
		}}}
	}
	files := []*searchv1.FileMatch{file("f", "1", "main"), file("g", "1", "main"), file("f", "2", "dev\x1b", "old"), file("f", "1", "main"), file("f", "3")}
	for _, tt := range []struct {
		raw, paths bool
		want       string
	}{
		{false, false, "r:f:1:x\nr:f-2-y\nr:g:1:x\nr:g-2-y\nr@dev\\x1b:f:1:x\nr@dev\\x1b:f-2-y\nr:f:1:x\nr:f-2-y\nr:f:1:x\nr:f-2-y\n"},
		{true, false, "r:f:1:x\nr:f-2-y\nr:g:1:x\nr:g-2-y\nr:f:1:x\nr:f-2-y\nr:f:1:x\nr:f-2-y\nr:f:1:x\nr:f-2-y\n"},
		{false, true, "r:f\nr:g\nr@dev\\x1b:f\nr:f\nr:f\n"},
		{true, true, "r:f\nr:g\nr:f\nr:f\nr:f\n"},
	} {
		var out bytes.Buffer
		show := NewLines(&out, &out, LineStyle{Raw: tt.raw}).File
		if tt.paths {
			paths := NewPaths(&out, &out, false, false, false)
			paths.Branches = !tt.raw
			show = paths.File
		}
		for _, f := range files {
			if err := show(f); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != tt.want {
			t.Errorf("%+v: got\n%swant\n%s", tt, out.String(), tt.want)
		}
	}
}

// TestLinesForPrograms: other programs get the bytes of lines, and hear of matches that they do not get.
func TestLinesForPrograms(t *testing.T) {
	f := &searchv1.FileMatch{Repo: "r", Path: []byte("f\xff"), MatchCount: 3, Chunks: []*searchv1.ChunkMatch{{
		Content: []byte("caf\xe9 \x1b[1m\u200d\r\n"), ContentStart: location(0, 1), Ranges: []*searchv1.Range{match(0, 4)},
	}}}
	for _, tt := range []struct {
		style       LineStyle
		want, warns string
	}{
		{LineStyle{Raw: true, Whole: true}, "r:f\\xff:1:caf\xe9 \x1b[1m\u200d\r\n", "r:f\\xff: 1 of 3 matches are shown\n"},
		{LineStyle{Raw: true, Only: true, Color: true}, "\x1b[2mr\x1b[0m:\x1b[35mf\\xff\x1b[0m:\x1b[32m1\x1b[0m:\x1b[1;31mcaf\xe9\x1b[0m\n", ""},
		{LineStyle{}, `r:f\xff:1:caf\xe9 \x1b[1m\u200d` + "\n", ""},
	} {
		var out, warnings bytes.Buffer
		if err := NewLines(&out, &warnings, tt.style).File(f); err != nil || out.String() != tt.want || warnings.String() != tt.warns {
			t.Errorf("%+v: %v, got %q and %q\nwant %q and %q", tt.style, err, out.String(), warnings.String(), tt.want, tt.warns)
		}
	}
}

func TestLongLineIsCutAroundTheMatch(t *testing.T) {
	line := strings.Repeat("é", 5000) + "needle" + strings.Repeat("z", 100000)
	f := &searchv1.FileMatch{Chunks: []*searchv1.ChunkMatch{{
		Content: []byte(line), ContentStart: location(0, 1), Ranges: []*searchv1.Range{match(10000, 10006)},
	}}}
	var out bytes.Buffer
	if err := NewText(&out, false, false).File(f); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "éneedlez") || len(got) > maxLine+100 || strings.Contains(got, `\x`) {
		t.Errorf("cut to %d bytes: %q", len(got), got)
	}
}

// TestNothingFoundReachesTheTerminal: whatever a repository holds, what is
// printed has no control character of it, and no range brings rendering down.
func TestNothingFoundReachesTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOf(rapid.Byte()).Draw(t, "content")
		f := &searchv1.FileMatch{
			Repo: rapid.String().Draw(t, "repo"), Path: content,
			Chunks: []*searchv1.ChunkMatch{{
				Content: content, ContentStart: location(rapid.Uint32().Draw(t, "at"), rapid.Uint32().Draw(t, "line")),
				Ranges: []*searchv1.Range{
					match(rapid.Uint32().Draw(t, "start"), rapid.Uint32().Draw(t, "end")),
					match(rapid.Uint32Range(0, 20).Draw(t, "start2"), rapid.Uint32Range(0, 20).Draw(t, "end2")),
				},
			}},
		}
		var out bytes.Buffer
		if err := NewText(&out, false, false).File(f); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Fatalf("%q was printed in %q", r, out.String())
			}
		}
	})
}

func TestSummaryNamesWhatWasNotSearched(t *testing.T) {
	stats := &searchv1.Statistics{Matches: 3, FilesMatched: 1, CountsExact: true}
	coverage := &searchv1.Coverage{Requested: 3, Searched: 1, Pruned: 1, Failed: 1, Uncovered: []*searchv1.UncoveredShard{{
		Digest: []byte{1, 2, 3, 4, 5, 6, 7, 8}, Repos: []string{"r"}, Reason: searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT, Message: "bad sum",
	}}}
	var out bytes.Buffer
	if err := NewText(&out, false, false).Summary(stats, coverage, 1234*time.Microsecond, "a larger --max-files"); err != nil {
		t.Fatal(err)
	}
	want := "3 matches in 1 file, 2 of 3 shards searched, 1.23ms; more with a larger --max-files\n" +
		"not searched: 1 shard of r: damaged, being fetched again: bad sum\n"
	if out.String() != want {
		t.Errorf("got %q\nwant %q", out.String(), want)
	}
}

// TestLowerBoundsSaySo: every printer says of counts that are lower bounds that they are.
func TestLowerBoundsSaySo(t *testing.T) {
	for _, tt := range []struct {
		exact bool
		want  string
	}{
		{false, "at least 3 matches in 2 files\nat least 2 files match; more are shown with a larger --max-files\n"},
		{true, "3 matches in 2 files\n2 files match; more are shown with a larger --max-files\n"},
	} {
		var out bytes.Buffer
		stats := &searchv1.Statistics{Matches: 3, FilesMatched: 2, CountsExact: tt.exact}
		if err := NewCounts(&out, &out, false, false).Summary(stats, &searchv1.Coverage{}, 0, "a larger --max-files"); err != nil || out.String() != tt.want {
			t.Errorf("exact %v: %v, got %q\nwant %q", tt.exact, err, out.String(), tt.want)
		}
	}
}

func TestJSONIsOneObjectALine(t *testing.T) {
	f := example()
	f.Path = []byte("bad\xff\n")
	var out bytes.Buffer
	j := NewJSON(&out)
	if err := j.File(f); err != nil {
		t.Fatal(err)
	}
	if err := j.Summary(&searchv1.Statistics{Matches: 4}, &searchv1.Coverage{Complete: true}, time.Second, ""); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	var file fileJSON
	if err := json.Unmarshal([]byte(lines[0]), &file); err != nil {
		t.Fatal(err)
	}
	if file.Type != "file" || file.Path != "" || string(file.PathBytes) != "bad\xff\n" || file.Chunks[1].Start.Line != 7 {
		t.Errorf("read back %+v", file)
	}
	var sum summaryJSON
	if err := json.Unmarshal([]byte(lines[1]), &sum); err != nil || sum.Type != "summary" || !sum.Complete || sum.Matches != 4 {
		t.Errorf("summary %+v, %v", sum, err)
	}
}

func TestUnitsForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{1500: "2µs", 1234567: "1.23ms", 123456789: "123ms", 12345678900: "12.3s"} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%d) = %s, want %s", d, got, want)
		}
	}
}

// TestNames: a printed name holds nothing that does not print, and means the name that it was made of.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"a.go": "a.go", "plain name": "plain name", "new\nline": `new\nline`, `new\nline`: `new\\nline`, "bad\xff": `bad\xff`, `C:\dir`: `C:\dir`, `C:\new`: `C:\\new`, "größe": "größe",
	} {
		if got := Name([]byte(name)); got != want {
			t.Errorf("%q is printed as %s, want %s", name, got, want)
		}
	}
	piece := rapid.SampledFrom([]string{`\`, "x", "ff", "n", "\n", "\xff", "\xc3", "é", "\u202e", "u202e", "101", "'", `"`, "\t", "a"})
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "name"), "")
		printed := Name([]byte(name))
		if Safe([]byte(printed)) != printed || Meant(printed) != name {
			t.Fatalf("%q is printed as %q, which means %q", name, printed, Meant(printed))
		}
	})
}
