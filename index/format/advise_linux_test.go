package format_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/trawl-search/trawl/index/format"
)

// TestMappingIsReadAtRandom: the kernel does not read ahead in a shard, which by default it
// does by up to megabytes per page.
func TestMappingIsReadAtRandom(t *testing.T) {
	var shard bytes.Buffer
	w := format.NewWriter(&shard)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.trawl")
	if err := os.WriteFile(path, shard.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := format.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("mappings are not to be seen: %v", err)
	}
	_, after, found := bytes.Cut(maps, []byte(path))
	if !found {
		t.Fatal("the shard is not mapped")
	}
	_, flags, _ := bytes.Cut(after, []byte("VmFlags:"))
	flags, _, _ = bytes.Cut(flags, []byte("\n"))
	if !bytes.Contains(flags, []byte(" rr")) {
		t.Errorf("the mapping has the flags%s, and is not read at random", flags)
	}
}
