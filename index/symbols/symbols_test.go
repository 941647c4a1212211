package symbols_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/symbols"
)

// TestLanguages compares the symbols of the files in testdata with the marks in their lines: a line
// that defines something names it as «kind:name» at its end.
func TestLanguages(t *testing.T) {
	covered := map[string]bool{}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		language := strings.TrimSuffix(filepath.Base(file), ".txt")
		covered[language] = true
		checkMarked(t, language, text)
	}
	for _, language := range symbols.Supported() {
		if alias := map[string]string{
			"CUDA": "C++", "Objective-C++": "Objective-C", "JSX": "JavaScript", "TSX": "TypeScript", "Cython": "Python", "PLpgSQL": "SQL", "PLSQL": "SQL", "TSQL": "SQL",
		}[language]; !covered[language] && !covered[alias] {
			t.Errorf("no file of %s", language)
		}
	}
}

// TestOldLineEnds: a text whose lines end in carriage returns defines what it defines with line feeds, at the same places.
func TestOldLineEnds(t *testing.T) {
	for _, language := range symbols.Supported() {
		text, err := os.ReadFile(filepath.Join("testdata", language+".txt"))
		if err != nil {
			continue // it has the rules of another one
		}
		want := symbols.For(language).Append(nil, text)
		old := bytes.ReplaceAll(text, []byte("\n"), []byte("\r"))
		before := bytes.Clone(old)
		if got := symbols.For(language).Append(nil, old); !slices.Equal(got, want) {
			t.Errorf("%s: %d symbols, want %d", language, len(got), len(want))
		}
		if !bytes.Equal(old, before) {
			t.Errorf("%s: the text changed", language)
		}
	}
}

func checkMarked(t *testing.T, language string, text []byte) {
	t.Helper()
	var source bytes.Buffer
	var want []string
	for i, line := range strings.Split(string(text), "\n") {
		code, marks, _ := strings.Cut(line, "«")
		source.WriteString(strings.TrimRight(code, " ") + "\n")
		for mark := range strings.FieldsSeq(strings.TrimSuffix(marks, "»")) {
			want = append(want, fmt.Sprintf("%d %s", i+1, mark))
		}
	}
	var got []string
	for _, s := range symbols.For(language).Append(nil, source.Bytes()) {
		name := string(source.Bytes()[s.Start:s.End])
		if s.Scope.End > 0 {
			name = string(source.Bytes()[s.Scope.Start:s.Scope.End]) + "/" + name
		}
		got = append(got, fmt.Sprintf("%d %s:%s", 1+bytes.Count(source.Bytes()[:s.Start], []byte("\n")), s.Kind, name))
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("%s: found %s", language, g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s: did not find %s", language, w)
		}
	}
}

// checkSymbols checks what must hold for the symbols of any text.
func checkSymbols(t *testing.T, text []byte, found []symbols.Symbol) {
	t.Helper()
	end := uint32(0)
	for _, s := range found {
		if s.Start < end || s.End <= s.Start || int(s.End) > len(text) || s.Scope.End < s.Scope.Start || int(s.Scope.End) > len(text) || s.Until != 0 && s.Until < s.End || int(s.Until) > len(text) || s.Kind.String() == "" {
			t.Fatalf("symbol %v after %d in a text of %d bytes", s, end, len(text))
		}
		for _, at := range []uint32{s.Start, s.End} {
			if at > 0 && int(at) < len(text) && isWord(text[at-1]) && isWord(text[at]) {
				t.Fatalf("symbol %v cuts a word: %q", s, text[max(0, int(at)-20):min(len(text), int(at)+20)])
			}
		}
		end = s.End
	}
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// pieces are the parts of the texts of FuzzAppend, in addition to bytes.
var pieces = strings.Fields(`func class def fn struct enum interface type const var let namespace module package typedef extern "C" ( ) { } [ ] < > ; , : = . => -> :: # @ ~ * & / // /* */ " ' ` + "`" + ` ${ """ ''' #define #if #else #endif <<EOT EOT ?> <?php =begin =end R"( )" r#" "# operator public static name Name a b 1 0x1 \`)

// TestRandomTokens finds symbols in random tokens, in all languages.
func TestRandomTokens(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		var text []byte
		for range random.IntN(60) {
			text = append(text, pieces[random.IntN(len(pieces))]...)
			text = append(text, " \n\t"[random.IntN(3)])
			if random.IntN(3) == 0 {
				text = text[:len(text)-1]
			}
		}
		for _, language := range symbols.Supported() {
			checkSymbols(t, text, symbols.For(language).Append(nil, text))
		}
	}
}

// FuzzAppend finds symbols in arbitrary bytes, in all languages.
func FuzzAppend(f *testing.F) {
	f.Add([]byte("func f() {}"))
	f.Add([]byte(strings.Join(pieces, " ")))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, language := range symbols.Supported() {
			checkSymbols(t, text, symbols.For(language).Append(nil, text))
		}
	})
}

// TestHostileTexts finds symbols in texts that are made to be slow: the work per byte must not grow
// with the text.
func TestHostileTexts(t *testing.T) {
	const size = 256 << 10
	texts := map[string]string{
		"one line":    strings.Repeat("x", 2<<20),
		"definitions": strings.Repeat("func f(){}\ndef f(a):\nclass C {\nint f() {}\n#define X\n", 100_000/5),
		"braces":      strings.Repeat("{", size),
		"parentheses": strings.Repeat("(", size),
		"angles":      strings.Repeat("a<", size/2),
		"templates":   strings.Repeat("`${", size/3),
		"quotes":      strings.Repeat("'\"", size/2),
		"slashes":     strings.Repeat("a = /", size/5),
		"comments":    strings.Repeat("/*", size/2),
		"heredocs":    strings.Repeat("a <<EOT\n", size/8),
		"ruby":        strings.Repeat("x = <<~EOT\n", size/11),
		"php":         strings.Repeat("<?php <<<EOT\n", size/13),
		"raw":         strings.Repeat("R\"abc(", size/6),
		"rust":        strings.Repeat("r#\"", size/3),
		"arrows":      strings.Repeat("const a = (", size/11),
		"impl":        strings.Repeat("impl a ", size/7),
		"conditional": strings.Repeat("#if\n{\n#else\n", size/12),
		"controls":    strings.Repeat("def \x00\x01\x7f\nfunc \x00f\n", size/16),
		"indentation": strings.Repeat("  ", size/4) + strings.Repeat("def f; ", size/14),
		"class":       strings.Repeat("class ", size/6),
		"spaces":      "x" + strings.Repeat(" ", size),
		"backslashes": strings.Repeat("a\\\n", size/3),
		"statements":  strings.Repeat("a;", size/2),
		"=":           strings.Repeat("a=", size/2),
		"perl":        "use constant {" + strings.Repeat("a ", size/2),
	}
	for name, text := range texts {
		for _, language := range symbols.Supported() {
			start := time.Now()
			checkSymbols(t, []byte(text), symbols.For(language).Append(nil, []byte(text)))
			if took := time.Since(start); took > time.Second {
				t.Logf("%s as %s took %s", name, language, took)
			}
		}
	}
}

// BenchmarkAppend finds the symbols in the code of this package.
func BenchmarkAppend(b *testing.B) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		b.Fatal(err)
	}
	var text []byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		text = append(text, data...)
	}
	for _, language := range []string{"Go", "C", "Java", "JavaScript", "Python", "Rust", "Ruby", "Shell"} {
		b.Run(language, func(b *testing.B) {
			var found []symbols.Symbol
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				found = symbols.For(language).Append(found[:0], text)
			}
		})
	}
}
