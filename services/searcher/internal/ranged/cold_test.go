package ranged

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// coldQueries are of many kinds: rare, mid and common words, several of them, phrases, expressions, paths and definitions.
var coldQueries = []string{
	"StableTopological", "ErrUnexpectedEOF", "deprecated", "content:strings", "content:target", "err", "case:yes Completed", "dispose",
	"connection reset", "goroutine leak", "content:final content:target", "public class", "content:return content:error content:buffer", "parse header field line",
	`"return nil, err"`, `"return value"`, `"out of memory"`, `"connection reset by peer"`,
	"func.*Context.*error", "func.*register", "return.*NULL_TREE", "(parse|scan)Header", "content:/[a-z]+Helper\\(/", "alloc[a-z]*Buffer", "content:/0x[0-9a-f]{8}ULL/",
	"f:sort/sort.go", "f:main", "f:README", "f:test content:buffer", "f:_test.go f:net", "lang:go content:mutex",
	"sym:handler", "sym:Reader", "sym:parse", "sym:dispose", "content:Reader -content:Writer", "TODO", "overflow", "xyzzyplughnothing", "match:any parse tree node",
}

// slowBucket delays reads as a bucket in another zone does, and records what they cost: 63 ms at the median, 118 ms in one of a
// thousand, drawn from a fixed seed.
type slowBucket struct {
	mu              sync.Mutex
	rng             *rand.Rand
	requests, bytes int64
	// done is the most requests, one after another, that have ended.
	done, rounds int
	sections     map[string]int64 // bytes
	info         []format.SectionInfo
}

const (
	coldMedian = 63 * time.Millisecond
	coldSpread = 0.203 // ln(118/63) divided by the 99.9th percentile of the normal distribution
)

func (s *slowBucket) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.bytes, s.done, s.rounds, s.sections = 0, 0, 0, 0, map[string]int64{}
}

// begin records a read, and returns how long it takes and which round it is in.
func (s *slowBucket) begin(off, n int64) (time.Duration, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.bytes += n
	s.rounds = max(s.rounds, s.done+1)
	for _, i := range s.info {
		if from, to := max(off, i.Offset), min(off+n, i.Offset+i.Length); from < to {
			s.sections[i.Tag.String()] += to - from
		}
	}
	return time.Duration(float64(coldMedian) * math.Exp(coldSpread*s.rng.NormFloat64())), s.done + 1
}

func (s *slowBucket) end(round int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = max(s.done, round)
}

// largest names the sections with the most bytes.
func (s *slowBucket) largest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.sections {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(s.sections[b], s.sections[a]) })
	var out strings.Builder
	for _, name := range names[:min(len(names), 7)] {
		fmt.Fprintf(&out, " %s %.2f", name, float64(s.sections[name])/1e6)
	}
	return out.String()
}

// delayed is a bucket whose reads are slow.
type delayed struct {
	*source
	slow *slowBucket
}

func (d delayed) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	wait, round := d.slow.begin(off, n)
	defer d.slow.end(round)
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return d.source.GetRange(ctx, key, off, n)
}

// coldCache is a cache over a slow bucket that has the tail of a shard and nothing else, with a disk for a quarter of the shard.
func coldCache(b *testing.B, w *world, slow *slowBucket, object Object) (*Cache, *Shard) {
	b.Helper()
	c := New(b.TempDir(), delayed{w.source, slow}, disk.NewBudget(max(object.Size/4, 16<<20)), slog.New(slog.DiscardHandler), NewMetrics(prometheus.NewRegistry()))
	s := c.Open(object)
	must(b, s.Check(b.Context()))
	c.flights.Wait()
	slow.reset()
	return c, s
}

// coldSearch searches once.
func coldSearch(b *testing.B, s *Shard, q *search.Query, mode search.Mode) (*search.Result, time.Duration) {
	b.Helper()
	began := time.Now()
	r, err := search.Search(b.Context(), s, q, search.Options{Mode: mode, MaxFiles: 50, MaxMatchesPerFile: 10})
	must(b, err)
	return r, time.Since(began)
}

// coldCorpus returns the shard of BenchmarkCold, and the corpus by which its queries are resolved.
func coldCorpus(b *testing.B) (*indextest.Corpus, []byte) {
	b.Helper()
	file := os.Getenv("TRAWL_BENCH_SHARD")
	if file == "" {
		return benchTree(b)
	}
	whole, err := os.ReadFile(file)
	must(b, err)
	return &indextest.Corpus{}, whole
}

// BenchmarkCold searches a shard of which only the tail is on the disk, which has room for a quarter of it, and prints what each query costs: a
// round is the requests that are on their way at the same time. The shard is that of the Go tree, of TRAWL_BENCH_TREE, or in
// TRAWL_BENCH_SHARD.
func BenchmarkCold(b *testing.B) {
	corpus, whole := coldCorpus(b)
	f, err := format.NewFile("local", whole)
	must(b, err)
	slow := &slowBucket{rng: rand.New(rand.NewPCG(1, 1)), info: f.Sections(), sections: map[string]int64{}}
	w := newWorld(b, b.TempDir(), 0, blockSize)
	defer w.Close()
	object := w.put(b, "whole", whole)
	for mode, name := range []string{search.TopK: "best", search.Exhaustive: "all"} {
		b.Run(name, func(b *testing.B) {
			values := map[string][]float64{}
			for _, text := range coldQueries {
				c, s := coldCache(b, w, slow, object)
				r, took := coldSearch(b, s, prepare(b, corpus, text), search.Mode(mode))
				must(b, s.Close())
				c.Close()
				cost := map[string]float64{"rounds": float64(slow.rounds), "requests": float64(slow.requests), "MB": float64(slow.bytes) / 1e6, "ms": took.Seconds() * 1e3}
				fmt.Fprintf(os.Stdout, "%-45s %3d files %3d rounds %4d requests %6.2f MB %6.0f ms;%s\n", text, len(r.Files), slow.rounds, slow.requests, cost["MB"], cost["ms"], slow.largest())
				for what, n := range cost {
					values[what] = append(values[what], n)
				}
			}
			for what, all := range values {
				slices.Sort(all)
				b.ReportMetric(all[len(all)/2], what+"-p50")
				b.ReportMetric(all[len(all)-1], what+"-max")
			}
		})
	}
}

// BenchmarkColdUsers has 1, 8 and 32 users search the shard of BenchmarkCold at once, each the same queries in an order of its own, from a cache that has the
// tail at first.
func BenchmarkColdUsers(b *testing.B) {
	const searches = 160 // of all users together
	corpus, whole := coldCorpus(b)
	slow := &slowBucket{rng: rand.New(rand.NewPCG(1, 1)), sections: map[string]int64{}}
	w := newWorld(b, b.TempDir(), 0, blockSize)
	defer w.Close()
	object := w.put(b, "whole", whole)
	var queries []*search.Query
	for _, text := range coldQueries {
		queries = append(queries, prepare(b, corpus, text))
	}
	for mode, name := range []string{search.TopK: "best", search.Exhaustive: "all"} {
		for _, users := range []int{1, 8, 32} {
			b.Run(fmt.Sprint(name, "/", users), func(b *testing.B) {
				c, s := coldCache(b, w, slow, object)
				var all sync.WaitGroup
				took := make([]time.Duration, searches)
				for user := range users {
					order := rand.New(rand.NewPCG(uint64(user), 2)).Perm(len(queries))
					all.Go(func() {
						for i := user; i < searches; i += users {
							_, took[i] = coldSearch(b, s, queries[order[i/users%len(order)]], search.Mode(mode))
						}
					})
				}
				all.Wait()
				slices.Sort(took)
				b.ReportMetric(float64(slow.requests)/searches, "requests/search")
				b.ReportMetric(float64(slow.bytes)/searches/1e6, "MB/search")
				b.ReportMetric(took[searches/2].Seconds()*1e3, "ms-p50")
				b.ReportMetric(took[searches*99/100].Seconds()*1e3, "ms-p99")
				must(b, s.Close())
				c.Close()
			})
		}
	}
}
