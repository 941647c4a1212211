package docstore

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestHeapOfAnOpenShard opens many shards and reads every column of each: a
// shard keeps only a few kilobytes on the heap, whatever it contains.
func TestHeapOfAnOpenShard(t *testing.T) {
	const shards, limit = 200, 6 << 10 // measured: 1.4 KB
	data, m := small().write(t), small()
	docs, _ := m.docs()
	type opened struct {
		c *Content
		d *Docs
	}
	all := make([]opened, shards)
	before := testrun.LiveHeap()
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
	if per := (testrun.LiveHeap() - before) / shards; per > limit {
		t.Errorf("%d bytes of heap for a shard, at most %d are fine", per, limit)
	} else {
		t.Logf("%d bytes of heap for a shard", per)
	}
	runtime.KeepAlive(all)
}

// TestConcurrentReaders has several goroutines use each column, and the buffers
// of names, for the first time. With -race it also shows that they share
// nothing without a lock.
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

// TestMemoryOfContentWriter adds 40 MB and checks how much the writer keeps.
func TestMemoryOfContentWriter(t *testing.T) {
	const blobs, size = 40, 1 << 20
	blob := bytes.Repeat([]byte("a line of text\n"), size/15)
	w := format.NewWriter(io.Discard)
	c, err := NewContentWriter(w, Fresh, 1)
	if err != nil {
		t.Fatal(err)
	}
	before := testrun.LiveHeap()
	for range blobs {
		if _, err := c.Add(blob); err != nil {
			t.Fatal(err)
		}
	}
	// The text of a dictionary, and an encoder. For each superblock four bytes
	// and its part of the dictionary, twice that while slices grow. Also the
	// checksums of the shard. Measured: less than 1 MB of the 40.
	const text = 10 << 20
	if kept := testrun.LiveHeap() - before; kept > text+100*int64(c.Superblocks()) {
		t.Errorf("%d bytes are kept for %d superblocks", kept, c.Superblocks())
	}
	runtime.KeepAlive(c)
}
