package build_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/internal/testrun"
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

// treeEnv names folders, separated as in PATH, that BenchmarkBuild indexes instead of the source of
// Go.
const treeEnv = "TRAWL_TEST_TREE"

// languages maps file extensions to languages, which decide how symbols are found.
var languages = map[string]string{
	".c": "C", ".h": "C", ".cc": "C++", ".go": "Go", ".java": "Java", ".js": "JavaScript", ".py": "Python", ".rs": "Rust",
}

// sources reads the trees to index, in order of their paths.
func sources(b *testing.B) (docs []build.Document, size int64) {
	b.Helper()
	trees := filepath.SplitList(os.Getenv(treeEnv))
	if len(trees) == 0 {
		goroot, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
		if err != nil {
			b.Skip(err)
		}
		trees = []string{filepath.Join(strings.TrimSpace(string(goroot)), "src")}
	}
	for _, root := range trees {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			docs = append(docs, build.Document{Path: []byte(path), Content: content, Language: languages[filepath.Ext(path)]})
			size += int64(len(content))
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	slices.SortFunc(docs, func(a, b build.Document) int { return bytes.Compare(a.Path, b.Path) })
	return docs, size
}

// BenchmarkHostile builds shards of texts that are unlike source code. It reports their sizes
// relative to the text, and the peak memory of the process: run one kind at a time to get its own
// peak. The largest has ten million distinct words.
func BenchmarkHostile(b *testing.B) {
	const size, part = 90 << 20, 1 << 20
	for _, name := range slices.Sorted(maps.Keys(indextest.Hostile)) {
		b.Run(name, func(b *testing.B) {
			text := indextest.Hostile[name](testrun.Rounds(part, size))
			b.SetBytes(int64(len(text)))
			var docs []build.Document
			for i := 0; len(text) > 0; i++ {
				n := min(len(text), part)
				docs = append(docs, doc(fmt.Sprintf("%06d", i), string(text[:n])))
				text = text[n:]
			}
			var content, shard int64
			start := cpuTime(b)
			for b.Loop() {
				content, shard = 0, 0
				for left := docs; len(left) > 0; {
					res, n := fill(b, left)
					content, shard, left = content+int64(res.ContentBytes), shard+res.Size, left[n:]
				}
			}
			b.ReportMetric(float64(content)*float64(b.N)/1e6/(cpuTime(b)-start).Seconds(), "MB/core-s")
			b.ReportMetric(float64(shard)/float64(content), "size/text")
			b.ReportMetric(peakMemory(b), "peak-MB")
		})
	}
}

// fill builds a shard of documents until it is full, and returns the number of documents.
func fill(b *testing.B, docs []build.Document) (build.Result, int) {
	b.Helper()
	builder, err := build.NewBuilder(io.Discard, build.Options{})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	err = builder.AddRepo(repo)
	for ; err == nil && n < len(docs) && !builder.Full(); n++ {
		d := docs[n]
		d.Branches = []uint32{0}
		err = builder.Add(d)
	}
	res, closeErr := builder.Close()
	if err = errors.Join(err, closeErr); err != nil {
		b.Fatal(err)
	}
	return res, n
}

// peakMemory returns the peak resident memory of the process in megabytes.
func peakMemory(b *testing.B) float64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Maxrss) / 1e3
}

// BenchmarkBuild builds shards of trees from memory, and discards them: of an indexer's work it
// omits only reading files and writing shards. Of several builds the one with the least processor
// time counts.
func BenchmarkBuild(b *testing.B) {
	docs, size := sources(b)
	b.SetBytes(size)
	b.ReportAllocs()
	least := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := cpuTime(b)
		for left := docs; len(left) > 0; {
			_, n := fill(b, left)
			left = left[n:]
		}
		least = min(least, cpuTime(b)-start)
	}
	b.ReportMetric(float64(size)/1e6/least.Seconds(), "MB/core-s")
}
