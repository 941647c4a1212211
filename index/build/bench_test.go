package build_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/build"
)

// cpuTime is the processor time that the process has used: on a busy machine it tells
// more than the clock.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// goSource reads the Go source tree.
func goSource(b *testing.B) (docs []build.Document, size int64) {
	b.Helper()
	goroot, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		docs = append(docs, build.Document{Path: []byte(path[len(root)+1:]), Content: content})
		size += int64(len(content))
		return err
	})
	if err != nil {
		b.Skip(err)
	}
	return docs, size
}

// BenchmarkBuild builds a shard of the Go tree from memory into nothing: all that is left
// out of what an indexer does is reading files and writing one.
func BenchmarkBuild(b *testing.B) {
	docs, size := goSource(b)
	slices.SortFunc(docs, func(a, b build.Document) int { return bytes.Compare(a.Path, b.Path) })
	b.SetBytes(size)
	b.ReportAllocs()
	start := cpuTime(b)
	for b.Loop() {
		if _, err := write(io.Discard, build.Options{}, docs...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)*float64(b.N)/1e6/(cpuTime(b)-start).Seconds(), "MB/core-s")
}
