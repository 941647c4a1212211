package ngram

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time of the process: on a busy machine it says more
// than the clock.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkExtract measures the extraction of part of the Go source tree.
func BenchmarkExtract(b *testing.B) {
	var blobs [][]byte
	size := int64(0)
	goroot, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src", "net")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
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
	e := NewExtractor()
	postings := 0
	b.SetBytes(size)
	start := cpuTime(b)
	for b.Loop() {
		postings = 0
		for _, blob := range blobs {
			e.Extract(blob, func(_ uint32, ids []ID, _ []uint8) { postings += len(ids) })
		}
	}
	b.ReportMetric(float64(size)*float64(b.N)/1e6/(cpuTime(b)-start).Seconds(), "MB/core-s")
	b.ReportMetric(float64(postings)/float64(size), "postings/byte")
}
