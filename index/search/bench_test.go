package search_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// BenchmarkSearch searches the Go standard library for rare words, common ones and some in between,
// and for the best files of common ones.
func BenchmarkSearch(b *testing.B) {
	s := goSourceShard(b)
	for name, text := range map[string]string{
		"rare":      "ErrFlightBusy or SIGSTKFLT",
		"mid":       "WithDeadline",
		"common":    "return",
		"short":     "if",
		"near miss": "contexx.Background",
		"phrase":    `"for range time.Tick"`,
		"case":      "case:yes Completed",
		"regexp":    `func\s+\w+Deadline\(\w`,
		"scoped":    `f:net/http Deadline`,
		"keywords":  "context deadline timer",
	} {
		benchSearch(b, s, name, text, search.Exhaustive)
	}
	for name, text := range map[string]string{
		"best of common":     "c:return",
		"best of one letter": "c:i",
		"best of a name":     "c:Reader",
		"best of any place":  "string",
	} {
		benchSearch(b, s, name, text, search.TopK)
	}
}

func benchSearch(b *testing.B, s *search.Shard, name, text string, mode search.Mode) {
	b.Helper()
	q := prepare(b, parse(b, text))
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Search(context.Background(), q, search.Options{Mode: mode, MaxFiles: 50, MaxMatchesPerFile: 100}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// goSourceShard is a shard of the Go standard library.
func goSourceShard(b *testing.B) *search.Shard {
	b.Helper()
	goroot, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	c, err := indextest.FromFolder(filepath.Join(strings.TrimSpace(string(goroot)), "src"))
	if err != nil {
		b.Fatal(err)
	}
	return openShard(b, buildShard(b, c))
}

// BenchmarkFacets counts the files of searches by repo and language, as the web page does, next to
// the searches themselves.
func BenchmarkFacets(b *testing.B) {
	s := goSourceShard(b)
	for _, text := range []string{"WithDeadline", "return", "context deadline timer", `func\s+\w+Deadline\(\w`} {
		benchSearch(b, s, "search/"+text, text, search.Exhaustive)
		q := prepare(b, parse(b, text))
		b.Run("count/"+text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Count(context.Background(), q, search.Options{}, []search.Facet{search.ByRepo, search.ByLanguage}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkShow shows the best files that a search has found: fifty with very many matches, and one with a line of 1.8 MB.
func BenchmarkShow(b *testing.B) {
	var files []indextest.Document
	for i := range 50 {
		text := strings.Repeat("\tif needle := use(needle); needle != nil {\n"+strings.Repeat("\t\tother(\"words\", of, a, file)\n", 8)+"}\n", 100)
		files = append(files, indextest.Document{Path: strconv.Itoa(i) + ".go", Content: []byte(text), Branches: []string{"main"}, Language: "Go"})
	}
	line := strings.Repeat(strings.Repeat("minified(code){return};", 13_000)+" needle ", 6)
	files = append(files, indextest.Document{Path: "line.js", Content: []byte(line), Branches: []string{"main"}})
	s := openShard(b, buildShard(b, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: files}}}))
	for name, text := range map[string]string{"files": "f:go c:needle", "files by expression": `f:go c:"nee[d]le :="`, "line": "f:js c:needle"} {
		for more, opts := range map[string]search.Options{"": {}, " in context": {ContextLines: 3, MaxLine: 1000}, " with symbols": {Symbols: true}} {
			opts.MaxFiles, opts.MaxMatchesPerFile = 50, 100
			found, err := s.Find(context.Background(), prepare(b, parse(b, text)), opts)
			if err != nil || len(found.Hits) == 0 {
				b.Fatalf("%d hits, %v", len(found.Hits), err)
			}
			b.Run(name+more, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.Show(context.Background(), found, len(found.Hits)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
