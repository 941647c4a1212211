package grep_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/grep"
)

// oddTree has files that are rare in real trees: other encodings, binary files, invalid UTF-8.
func oddTree(t *testing.T) *searcher {
	t.Helper()
	s := &searcher{tree: filepath.Join(t.TempDir(), "\xff"), cache: t.TempDir(), now: long}
	line := strings.Repeat("x", 99) + "\n"
	files := map[string]string{
		"a.go":      "foo\nx\nx\nx\nfoo\nx\nx\nfoo\n",
		"a/b":       "foo\n",
		"a-b":       "foo\n",
		"bom":       "\xef\xbb\xbffoo bom\n",
		"bombom":    "\xef\xbb\xbf\xef\xbb\xbffoo\n",
		"bomonly":   "\xef\xbb\xbf",
		"bomonly16": "\xff\xfe",
		"cr":        "foo\rfoo bar\r\rfoo\r",
		"crlf":      "a foo\r\nb\r\n\r\nfoo\n",
		"empty":     "",
		"invalid":   "foo\xe9bar\nfoo\uFFFDbar\nfoo bar\n\nfoo\xff\n\xfffoo é\n",
		"kelvin":    "k \u212A s \u017F K\n\u212Afoo\n",
		"lines":     "\n\n\nfoo\n\n",
		"noend":     "bar\nfoo no newline",
		"nul":       "foo\nbar foo\n\x00foo\n",
		"utf16be":   "\xfe\xff\x00f\x00o\x00o\x00\n\x26\x3a",
		"utf16le":   "\xff\xfef\x00o\x00o\x00\n\x00\x3d\xd8\x00\xdef\x00\x3d\xd8f",
		"\xe9/\xff": "foo\n",
		"utf16odd":  "\xff\xfef\x00o\x00o\x00x",
		"vt":        "foo\vfoo\ffoo\u0085foo\u2028foo\n",
		"words":     "éfoo\nfooé\n_foo\nfoo-bar foo\n(foo)\nfoo\u0301 foo\u200dfoo\n٣foo ٣\n",
		"nul60000":  "foo\n" + strings.Repeat(line, 600) + "\x00" + line + "foo\n",
		"nul70000":  "foo\n" + strings.Repeat(line, 700) + "\x00" + line + "foo\n",
		"nulmore":   "foo\n" + strings.Repeat(line, 2000) + "foo\n" + strings.Repeat(line, 700) + "\x00foo\n",
		// The last: ripgrep's buffer stays large for the files after it.
		"znullong": "foo\n" + strings.Repeat("y", 200_000) + "foo\nfoo\n" + strings.Repeat(line, 3000) + "\x00foo\n",
	}
	for n := 65_534; n < 65_539; n++ { // about the end of the first buffer
		files[fmt.Sprintf("nul%d", n)] = "foo\n" + strings.Repeat(line, 656)[:n-4] + "\x00\nfoo\n"
	}
	for _, n := range []int{65_535, 65_538} { // and of that after the first line, which ripgrep has read before
		files[fmt.Sprintf("short%d", n)] = "f\n" + strings.Repeat(line, 656)[:n-5] + "foo\x00\n"
	}
	for path, content := range files {
		write(t, filepath.Join(s.tree, path), content)
	}
	return s
}

var oddPatterns = []string{
	"foo", "fo+", "foo.bar", "foo.", "foo[^a]", "foo$", "^foo", `\bfoo\b`, `\Bfoo`, `foo\B`, `\wfoo`, `foo\w`, `foo\W`, `\W`, `\d`, `\s$`, "^$", "", "x*", "o*", "é",
	`\uFFFD`, "k", "(?i)k", "(?i)s", "foo|k", `(foo|bar)\s`, "😀", `\S foo`, "☺", "f", `.`, `[^x]$`, `foo$|^f`,
}

func TestOddFilesOfRipgrep(t *testing.T) {
	if _, err := exec.LookPath("rg"); err != nil {
		t.Skip("rg is not installed")
	}
	s := oddTree(t)
	for i, p := range oddPatterns {
		for j := range 4 {
			if j != i%4 && os.Getenv("TRAWL_TEST_QUERIES") == "" {
				continue // one of four is enough for every day
			}
			q := ask(strings.ReplaceAll(p, `\uFFFD`, "\uFFFD"))
			flag := func(on bool, arg string) bool {
				if on {
					q.args = append(q.args, arg)
				}
				return on
			}
			q.opts.Words = flag((i+j)%3 == 0, "-w")
			q.show.OnlyMatching = flag(j == 1 && !matchesEmpty(p), "-o")
			q.show.Count = flag(j == 2, "-c")
			q.show.Invert = flag(j > 1 && i%2 == 0, "-v")
			if flag(j == 3, "-C1") {
				q.show.Before, q.show.After = 1, 1
			}
			if flag((i+j)%5 < 2, "-m2") {
				q.show.Most = 2
			}
			want, ok := ripgrep(t, s.tree, q)
			if got, err := s.search(t, q); !ok || err != nil {
				t.Errorf("rg %q %q: %v, %s", q.args, q.patterns, err, want)
			} else if got != want {
				t.Errorf("rg %q %q: %s", q.args, q.patterns, difference(got, want))
			}
		}
	}
}

// matchesEmpty reports whether a pattern matches the empty text: ripgrep shows such a match for each byte of a rune.
func matchesEmpty(p string) bool { return p == "" || strings.HasSuffix(p, "*") }

// TestOddFiles compares with recorded output of ripgrep 13, for machines without it.
func TestOddFiles(t *testing.T) {
	s := &searcher{tree: t.TempDir(), cache: t.TempDir(), now: long}
	write(t, s.tree+"/a", "foo\xe9bar\n\xefoo foo\nfoo-bar\n")
	write(t, s.tree+"/b", "\xff\xfef\x00o\x00o\x00\n\x00")
	write(t, s.tree+"/c", "foo\n\x00")
	write(t, s.tree+"/d", "foo\n"+strings.Repeat(strings.Repeat("x", 99)+"\n", 700)+"\x00")
	for p, want := range map[string]string{
		"foo":       "a:1:foo\xe9bar\na:2:\xefoo foo\na:3:foo-bar\nb:1:foo\nd:1:foo\nd: WARNING: stopped searching binary file after match (found \"\\0\" byte around offset 70004)\n",
		"foo.bar":   "a:3:foo-bar\n",
		`\boo`:      "a:2:\xefoo foo\n",
		`foo\W|b\w`: "a:1:foo\xe9bar\na:3:foo-bar\n",
	} {
		if got := s.lines(t, p); got != want {
			t.Errorf("%s: %s", p, difference(got, want))
		}
	}
}

// TestVeryLongLine: what is shown of a line costs what is in it once. If each match cost all of the line before it, this would take minutes.
func TestVeryLongLine(t *testing.T) {
	s := &searcher{tree: t.TempDir(), cache: t.TempDir(), now: long}
	const matches = 60_000
	write(t, s.tree+"/a", strings.Repeat("function(x){return x};var y=z(x,y)||w; ", matches)+"\n")
	replacement := "R"
	for _, multiline := range []bool{false, true} {
		for want, show := range map[string]func(*question){
			strings.Repeat("a:1:return\n", matches):                                       func(q *question) { q.show.OnlyMatching = true },
			"a:1:" + strings.Repeat("function(x){R x};var y=z(x,y)||w; ", matches) + "\n": func(q *question) { q.opts.Replacement = &replacement },
		} {
			q := ask("return")
			q.opts.Multiline = multiline
			show(&q)
			if got, err := s.search(t, q); err != nil || got != want {
				t.Errorf("%+v: %v, %d bytes, want %d", q.opts, err, len(got), len(want))
			}
		}
	}
}

func TestRefusedPatterns(t *testing.T) {
	for p, want := range map[string]string{
		`a\nb`: "line break", "a\nb": "-e", `\Aa`: `^ and $`, `a\z`: `^ and $`, `(?-m)^a`: "^ and $", `[a[bc]]`: `\[`, `[a&&b]`: "not supported", `(a)\1`: "backreferences",
		`a(`: "missing closing", `a\`: `\\`, "a\xff": "UTF-8", `[\n]`: "line break", `\<a`: `\b`, `a\>`: `\b`, `\Qa\E`: `\Q`, `x{1001}`: "invalid repeat count", "(?x)a": "invalid or unsupported",
		"(?=a)": "lookaround", "a(?!b)": "lookaround", "(?<=a)b": "lookaround", "(?<!a)b": "lookaround", "(?<a-b>c)": "invalid named capture",
		`\w+(`: "missing closing )", `[\w`: "missing closing ]", `a|\d)`: "unexpected )", `\s**`: "invalid nested repetition operator",
	} {
		if _, err := grep.NewPattern([]string{p}, grep.PatternOptions{}); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("%q: no %q in %v", p, want, err)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestFailedOutput: output that fails is reported once, though several files are searched at a time.
func TestFailedOutput(t *testing.T) {
	s := pond(t)
	p, err := grep.NewPattern([]string{"fish"}, grep.PatternOptions{})
	if err != nil {
		t.Fatal(err)
	}
	search := grep.Search{Roots: []grep.Root{{Path: s.tree, Index: s.open(t)}}, Pattern: p, Out: fullDisk{}, Warn: func(err error) { t.Error(err) }}
	if _, err := search.Run(t.Context()); err == nil || err.Error() != "no space left" {
		t.Errorf("%v", err)
	}
}
