package inverted

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
)

// cpuTime returns the processor time of the process: on a busy machine it says more than the clock.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func reportSpeed(b *testing.B, size int64, start time.Duration) {
	b.Helper()
	b.ReportMetric(float64(size)*float64(b.N)/1e6/(cpuTime(b)-start).Seconds(), "MB/core-s")
}

// goSource reads part of the Go source tree.
func goSource(b *testing.B) (blobs [][]byte, size int64) {
	b.Helper()
	goroot, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	for _, folder := range []string{"cmd/compile", "net", "runtime", "go"} {
		root := filepath.Join(strings.TrimSpace(string(goroot)), "src", folder)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			blob, err := os.ReadFile(path)
			blobs = append(blobs, blob)
			size += int64(len(blob))
			return err
		})
		if err != nil {
			b.Skip(err)
		}
	}
	return blobs, size
}

func addAll(b *testing.B, builder *NgramBuilder, e *ngram.Extractor, blobs [][]byte) (superblocks uint32) {
	b.Helper()
	builder.Reset()
	for _, blob := range blobs {
		e.Extract(blob, func(superblock uint32, ids []ngram.ID, masks []uint8) {
			if err := builder.Add(superblocks+superblock, ids, masks); err != nil {
				b.Fatal(err)
			}
		})
		superblocks += uint32((len(blob) + ngram.SuperblockSize - 1) / ngram.SuperblockSize)
	}
	return superblocks
}

// BenchmarkBuild measures extraction, collecting and writing together.
func BenchmarkBuild(b *testing.B) {
	blobs, size := goSource(b)
	builder, e := NewNgramBuilder(), ngram.NewExtractor()
	b.SetBytes(size)
	b.ReportAllocs()
	sections := map[format.Tag]int64{}
	start := cpuTime(b)
	for b.Loop() {
		superblocks := addAll(b, builder, e, blobs)
		w := format.NewWriter(io.Discard)
		if err := builder.Write(w, ContentTags, superblocks); err != nil {
			b.Fatal(err)
		}
		for _, s := range w.Sections() {
			sections[s.Tag] = s.Length
		}
	}
	reportSpeed(b, size, start)
	for tag, name := range map[format.Tag]string{ContentTags.Table: "table", ContentTags.Lists: "lists"} {
		b.ReportMetric(float64(sections[tag])/float64(size), name+"/source")
	}
	b.ReportMetric(float64(builder.Postings())/float64(size), "postings/byte")
	b.ReportMetric(float64(builder.MemoryUsed())/float64(size), "pool/source")
}

// BenchmarkAdd measures extraction and collecting.
func BenchmarkAdd(b *testing.B) {
	blobs, size := goSource(b)
	builder, e := NewNgramBuilder(), ngram.NewExtractor()
	b.SetBytes(size)
	start := cpuTime(b)
	for b.Loop() {
		addAll(b, builder, e, blobs)
	}
	reportSpeed(b, size, start)
}

// BenchmarkLiteral walks the candidates of literals sampled from the text, with at most that many
// lists in addition to the anchor's.
func BenchmarkLiteral(b *testing.B) {
	blobs, _ := goSource(b)
	builder := NewNgramBuilder()
	superblocks := addAll(b, builder, ngram.NewExtractor(), blobs)
	x := openFile(b, writeFile(b, builder, superblocks))
	for _, length := range []int{5, 8, 14} {
		for _, followers := range []int{0, 2, 4, maxFollowers} {
			name := fmt.Sprintf("length=%d/followers=%d", length, followers)
			b.Run(name, func(b *testing.B) { benchLiteral(b, x, blobs, length, followers) })
		}
	}
}

func benchLiteral(b *testing.B, x *Index, blobs [][]byte, length, followers int) {
	random := rand.New(rand.NewPCG(3, 4))
	candidates, blocks, leads, n := 0, 0, uint64(0), 0
	var literals [][]ngram.Window
	for len(literals) < 200 {
		blob := blobs[random.IntN(len(blobs))]
		if start := random.IntN(len(blob)); start+length <= len(blob) {
			literals = append(literals, ngram.LiteralWindows(string(blob[start:start+length]), false))
		}
	}
	for b.Loop() {
		c, err := x.literal(literals[n%len(literals)], followers)
		if err != nil {
			b.Fatal(err)
		}
		n++
		leads += c.Cost()
		for _, mask, ok := c.Next(); ok; _, mask, ok = c.Next() {
			candidates++
			for ; mask != 0; mask &= mask - 1 {
				blocks++
			}
		}
	}
	b.ReportMetric(float64(leads)/float64(n), "lead/query")
	b.ReportMetric(float64(candidates)/float64(n), "superblocks/query")
	b.ReportMetric(float64(blocks)/float64(n), "blocks/query")
}

// BenchmarkRead walks whole lists, with and without their masks.
func BenchmarkRead(b *testing.B) {
	blobs, _ := goSource(b)
	builder := NewNgramBuilder()
	superblocks := addAll(b, builder, ngram.NewExtractor(), blobs)
	x := openFile(b, writeFile(b, builder, superblocks))
	for name, masks := range map[string]bool{"lists": false, "masks": true} {
		b.Run(name, func(b *testing.B) {
			it := new(Iterator)
			start := cpuTime(b)
			for b.Loop() {
				readAllLists(b, x, it, masks)
			}
			b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/float64(b.N)/float64(x.Postings()), "ns/posting")
		})
	}
}

func readAllLists(b *testing.B, x *Index, it *Iterator, masks bool) {
	b.Helper()
	for term := range x.Terms() {
		l, err := x.list(term)
		if err != nil {
			b.Fatal(err)
		}
		for it.Reset(l); it.Next(); {
			if masks && it.Mask() == 0 {
				b.Fatal(it.Err())
			}
		}
	}
}
