package regex

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp/syntax"
	"strings"
	"testing"
)

// goTree is part of the Go source tree, file by file.
func goTree(b *testing.B) (files [][]byte, size int64) {
	b.Helper()
	goroot, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	for _, dir := range []string{"src/net", "src/cmd/compile"} {
		root := filepath.Join(strings.TrimSpace(string(goroot)), filepath.FromSlash(dir))
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasPrefix(d.Name(), "rewrite") {
				return err
			}
			file, err := os.ReadFile(path)
			files = append(files, file)
			size += int64(len(file))
			return err
		})
		if err != nil {
			b.Skip(err)
		}
	}
	return files, size
}

// BenchmarkFind compares automata with the standard library on successive
// matches in the Go tree.
func BenchmarkFind(b *testing.B) {
	files, size := goTree(b)
	for _, pattern := range []string{
		`\bdma_map_(single|page)\b`, `\bhttp_(client|server)\b`, `[A-Z]+_SUSPEND`, `(?i)copyright.*google`, `func\s+\w+\(`, `x*`, `\w{5}\s+\w{5}`, `[ab]foo`, `(foo|bar|baz)qux?`,
		`\b(if|for|return)\b`, `(?i)err(or)?s?\b`, `\w+(TODO|FIXME|XXX|HACK|BUG)`, `^\s*//.*$`, `[^\x00-\x7F]+`,
	} {
		tree, err := syntax.Parse(pattern, flags)
		if err != nil {
			b.Fatal(err)
		}
		own, err := NewMatcher(tree, true)
		if err != nil {
			b.Fatal(err)
		}
		l, err := newLibrary(tree, true)
		if err != nil {
			b.Fatal(err)
		}
		for name, m := range map[string]Matcher{"own": own, "library": l} {
			b.Run(pattern+"/"+name, func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				matches := 0
				for b.Loop() {
					for _, file := range files {
						for range Ranges(m, file) {
							matches++
						}
					}
				}
				b.ReportMetric(float64(matches)/float64(b.N), "matches/op")
			})
		}
	}
}

// BenchmarkNewMatcher measures what a query costs for each shard.
func BenchmarkNewMatcher(b *testing.B) {
	for _, pattern := range []string{`\bdma_map_(single|page)\b`, `(?i)copyright.*google`, `[\pL]{20}`} {
		tree, err := syntax.Parse(pattern, flags)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(pattern, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewMatcher(tree, true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLine searches in a single line, where starting a search costs more
// than reading.
func BenchmarkLine(b *testing.B) {
	tree, err := syntax.Parse(`func\s+\w+\(`, flags)
	if err != nil {
		b.Fatal(err)
	}
	m, err := NewMatcher(tree, true)
	if err != nil {
		b.Fatal(err)
	}
	line := []byte("\tfunc  closeAll(all []io.Closer) error {")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := m.Find(line, 0); !ok {
			b.Fatal("no match")
		}
	}
}
