package source

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// BenchmarkDocuments reads the Go toolchain's source tree with language
// detection, from a folder and from a packed Git repository of it.
func BenchmarkDocuments(b *testing.B) {
	dir := filepath.Join(runtime.GOROOT(), "src")
	if _, err := os.Stat(dir); err != nil {
		b.Skip("no source tree of the toolchain here")
	}
	r := newRepo(b)
	r.git("--work-tree="+dir, "add", "-A", ".")
	r.git("commit", "-q", "-m", "x")
	r.git("repack", "-a", "-d", "-q")
	for name, folder := range map[string]string{"git": r.dir, "folder": dir} {
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
