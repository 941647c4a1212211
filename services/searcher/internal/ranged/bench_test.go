package ranged

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// firstByte is how long each ranged read of the benchmark waits: a bucket in the
// same region takes about as long.
const firstByte = 20 * time.Millisecond

// BenchmarkTree searches the Go tree's sources, or those of TRAWL_BENCH_TREE, in a local shard, by
// ranges with an empty cache, and by ranges with a full one. It reports the reads and bytes of a
// search, for blocks of several sizes.
func BenchmarkTree(b *testing.B) {
	corpus, whole := benchTree(b)
	f, err := format.NewFile("local", whole)
	must(b, err)
	local, err := search.OpenFile(f)
	must(b, err)
	for _, grain := range []int64{blockSize, 64 << 10, 1 << 20} {
		w := newWorld(b, b.TempDir(), 0, grain)
		object := w.put(b, "whole", whole)
		w.source.breakBy(func(_ context.Context, r io.ReadCloser) (io.ReadCloser, error) {
			time.Sleep(firstByte)
			return r, nil
		})
		for _, text := range []string{"f:sort/sort.go", "ErrUnexpectedEOF", "StableTopological", "func.*Context.*error", "case:yes Completed", "err"} {
			q := prepare(b, corpus, text)
			name := fmt.Sprintf("%dKiB/%s", grain>>10, text)
			if grain == blockSize {
				b.Run("local/"+text, func(b *testing.B) {
					for b.Loop() {
						find(b, local, q)
					}
				})
			}
			b.Run("cold/"+name, func(b *testing.B) {
				before := w.source.reads.Load()
				for b.Loop() {
					s := w.Open(object)
					find(b, s, q)
					b.ReportMetric(float64(w.fifo.smallBytes+w.fifo.mainBytes), "B/search")
					must(b, s.Close())
				}
				b.ReportMetric(float64(w.source.reads.Load()-before)/float64(b.N), "reads/search")
			})
			b.Run("warm/"+name, func(b *testing.B) {
				s := w.Open(object)
				find(b, s, q)
				for b.Loop() {
					find(b, s, q)
				}
				must(b, s.Close())
			})
		}
		w.Close()
	}
}

// BenchmarkUsers has 1, 8 and 32 users search the same tree at once, each with a query of its own, by
// ranges from an empty cache that has room for two thirds of the shard.
func BenchmarkUsers(b *testing.B) {
	corpus, whole := benchTree(b)
	texts := []string{
		"ErrUnexpectedEOF", "StableTopological", "case:yes Completed", "connection reset", "goroutine leak", "sym:Reader", "content:deprecated", "content:strings.Builder",
	}
	for _, users := range []int{1, 8, 32} {
		b.Run(fmt.Sprint(users), func(b *testing.B) {
			w := newWorld(b, b.TempDir(), int64(len(whole)/3*2), blockSize)
			defer w.Close()
			object := w.put(b, "whole", whole)
			w.source.breakBy(func(_ context.Context, r io.ReadCloser) (io.ReadCloser, error) {
				time.Sleep(firstByte)
				return r, nil
			})
			for b.Loop() {
				s := w.Open(object)
				var all sync.WaitGroup
				for i := range users {
					q := prepare(b, corpus, texts[i%len(texts)])
					all.Go(func() { find(b, s, q) })
				}
				all.Wait()
				must(b, s.Close())
			}
			b.ReportMetric(float64(w.source.reads.Load())/float64(b.N*users), "reads/search")
		})
	}
}

// benchTree returns the tree of the benchmarks and its shard.
func benchTree(b *testing.B) (*indextest.Corpus, []byte) {
	b.Helper()
	tree := os.Getenv("TRAWL_BENCH_TREE")
	if tree == "" {
		root, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
		must(b, err)
		tree = filepath.Join(strings.TrimSpace(string(root)), "src")
	}
	corpus, err := indextest.FromFolder(tree)
	must(b, err)
	whole := built(b, corpus)
	b.Logf("a shard of %d bytes", len(whole))
	return corpus, whole
}

func find(b *testing.B, s searchable, q *search.Query) {
	b.Helper()
	r, err := search.Search(b.Context(), s, q, search.Options{MaxFiles: 50, MaxMatchesPerFile: 10})
	if err != nil || r.Incomplete != nil {
		b.Error(err, r)
	}
}
