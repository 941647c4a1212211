package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPagerOfUser(t *testing.T) {
	for _, c := range []struct{ environ, want string }{
		{"PAGER=more", "more"},
		{"PAGER=more TRAWL_PAGER=most", "most"},
		{"TRAWL_PAGER=most PAGER=more", "most"},
		{"PAGER=more TRAWL_PAGER=", ""},
		{"PAGER=cat", ""},
		{"PAGER=more TERM=dumb", ""},
	} {
		if got := (Process{Environ: strings.Fields(c.environ)}).pager(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.environ, got, c.want)
		}
	}
}

// TestPaged: the pager gets all that is printed, as on a terminal, and the command's error stays.
func TestPaged(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	p := Process{Environ: []string{"PATH=" + os.Getenv("PATH"), "OUT=" + out, "LESS="}, Err: io.Discard}
	broken := errors.New("broken")
	err := p.through(t.Context(), `echo "$LESS" > "$OUT" && cat >> "$OUT"`, func(p Process) error {
		fmt.Fprint(p.Out, "fish\n")
		if !isTerminal(p.Out) {
			t.Error("what is paged is not for a terminal")
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, err := os.ReadFile(out); string(got) != "FRX\nfish\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestPagerLeft: leaving the pager early ends the command without an error.
func TestPagerLeft(t *testing.T) {
	p := Process{Environ: []string{"PATH=" + os.Getenv("PATH")}, Err: io.Discard}
	err := p.through(t.Context(), "true", func(p Process) error {
		for {
			if _, err := p.Out.Write(bytes.Repeat([]byte("fish\n"), 1000)); err != nil {
				return fmt.Errorf("printing: %w", err)
			}
		}
	})
	if err != nil {
		t.Errorf("got %v", err)
	}
	if err := p.through(t.Context(), "exit 3", func(Process) error { return nil }); err == nil {
		t.Error("a pager that fails is no error")
	}
}
