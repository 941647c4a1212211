package search_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// mappingOf returns the memory to which a file is mapped.
func mappingOf(t *testing.T, path string) []byte {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if !strings.HasSuffix(line, path+"\n") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), from)), to-from)
	}
	t.Fatalf("%s is not mapped", path)
	return nil
}

// manyWords is a shard whose posting lists take many pages, in a file that is mapped.
func manyWords(t *testing.T) (data []byte, path string, mapped *search.Shard) {
	t.Helper()
	main := []string{"main"}
	r := indextest.Repo{Name: "r", Branches: main}
	for i := range 2000 {
		var b strings.Builder
		for j := range 40 {
			fmt.Fprintf(&b, "word%dx ", (i*7+j*j*13)%900)
		}
		r.Documents = append(r.Documents, indextest.Document{Path: fmt.Sprintf("f%04d", i), Content: []byte(b.String()), Branches: main})
	}
	data, path = buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{r}}), filepath.Join(t.TempDir(), "x.trawl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	mapped, err := search.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mapped.Close() })
	return data, path, mapped
}

// protect allows or forbids to read pages of a mapping. A page that may not be read is like one of a disk that fails.
func protect(t *testing.T, pages []byte, readable bool) {
	t.Helper()
	if err := syscall.Mprotect(pages, map[bool]int{true: syscall.PROT_READ, false: syscall.PROT_NONE}[readable]); err != nil {
		t.Error(err)
	}
}

// TestFaultWhileAddingUp: after a disk failed while postings were added up, later searches, which use the same memory, count as before.
func TestFaultWhileAddingUp(t *testing.T) {
	data, path, mapped := manyWords(t)
	q, opts := prepare(t, parse(t, "ord")), search.Options{MaxFiles: 10, MaxMatchesPerFile: 10}
	want := run(t, mapped, q, opts) // which verifies the postings
	f, err := format.NewFile("sound.trawl", data)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(f.Sections(), func(info format.SectionInfo) bool { return info.Tag == format.TagWordPostings })
	postings, page := f.Sections()[i], int64(os.Getpagesize())
	from, to := (postings.Offset+postings.Length/2+page-1)/page*page, (postings.Offset+postings.Length)/page*page
	pages := mappingOf(t, path)[from:to]
	protect(t, pages, false)
	_, err = mapped.Search(context.Background(), q, opts)
	protect(t, pages, true)
	if !errors.Is(err, format.ErrCorrupt) {
		t.Fatalf("a search whose postings cannot be read: %v, want ErrCorrupt", err)
	}
	if got := run(t, openShard(t, data), q, opts); got.Stats.Matches != want.Stats.Matches || !sameFiles(got.Files, want.Files) {
		t.Errorf("after a fault a search finds %d matches, want %d", got.Stats.Matches, want.Stats.Matches)
	}
}

// TestFaultWithHelpers: a search ends after its helpers, which use its memory, even if its own goroutine has a fault.
func TestFaultWithHelpers(t *testing.T) {
	_, path, mapped := manyWords(t)
	q, opts := prepare(t, parse(t, `c:word\d+x.word`)), search.WithHelpers(search.Options{MaxFiles: 10, MaxMatchesPerFile: 10}, 2)
	var once sync.Once
	var helping atomic.Int32
	pages, own := mappingOf(t, path), goroutine()
	opts.FloorNow = func() *search.Key {
		switch {
		case goroutine() != own:
			helping.Add(1)
			time.Sleep(100 * time.Millisecond)
			helping.Add(-1)
		case helping.Load() == 0:
			time.Sleep(time.Millisecond)
		default:
			once.Do(func() { protect(t, pages, false) })
		}
		return nil
	}
	_, err := mapped.Search(context.Background(), q, opts)
	protect(t, pages, true)
	if !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("a search of a shard that cannot be read any more: %v, want ErrCorrupt", err)
	}
	if n := helping.Load(); n > 0 {
		t.Errorf("the search has ended, and %d helpers go on", n)
	}
}

// goroutine names the goroutine that calls it.
func goroutine() string {
	name, _, _ := strings.Cut(string(debug.Stack()), "[")
	return name
}
