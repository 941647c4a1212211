package docstore

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/index/format"
)

// TestHeapOfAnOpenShard opens many shards and reads every column of each: what
// stays on the heap is a few kilobytes for a shard, whatever is in it.
func TestHeapOfAnOpenShard(t *testing.T) {
	const shards, limit = 200, 6 << 10
	data, m := small().write(t), small()
	docs, _ := m.docs()
	type opened struct {
		c *Content
		d *Docs
	}
	all := make([]opened, shards)
	before := live()
	for i := range all {
		c, d, err := open(data)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range docs {
			if err := checkDocument(d, m, uint32(doc), &docs[doc], 1+doc/6); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.BlobOf(0); err != nil {
			t.Fatal(err)
		}
		all[i] = opened{c, d}
	}
	// Buffers of the pool are dropped by two collections.
	if per := (live() - before) / shards; per > limit {
		t.Errorf("%d bytes of heap for a shard, at most %d are fine", per, limit)
	} else {
		t.Logf("%d bytes of heap for a shard", per)
	}
	runtime.KeepAlive(all)
}

// live is the heap in use after garbage is collected.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestConcurrentReaders lets several goroutines meet in the first use of each
// column, and in the buffers of names. Run with -race it also shows that
// nothing is shared unguarded.
func TestConcurrentReaders(t *testing.T) {
	m := small()
	data := m.write(t)
	for range 20 {
		c, d, err := open(data)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			group.Go(func() {
				if i%2 == 0 {
					errs[i] = errors.Join(checkDocs(d, m), checkContent(c, m))
				} else {
					errs[i] = errors.Join(checkContent(c, m), checkDocs(d, m))
				}
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMemoryOfContentWriter adds 40 MB and looks at what the writer keeps.
func TestMemoryOfContentWriter(t *testing.T) {
	const blobs, size = 40, 1 << 20
	blob := bytes.Repeat([]byte("a line of text\n"), size/15)
	w := format.NewWriter(io.Discard)
	c, err := NewContentWriter(w, LZ4)
	if err != nil {
		t.Fatal(err)
	}
	before := live()
	for range blobs {
		if _, err := c.Add(blob); err != nil {
			t.Fatal(err)
		}
	}
	// Four bytes for a superblock, twice that while a slice grows, and the
	// checksums of the shard.
	if kept := live() - before; kept > 40*int64(c.Superblocks()) {
		t.Errorf("%d bytes are kept for %d superblocks", kept, c.Superblocks())
	}
	runtime.KeepAlive(c)
}
