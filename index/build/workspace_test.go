package build

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestWorkspaceIsFoundFromAnyThread leaves a workspace on one thread and takes it
// on others: it must be the same.
func TestWorkspaceIsFoundFromAnyThread(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	w := takeWorkspace()
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
	w.release()
}

// TestIdleWorkspaceIsCollected takes a workspace of its own, which nothing holds
// once it is idle.
func TestIdleWorkspaceIsCollected(t *testing.T) {
	collected := make(chan struct{})
	func() {
		w := takeWorkspace()
		runtime.AddCleanup(w, func(struct{}) { close(collected) }, struct{}{})
		w.release()
	}()
	runtime.GC()
	<-collected
}
