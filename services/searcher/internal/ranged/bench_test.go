package ranged

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/shard"
)

// firstByte is how long each ranged read of the benchmark waits: a bucket in the
// same region takes about as long.
const firstByte = 20 * time.Millisecond

// BenchmarkTree searches the Go tree's sources, or those of TRAWL_BENCH_TREE, in a local shard, by
// ranges with an empty cache, and by ranges with a full one. It reports the reads and bytes of a
// search, for blocks of several sizes.
func BenchmarkTree(b *testing.B) {
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
	f, err := format.NewFile("local", whole)
	must(b, err)
	local, err := shard.OpenFile(f)
	must(b, err)
	for _, grain := range []int64{64 << 10, blockSize, 1 << 20} {
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
					s, err := w.Open(object)
					must(b, err)
					find(b, s, q)
					b.ReportMetric(float64(w.fifo.smallBytes+w.fifo.mainBytes), "B/search")
					must(b, s.Close())
				}
				b.ReportMetric(float64(w.source.reads.Load()-before)/float64(b.N), "reads/search")
			})
			b.Run("warm/"+name, func(b *testing.B) {
				s, err := w.Open(object)
				must(b, err)
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

func find(b *testing.B, s searchable, q *shard.Query) {
	b.Helper()
	r, err := shard.Search(b.Context(), s, q, shard.Options{MaxFiles: 50, MaxMatchesPerFile: 10})
	if err != nil || r.Incomplete != nil {
		b.Fatal(err, r)
	}
}
