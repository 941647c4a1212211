package shard_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/shard"
)

// BenchmarkSearch searches the Go standard library for what is rare, common
// and in between.
func BenchmarkSearch(b *testing.B) {
	goroot, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	c, err := indextest.FromFolder(filepath.Join(strings.TrimSpace(string(goroot)), "src"))
	if err != nil {
		b.Fatal(err)
	}
	s := openShard(b, buildShard(b, c))
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
		q := prepare(b, parse(b, text))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Search(context.Background(), q, shard.Options{MaxFiles: 50, MaxMatchesPerFile: 100}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
