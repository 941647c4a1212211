package format_test

import (
	"bytes"
	"cmp"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/trawl-search/trawl/index/format"
)

// coldFile writes a shard with one section of n bytes, drops its pages from memory, and opens it.
func coldFile(t *testing.T, n int) (*format.File, format.Section) {
	t.Helper()
	var shard bytes.Buffer
	w := format.NewWriter(&shard)
	if err := cmp.Or(w.WriteSection(format.TagUnits, 0, make([]byte, n)), w.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.trawl")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(shard.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	f, err := format.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	s, ok := f.Section(format.TagUnits)
	if !ok {
		t.Fatal("the section is missing")
	}
	return f, s
}

// resident counts the pages of a mapping that are in memory.
func resident(t *testing.T, mapping []byte) (n, of int) {
	t.Helper()
	page := os.Getpagesize()
	vector := make([]byte, (len(mapping)+page-1)/page)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapping[0])), uintptr(len(mapping)), uintptr(unsafe.Pointer(&vector[0])))
	if errno != 0 {
		t.Skipf("which pages are in memory is not to be seen: %v", errno)
	}
	for _, v := range vector {
		n += int(v & 1)
	}
	return n, len(vector)
}

// TestAnnouncedPagesAreLoaded: the kernel loads what is announced, even beyond the read-ahead of a
// disk, where it ignores the rest of a call.
func TestAnnouncedPagesAreLoaded(t *testing.T) {
	const size = 48 << 20
	f, s := coldFile(t, size)
	if n, of := resident(t, format.Mapping(f)); n > of/2 {
		t.Skipf("%d of %d pages stay in memory: this file system has no disk", n, of)
	}
	s.Soon(0, size)
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		n, of := resident(t, format.Mapping(f))
		if n > of*3/4 { // the kernel may drop some again
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("%d of %d pages are loaded", n, of)
		}
	}
}

// TestMappedShardAnnouncesWhileCold: a mapped shard announces until something of it was read, and for a
// while after a block came from the disk, but not while blocks come from memory.
func TestMappedShardAnnouncesWhileCold(t *testing.T) {
	const blocks = 128
	f, s := coldFile(t, blocks*format.ChecksumBlock)
	if !s.Announces() {
		t.Error("it does not announce before it was read")
	}
	next := 0
	fromMemory := func() {
		t.Helper()
		for start := time.Now(); s.Announces(); time.Sleep(10 * time.Millisecond) {
			if time.Since(start) > time.Minute {
				t.Fatal("it announces for ever although its blocks are in memory")
			}
			if next < blocks/2-1 {
				_ = crc32.ChecksumIEEE(format.Mapping(f)[next*format.ChecksumBlock:][:2*format.ChecksumBlock]) // which loads it
				read(t, s, next)
				next++
			}
		}
	}
	fromMemory()
	for block := blocks/2 + 1; block < blocks-8; block++ { // more than one only if this test is stopped for long
		if n, _ := resident(t, format.Mapping(f)[block*format.ChecksumBlock:][:format.ChecksumBlock]); n > 0 {
			t.Skip("pages stay in memory: this file system has no disk")
		}
		if read(t, s, block); s.Announces() {
			fromMemory()
			return
		}
	}
	t.Error("it does not announce although its blocks come from the disk")
}

// read reads a byte of a block.
func read(t *testing.T, s format.Section, block int) {
	t.Helper()
	if _, err := s.Bytes(int64(block)*format.ChecksumBlock, 1); err != nil {
		t.Fatal(err)
	}
}
