package grep_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/grep"
	"github.com/trawl-search/trawl/internal/grep/ignore"
	"github.com/trawl-search/trawl/internal/grep/localindex"
)

// question is one search, in the form of ripgrep's command line and in ours.
type question struct {
	patterns []string
	opts     grep.PatternOptions
	show     grep.Show
	ignore   ignore.Options
	args     []string
}

// searcher searches one tree through its index.
type searcher struct {
	tree, cache string
	now         func() time.Time
}

// long is a clock by which all files changed long ago.
func long() time.Time { return time.Now().Add(time.Hour) }

func (s *searcher) search(t *testing.T, q question) (string, error) {
	t.Helper()
	var out bytes.Buffer
	if err := s.searchTo(t, q, &out); err != nil {
		return "", err
	}
	return strings.ReplaceAll(out.String(), s.tree+"/", ""), nil
}

// searchTo writes the answer to out, with paths that begin with the tree.
func (s *searcher) searchTo(t *testing.T, q question, out io.Writer) error {
	t.Helper()
	p, err := grep.NewPattern(q.patterns, q.opts)
	if err != nil {
		return err
	}
	index, err := localindex.Open(s.tree, localindex.Options{Cache: s.cache, Ignore: q.ignore, Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Damage(); err != nil {
		t.Errorf("damaged: %v", err)
	}
	counted := &counter{Writer: out}
	search := grep.Search{Roots: []grep.Root{{Path: s.tree, Index: index}}, Pattern: p, Show: q.show, Out: counted, Warn: func(err error) { t.Error(err) }}
	found, err := search.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found != (counted.bytes > 0) {
		t.Errorf("found is %v of %d bytes", found, counted.bytes)
	}
	if err := index.Update(t.Context(), func(int, int64) {}); err != nil {
		t.Fatal(err)
	}
	return nil
}

// counter counts what is written.
type counter struct {
	io.Writer

	bytes int
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return c.Writer.Write(p)
}

// ripgrep answers the same; not ok if it refuses the pattern.
func ripgrep(t *testing.T, tree string, q question) (out string, ok bool) {
	t.Helper()
	var stdout bytes.Buffer
	if refusal, ok := ripgrepTo(t, tree, "./", q, &stdout); !ok {
		return refusal, false
	}
	return stripDot(stdout.String()), true
}

// ripgrepTo writes the answer to out, with paths that begin with folder; not ok if it refuses the pattern.
func ripgrepTo(t *testing.T, tree, folder string, q question, out io.Writer) (refusal string, ok bool) {
	t.Helper()
	args := append([]string{"--no-config", "-n", "--no-heading", "--sort", "path"}, q.args...)
	for _, p := range q.patterns {
		args = append(args, "-e", p)
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), "rg", append(args, folder)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = tree, out, &stderr
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	err := cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 2 {
		return stderr.String(), false
	} else if err != nil && (exit == nil || exit.ExitCode() != 1) {
		t.Fatalf("rg %q: %v", args, err)
	}
	return "", true
}

var dot = regexp.MustCompile(`(?m)^\./`)

func stripDot(out string) string { return dot.ReplaceAllString(out, "") }

// generator makes questions from texts of a tree.
type generator struct {
	rng   *rand.Rand
	texts [][]byte
}

func newGenerator(t *testing.T, tree string, seed uint64) *generator {
	t.Helper()
	g := &generator{rng: rand.New(rand.NewPCG(seed, 2))}
	var paths []string
	err := filepath.WalkDir(tree, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files in %s: %v", len(paths), tree, err)
	}
	for len(g.texts) < 100 {
		text, err := os.ReadFile(paths[g.rng.IntN(len(paths))])
		if err != nil {
			t.Fatal(err)
		}
		if text = bytes.ToValidUTF8(text, nil); len(bytes.TrimSpace(text)) > 0 {
			g.texts = append(g.texts, text)
		}
	}
	return g
}

// text is a part of a line.
func (g *generator) text(least, most int) string {
	for {
		text := g.texts[g.rng.IntN(len(g.texts))]
		lines := bytes.Split(text, []byte{'\n'})
		runes := []rune(string(lines[g.rng.IntN(len(lines))]))
		n := least + g.rng.IntN(most-least+1)
		if len(runes) < n || bytes.ContainsRune(text, 0) {
			n = 1
			if len(runes) == 0 || bytes.ContainsRune(text, 0) {
				continue
			}
		}
		at := g.rng.IntN(len(runes) - n + 1)
		return string(runes[at : at+n])
	}
}

func (g *generator) literal(least, most int) string { return regexp.QuoteMeta(g.text(least, most)) }

var word = regexp.MustCompile(`[\pL\pM\p{Nd}_]+`)

func (g *generator) word() string {
	for {
		if w := word.FindString(g.text(3, 30)); w != "" {
			return w
		}
	}
}

func pick[T any](g *generator, of ...T) T { return of[g.rng.IntN(len(of))] }

func (g *generator) pattern() string {
	switch g.rng.IntN(16) {
	case 0, 1:
		return g.literal(3, 20)
	case 2, 3:
		return g.word()
	case 4:
		return g.literal(2, 8) + ".*" + g.literal(1, 8)
	case 5:
		return "(" + g.literal(3, 9) + "|" + g.word() + ")" + pick(g, "", "(x)?", "(.)", `\s`, `\w*`, `(\w*?)(\W)`)
	case 6:
		return "(?i:" + g.literal(3, 9) + pick(g, "", ".", "[a-z]*") + ")" // in ripgrep 13 a bare (?i) also applies to the next -e
	case 7:
		return `\b` + g.word() + pick(g, `\b`, `\B`, `\w+`, "")
	case 8:
		return "^" + g.literal(1, 6)
	case 9:
		return g.literal(1, 6) + "$"
	case 10:
		return pick(g, `[a-f]`, `[^a-z]`, `[xyz]`, `[0-9A-F]`, `[[:upper:]]`, `\W`, `\D`, `[^\s]`, `[\w.-]`, `\p{Greek}`) + g.literal(2, 6)
	case 11:
		return g.literal(1, 3) + `[^\s]` + pick(g, "+", "*", "?", "{2,3}") + g.literal(1, 3)
	case 12:
		return strings.ReplaceAll(g.literal(6, 20), " ", `\s+`)
	case 13:
		return "(?:" + g.literal(1, 4) + ")" + pick(g, "+", "{2}", "{1,3}?", "*?") + g.literal(1, 3)
	case 14:
		return g.word() + `\s*` + pick(g, `\(`, `=`, `\{`, `\w`, `\.`) + pick(g, "", `\d`, `\S`)
	}
	return pick(g, `\w+_\w+\b`, `^$`, `x{20}`, `\bé`, `\d{6}`, `^\s*$`, `z*`, `TODO|FIXME`, `[^\x00-\x7F]`, `\bif\b.*\breturn\b`)
}

func (g *generator) question() question {
	q := question{show: grep.Show{LineNumbers: true}}
	for range pick(g, 1, 1, 1, 1, 2, 3) {
		q.patterns = append(q.patterns, g.pattern())
	}
	flag := func(chance int, args ...string) bool {
		if g.rng.IntN(chance) > 0 {
			return false
		}
		q.args = append(q.args, args...)
		return true
	}
	switch {
	case flag(6, "-i"):
		q.opts.Case = grep.Insensitive
	case flag(6, "-S"):
		q.opts.Case = grep.Smart
	}
	q.opts.Words = flag(6, "-w")
	if !q.opts.Words && flag(5, "-U") { // ripgrep's words in several lines may share what is between them
		q.opts.Multiline = true
		for i := range q.patterns {
			q.patterns[i] += pick(g, "", `\n`, `\s+`, `\n\s*`+g.literal(1, 4), `[^x]`, `(?s:.{3})`, `\n+`)
		}
	}
	if flag(8, "-F") {
		q.opts.Fixed = true
		q.patterns = []string{g.text(2, 20)}
	}
	switch {
	case flag(8, "-l"):
		q.show.Files = true
	case flag(8, "-c"):
		q.show.Count = true
	case flag(8, "-A", "2"):
		q.show.After = 2
	case flag(8, "-C", "1"):
		q.show.Before, q.show.After = 1, 1
	}
	q.show.OnlyMatching = flag(8, "-o")
	// ripgrep 13 replaces what is empty within characters, and with -U it shows lines after those that match.
	if text := pick(g, "<$0>", "", "$2$$1", "${1}x", "$1x"); !q.opts.Multiline && !slices.ContainsFunc(q.patterns, matchesEmpty) && flag(6, "-r", text) {
		q.opts.Replacement = &text
	}
	// What stands around the last of several lines depends on how ripgrep reads a file.
	if (!q.opts.Multiline || q.show.After == 0) && flag(8, "-m", "3") {
		q.show.Most = 3
	}
	q.ignore.Hidden = flag(10, "--hidden")
	q.ignore.NoRules = flag(10, "--no-ignore")
	return q
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return otherwise
}

func TestLinesOfRipgrep(t *testing.T) {
	if _, err := exec.LookPath("rg"); err != nil {
		t.Skip("rg is not installed")
	}
	tree := os.Getenv("TRAWL_TEST_TREE")
	if tree == "" {
		goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		tree = filepath.Join(strings.TrimSpace(string(goroot)), "src", "unicode")
	}
	seed := uint64(number(t, "TRAWL_TEST_SEED", 1))
	g := newGenerator(t, tree, seed)
	tree = filepath.Clean(tree)
	s := &searcher{tree: tree, cache: t.TempDir(), now: long}
	refused, different := 0, 0
	var ours, theirs time.Duration
	queries := number(t, "TRAWL_TEST_QUERIES", 100)
	for i := range queries {
		if i > 0 && i%50 == 0 {
			t.Logf("after %d queries: %d refused, %d different; ours %s, rg %s", i, refused, different, ours, theirs)
		}
		q := g.question()
		// An answer can be larger than the tree.
		file, err := os.Create(filepath.Join(s.cache, "answer"))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		refusal, ok := ripgrepTo(t, tree, tree, q, file)
		theirs += time.Since(began)
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		want := &expected{from: bufio.NewReaderSize(file, 1<<20)}
		began = time.Now()
		err = s.searchTo(t, q, want)
		ours += time.Since(began)
		switch {
		case !ok || err != nil:
			refused++
			if ok != (err == nil) {
				t.Logf("%d: rg %q %q: refused by one: %v / %.300s", i, q.args, q.patterns, err, refusal)
			}
		case !want.met():
			different++
			t.Errorf("%d: rg %q %q: %s", i, q.args, q.patterns, want.difference)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d queries, %d refused, %d different; ours %s, rg %s", queries, refused, different, ours, theirs)
}

// expected compares what is written with the expected output.
type expected struct {
	from *bufio.Reader
	// line is the line being compared, after lines others.
	line       []byte
	lines      int
	difference string
}

func (e *expected) Write(p []byte) (int, error) {
	for at, c := range p {
		if e.difference != "" {
			break
		}
		want, err := e.from.ReadByte()
		switch {
		case err != nil || c != want:
			rest, _ := e.from.ReadString('\n')
			if err == nil {
				rest = string(want) + rest
			}
			got, _, _ := bytes.Cut(p[at:], []byte{'\n'})
			e.difference = fmt.Sprintf("line %d:\n got %.200q\nwant %.200q", e.lines+1, string(e.line)+string(got), string(e.line)+rest)
		case c == '\n':
			e.line, e.lines = e.line[:0], e.lines+1
		default:
			e.line = append(e.line, c)
		}
	}
	return len(p), nil
}

// met reports whether all of it was written.
func (e *expected) met() bool {
	if rest, _ := e.from.ReadString('\n'); e.difference == "" && rest != "" {
		e.difference = fmt.Sprintf("line %d is missing: %.200q", e.lines+1, string(e.line)+rest)
	}
	return e.difference == ""
}

// difference shows the first lines that differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("line %d of %d and %d:\n got %.200q\nwant %.200q", i+1, len(g), len(w), a, b)
		}
	}
	return "none"
}
