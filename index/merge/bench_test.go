package merge_test

import (
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/merge"
)

// goTree is the source of the Go toolchain as one repo.
var goTree = sync.OnceValues(func() (repository, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return repository{}, err
	}
	c, err := indextest.FromFolder(filepath.Join(strings.TrimSpace(string(goroot)), "src"))
	if err != nil {
		return repository{}, err
	}
	return modelOf(c)[0], nil
})

// cut makes a repo of each folder.
func cut(r repository) []repository {
	var repos []repository
	for _, d := range r.documents {
		name := "go/" + path.Dir(d.path)
		i := slices.IndexFunc(repos, func(r repository) bool { return r.record.Name == name })
		if i < 0 {
			i = len(repos)
			repos = append(repos, repository{record: r.record})
			repos[i].record.Name = name
		}
		d.path = path.Base(d.path)
		repos[i].documents = append(repos[i].documents, d)
	}
	for i := range repos {
		repos[i].sort()
	}
	slices.SortFunc(repos, func(a, b repository) int { return compare(a.record.Name, b.record.Name) })
	return repos
}

// scenario has inputs, and the documents that build the same shard.
type scenario struct {
	name   string
	inputs []merge.Input
	built  []repository
	bytes  uint64
}

func scenarios(b *testing.B) []scenario {
	tree, err := goTree()
	if err != nil {
		b.Fatal(err)
	}
	var all []scenario
	// A delta replaces every fiftieth document.
	delta := repository{record: tree.record}
	var hidden []uint32
	for i, d := range tree.documents {
		if i%50 == 0 {
			hidden = append(hidden, uint32(i))
			delta.documents = append(delta.documents, d)
		}
	}
	base, res := shardOf(b, []repository{tree}, build.Options{})
	changed, _ := shardOf(b, []repository{delta}, build.Options{})
	all = append(all, scenario{"delta", []merge.Input{
		{File: open(b, "base", base), Repos: []merge.Repo{{Record: tree.record, Hidden: hidden}}},
		{File: open(b, "delta", changed), Repos: []merge.Repo{{Record: tree.record}}},
	}, []repository{tree}, res.ContentBytes})
	pack := scenario{name: "pack", built: cut(tree), bytes: res.ContentBytes}
	for _, r := range pack.built {
		data, _ := shardOf(b, []repository{r}, build.Options{})
		pack.inputs = append(pack.inputs, merge.Input{File: open(b, r.record.Name, data), Repos: []merge.Repo{{Record: r.record}}})
	}
	eight := scenario{name: "eight", built: pieces(tree, 8), bytes: res.ContentBytes}
	for _, r := range eight.built {
		data, _ := shardOf(b, []repository{r}, build.Options{})
		eight.inputs = append(eight.inputs, merge.Input{File: open(b, r.record.Name, data), Repos: []merge.Repo{{Record: r.record}}})
	}
	return append(all, pack, eight)
}

// pieces splits a repo into n repos with about as many documents each.
func pieces(r repository, n int) (repos []repository) {
	for i := range n {
		piece := repository{record: r.record, documents: r.documents[i*len(r.documents)/n : (i+1)*len(r.documents)/n]}
		piece.record.Name = fmt.Sprint("go/", i)
		repos = append(repos, piece)
	}
	return repos
}

// perCore reports throughput by processor time, which does not count other work on the machine.
func perCore(b *testing.B, bytes uint64) func() {
	b.ReportAllocs()
	start := processorTime(b)
	return func() {
		b.ReportMetric(float64(bytes)*float64(b.N)/1e6/(processorTime(b)-start).Seconds(), "MB/core-s")
	}
}

func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkMerge merges on one processor, and builds the same shard from documents in memory: a
// base of the Go tree with a delta, the folders of the tree as repos, and the tree in eight repos.
func BenchmarkMerge(b *testing.B) {
	for _, s := range scenarios(b) {
		for effort, name := range []string{"fresh", "compact"} {
			b.Run(s.name+"/"+name+"/merge", func(b *testing.B) {
				defer perCore(b, s.bytes)()
				for b.Loop() {
					if _, err := merge.Shards(b.Context(), io.Discard, s.inputs, merge.Options{Effort: docstore.Effort(effort), Processors: 1}); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(s.name+"/"+name+"/build", func(b *testing.B) {
				defer perCore(b, s.bytes)()
				for b.Loop() {
					shardOf(b, s.built, build.Options{Effort: docstore.Effort(effort)})
				}
			})
		}
	}
}
