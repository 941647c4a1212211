package testrun

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// complaint keeps what a test complains about.
type complaint struct {
	failing
}

func (c *complaint) Errorf(format string, args ...any) { c.notef(format, args...) }

// TestGolden: a difference is shown by its first line, and how to accept it.
func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "golden.txt")
	Must(t, os.WriteFile(file, []byte("one\ntwo\nthree\n"), 0o600))
	for got, want := range map[string]string{
		"one\ntwo\nthree\n": "", "one\n2\nthree\n": "line 2 on:\n got 2\nwant two\n", "one\ntwo\n": "line 2 on", "one\ntwo\nthree\nfour\n": "line 3 on", "": "line 1 on",
	} {
		c := &complaint{failing{TB: t}}
		Golden(c, file, []byte(got))
		if (want == "") != (c.said == "") || !strings.Contains(c.said, want) || want != "" && !strings.Contains(c.said, "-update") {
			t.Errorf("%q: %q, want %q", got, c.said, want)
		}
	}
}
