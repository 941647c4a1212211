package run

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/trawl-search/trawl/bench/peer"
)

func TestLesserCost(t *testing.T) {
	low, high := peer.Cost{CPU: 1, Wall: 9, Peak: 9, IndexBytes: 9}, peer.Cost{CPU: 2, Wall: 1, Peak: 1, IndexBytes: 1}
	if lesser(low, high) != low || lesser(high, low) != low || lesser(high, peer.Cost{}) != high {
		t.Error("the build with the least processor time is not the one kept")
	}
}

// TestCtagsAreNotNeeded: without ctags or zoekt, a run continues.
func TestCtagsAreNotNeeded(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, command := range []string{"", "ctags"} {
		t.Setenv("CTAGS_COMMAND", command)
		if peer.HasCtags() != (command != "") {
			t.Errorf("with CTAGS_COMMAND=%q: %t", command, peer.HasCtags())
		}
		m := sample()
		m.peers[0].Peer = named(zoekt)
		if err := (&runner{cfg: Config{Log: io.Discard}}).indexCtags(t.Context(), m, t.TempDir()); err != nil || m.ctags != (peer.Cost{}) {
			t.Errorf("with CTAGS_COMMAND=%q: %+v (%v)", command, m.ctags, err)
		}
	}
}

// TestIndexesOfRepeatsGo: indexes of repeated builds are removed, since a
// corpus may be as large as the free space on the disk.
func TestIndexesOfRepeatsGo(t *testing.T) {
	dir, failed := t.TempDir(), errors.New("failed")
	var folder string
	err := within(dir, func(out string) error {
		folder = out
		return errors.Join(failed, os.WriteFile(filepath.Join(out, "index"), nil, 0o600))
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is there still: %v", err)
	}
}
