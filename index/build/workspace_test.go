package build

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/docstore"
)

// TestWorkspaceIsFoundFromAnyThread leaves a workspace on one thread and takes it
// on others: it must be the same.
func TestWorkspaceIsFoundFromAnyThread(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	w := takeWorkspace()
	made, reused := Workspaces()
	for range 20 {
		w.release()
		taken := make(chan *workspace)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			taken <- takeWorkspace()
		}()
		if got := <-taken; got != w {
			t.Fatal("a workspace is idle, and another one is made")
		}
	}
	if nowMade, nowReused := Workspaces(); nowMade != made || nowReused != reused+20 {
		t.Errorf("%d were made and %d reused, want 0 and 20", nowMade-made, nowReused-reused)
	}
	w.release()
}

// TestIdleWorkspaceIsCollected takes a workspace of its own, which nothing
// refers to once it is idle.
func TestIdleWorkspaceIsCollected(t *testing.T) {
	collected := make(chan struct{})
	func() {
		w := takeWorkspace()
		runtime.AddCleanup(w, func(struct{}) { close(collected) }, struct{}{})
		w.release()
	}()
	runtime.GC()
	select {
	case <-collected:
	case <-time.After(time.Minute):
		t.Fatal("it is not collected")
	}
}

// TestFullOfMemory: text in which every superblock is different costs memory,
// not only bytes, so that its shard is full sooner.
func TestFullOfMemory(t *testing.T) {
	b, err := NewBuilder(io.Discard, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if b.maxMemory != leastMemory {
		t.Errorf("by default a shard is full with %d bytes, want %d", b.maxMemory, leastMemory)
	}
	if err := b.AddRepo(docstore.Repo{Name: "r", Branches: []docstore.Branch{{Name: "main"}}}); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i, want := range []bool{false, false, true} {
		content := make([]byte, 1_000) // nearly as many different n-grams
		for i := range content {
			content[i] = ' ' + byte(random.IntN(95))
		}
		if i == 0 {
			content = bytes.Repeat([]byte("a "), 50_000) // a few postings for each superblock
		}
		if err := b.Add(Document{Path: []byte{'a' + byte(i)}, Content: content, Branches: []uint32{0}}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.collect.finish(), b.collect.flush()); err != nil { // the last contents count, too
			t.Fatal(err)
		}
		if i == 0 {
			b.maxMemory = b.collect.memory + 6_000
		}
		if b.Full() != want {
			t.Errorf("with %d bytes of %d Full = %v", b.collect.memory, b.maxMemory, b.Full())
		}
	}
	if _, err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
