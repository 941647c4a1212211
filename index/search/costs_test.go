package search

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/literal"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
)

// BenchmarkCosts measures, on the Go tree, the time for each unit of work that the constants
// compare when they choose between words and text.
func BenchmarkCosts(b *testing.B) {
	s := goTree(b)
	for _, c := range []struct {
		name string
		run  func(b *testing.B, run *search) (units int)
	}{
		{"posting of long lists", func(b *testing.B, run *search) int { return benchPostings(b, run, "err", longList, allCounts) }},
		{"posting of long lists, with mask", func(b *testing.B, run *search) int { return benchPostings(b, run, "err", longList, withMasks) }},
		{"posting of all lists", func(b *testing.B, run *search) int { return benchPostings(b, run, "err", 0, allCounts) }},
		{"posting of all lists, with mask", func(b *testing.B, run *search) int { return benchPostings(b, run, "err", 0, withMasks) }},
		{"posting of some lists", func(b *testing.B, run *search) int { return benchPostings(b, run, "Deadline", 0, allCounts) }},
		{"block of the lexicon", benchBlocks},
		{"block of the lexicon, with postings", benchBlocksAndPostings},
		{"byte of text", benchText},
		{"place in the text", benchPlaces},
	} {
		b.Run(c.name, func(b *testing.B) {
			err := s.with(context.Background(), nil, Options{}, func(run *search) error {
				units := c.run(b, run)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(units), "ns/unit")
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// goTree is a shard of the Go files of the toolchain.
func goTree(b *testing.B) *Shard {
	b.Helper()
	var data bytes.Buffer
	builder, err := build.NewBuilder(&data, build.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := builder.AddRepo(docstore.Repo{Name: "go", Branches: []docstore.Branch{{Name: "main"}}}); err != nil {
		b.Fatal(err)
	}
	goroot, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	var paths []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Ext(path) == ".go" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	slices.Sort(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := builder.Add(build.Document{Path: []byte(path[len(root)+1:]), Content: text, Branches: []uint32{0}}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := builder.Close(); err != nil {
		b.Fatal(err)
	}
	f, err := format.NewFile("go", data.Bytes())
	if err != nil {
		b.Fatal(err)
	}
	s, err := OpenFile(f)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// longList is the least number of postings of a long list.
const longList = 500

// found returns the words that hold a literal and have at least that many postings, and the number
// of their postings.
func found(b *testing.B, run *search, text string, least int) (words []wordMatch, postings int) {
	b.Helper()
	l := regex.Literal{Text: text}
	blocks, err := run.lexiconBlocks(l)
	if err != nil {
		b.Fatal(err)
	}
	words, err = run.matchBlocks(literalInWords(l), blocks)
	if err != nil {
		b.Fatal(err)
	}
	kept := words[:0]
	for _, w := range words {
		list, err := run.words.List(w.word)
		if err != nil {
			b.Fatal(err)
		}
		if df := int(list.DF()); df >= least {
			kept = append(kept, w)
			postings += df
		}
	}
	return kept, postings
}

func benchPostings(b *testing.B, run *search, text string, least int, part listPart) int {
	b.Helper()
	words, postings := found(b, run, text, least)
	for b.Loop() {
		if _, err := run.tallies(words, part, nil); err != nil {
			b.Fatal(err)
		}
	}
	return postings
}

func benchBlocks(b *testing.B, run *search) int {
	m := literalInWords(regex.Literal{Text: "err"})
	all, err := run.lexiconBlocks(regex.All{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := run.matchBlocks(m, all); err != nil {
			b.Fatal(err)
		}
	}
	return int(run.words.Blocks())
}

// benchBlocksAndPostings finds the words of a literal and adds up their postings.
func benchBlocksAndPostings(b *testing.B, run *search) int {
	l := regex.Literal{Text: "Deadline"}
	blocks, err := run.lexiconBlocks(l)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		words, err := run.matchBlocks(literalInWords(l), blocks)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := run.tallies(words, allCounts, nil); err != nil {
			b.Fatal(err)
		}
	}
	return len(blocks)
}

// benchText decodes and searches some whole blobs.
func benchText(b *testing.B, run *search) (size int) {
	a := &contentAtom{matching: literalMatching("Deadline", false, query.Content), s: run, keep: 1}
	for b.Loop() {
		size = 0
		for blob := uint32(0); blob < run.content.Blobs(); blob += 20 {
			text, err := run.text.load(run, blob)
			if err != nil {
				b.Fatal(err)
			}
			a.spans.reset(0)
			if err := a.searchText(text); err != nil {
				b.Fatal(err)
			}
			size += len(text)
		}
	}
	return size
}

// benchPlaces decodes and searches a block in the middle of each of many superblocks.
func benchPlaces(b *testing.B, run *search) (places int) {
	m := literal.New("Deadline", false)
	for b.Loop() {
		places = 0
		for blob := uint32(0); blob < run.content.Blobs(); blob += 5 {
			size, err := run.content.Len(blob)
			if err != nil {
				b.Fatal(err)
			}
			if size < docstore.SuperblockSize {
				continue
			}
			text, err := run.read(run.buf[:0], blob, docstore.SuperblockSize/2, docstore.BlockSize)
			if err != nil {
				b.Fatal(err)
			}
			run.buf = text
			for range regex.Ranges(m, text) {
			}
			places++
		}
	}
	return places
}
