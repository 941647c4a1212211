package peer

import (
	"errors"
	"maps"
	"os/exec"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/bench/corpus"
)

var repos = []corpus.Repo{{Name: "a", Dir: "/src/a@1"}, {Name: "a/b", Dir: "/src/a@1b"}}

// TestParse parses the output of rg -l and csearch -l.
func TestParse(t *testing.T) {
	out := []byte("/src/a@1/x.go\n/src/a@1b/dir/y z.go\n/elsewhere/z.go\n/src/a@1/last.go")
	got := slices.Sorted(maps.Keys(names(repos).parse(out)))
	if want := []string{"a/b/dir/y z.go", "a/last.go", "a/x.go"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := names(repos).parse(nil); len(got) != 0 {
		t.Errorf("nothing printed gave %v", got)
	}
}

// TestArguments: the arguments for the peers cover the whole query.
func TestArguments(t *testing.T) {
	q := corpus.Query{Patterns: []string{"a|b"}, Glob: "*.go", File: `\.go$`}
	rg, err := (&ripgrep{repos: repos}).args(q, "--count-matches")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--count-matches", "--ignore-case", "*.go", "a|b", "/src/a@1", "/src/a@1b", "--no-ignore"} {
		if !slices.Contains(rg, want) {
			t.Errorf("ripgrep is not asked for %s: %q", want, rg)
		}
	}
	cs, err := (&codesearch{}).args(q, "-l")
	if want := []string{"-l", "-i", "-f", `\.go$`, "a|b"}; err != nil || !slices.Equal(cs, want) {
		t.Errorf("codesearch is asked %q, not %q (%v)", cs, want, err)
	}
	q.CaseSensitive = true
	if rg, err = (&ripgrep{}).args(q, "-l"); err != nil || slices.Contains(rg, "--ignore-case") {
		t.Errorf("ripgrep ignores case: %q (%v)", rg, err)
	}
	q.Patterns = []string{"a", "b"}
	if _, err := (&ripgrep{}).args(q, "-l"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("two patterns: %v", err)
	}
	q.Patterns, q.Glob, q.File = []string{"a"}, "", "dir"
	if _, err := (&ripgrep{}).args(q, "-l"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("ripgrep looks for a folder: %v", err)
	}
	if _, err := (&codesearch{}).args(q, "-l"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("codesearch looks for a folder: %v", err)
	}
}

func TestMeasure(t *testing.T) {
	for script, fails := range map[string]bool{"echo hi": false, "exit 1": false, "echo no >&2; exit 1": true, "exit 2": true} {
		var cost Cost
		_, err := Measure(exec.Command("sh", "-c", script), &cost)
		if (err != nil) != fails {
			t.Errorf("%s: error %v", script, err)
		}
		if cost.Peak <= 0 || cost.Wall <= 0 {
			t.Errorf("%s: cost %+v", script, cost)
		}
	}
	if _, err := Measure(exec.Command("/no/such/program"), &Cost{}); err == nil {
		t.Error("a program that is not there ran")
	}
}

func TestMissingZoektIsNoPeer(t *testing.T) {
	if z := newZoekt(t.TempDir()); z != nil {
		t.Error("an empty folder has a zoekt")
	}
}

// TestBestLinesOfReply: the lines of the best chunk come first, and in a chunk the best line.
func TestBestLinesOfReply(t *testing.T) {
	for body, want := range map[string][]int{
		`{"Result": {}}`: nil,
		`{"Result": {"Files": [{"ChunkMatches": [
			{"FileName": true, "Score": 9, "Ranges": [{"Start": {"LineNumber": 1}}]},
			{"Score": 1, "BestLineMatch": 4, "Ranges": [{"Start": {"LineNumber": 4}}]},
			{"Score": 2, "BestLineMatch": 8, "Ranges": [{"Start": {"LineNumber": 7}}, {"Start": {"LineNumber": 8}}, {"Start": {"LineNumber": 8}}]}]}]}}`: {8, 7, 4},
	} {
		if got, err := (&Reply{body: []byte(body)}).BestLines(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d, %v, want %d", body, got, err, want)
		}
	}
	if _, err := (&Reply{body: []byte("broken")}).BestLines(); err == nil {
		t.Error("a broken answer is read")
	}
}
