package grep_test

import (
	"path/filepath"
	"testing"

	"github.com/trawl-search/trawl/internal/grep"
)

// TestNegatedClassesIgnoreCase: when case is ignored, the ASCII letters k and s, which have capitals outside ASCII, are
// not in a class of non-ASCII runes.
func TestNegatedClassesIgnoreCase(t *testing.T) {
	s := &searcher{tree: t.TempDir(), cache: t.TempDir(), now: long}
	write(t, filepath.Join(s.tree, "a.txt"), "ask\nnaïve\nABC\nxyz\n")
	for _, c := range []struct{ pattern, want string }{
		{`[^\x00-\x7F]`, "a.txt:2:naïve\n"},
		{`^[^a-c]+$`, "a.txt:4:xyz\n"},
		{`^[^\x00-@x-z]+$`, "a.txt:1:ask\na.txt:2:naïve\na.txt:3:ABC\n"},
	} {
		q := ask(c.pattern)
		q.opts.Case = grep.Insensitive
		if got, err := s.search(t, q); err != nil || got != c.want {
			t.Errorf("%s: got %q, want %q (%v)", c.pattern, got, c.want, err)
		}
	}
}
