package gitsource

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of processes that its children leave
// behind, like the first process of a container.
func adoptOrphans(t *testing.T) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
}

// children lists the processes whose parent is this one, dead ones included.
func children(t *testing.T) []string {
	t.Helper()
	var found []string
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, _ := os.ReadFile(f)
		var pid, parent int
		var name, state string
		if n, _ := fmt.Sscanf(string(data), "%d %s %s %d", &pid, &name, &state, &parent); n == 4 && parent == os.Getpid() {
			found = append(found, name+" "+state)
		}
	}
	return found
}
