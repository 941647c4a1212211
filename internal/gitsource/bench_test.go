package gitsource

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
)

// BenchmarkDocuments reads the Go toolchain's source tree with language
// detection, from a folder and from a packed Git repository of it.
func BenchmarkDocuments(b *testing.B) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("no toolchain here")
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "src")
	r := gitsourcetest.New(b)
	r.Git("--work-tree="+dir, "add", "-A", ".")
	r.Git("commit", "-q", "-m", "x")
	r.Git("repack", "-a", "-d", "-q")
	for name, folder := range map[string]string{"git": r.Dir, "folder": dir} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, err := Open(b.Context(), folder, nil, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				var bytes int64
				for d, err := range s.Documents(b.Context()) {
					if err != nil {
						b.Fatal(err)
					}
					bytes += int64(len(d.Content))
				}
				b.SetBytes(bytes)
				s.Close()
			}
		})
	}
}
