package symbols

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/testrun"
)

// TestEveryTextEnds: the finder comes to the end of texts that stop anywhere, and what it finds is within them. One that goes on for ever would keep
// an indexer, and no context ends it.
func TestEveryTextEnds(t *testing.T) {
	check := func(name, text string) {
		stuck := time.AfterFunc(10*time.Second, func() { panic(name + " does not come to the end of " + text) })
		defer stuck.Stop()
		for _, s := range For(name).Append(nil, []byte(text)) {
			if s.Start >= s.End || int(s.End) > len(text) {
				t.Fatalf("%s, %q: a symbol at %d to %d", name, text, s.Start, s.End)
			}
		}
	}
	check("Ruby", "def x:#define ")
	tokens := []string{
		"func ", "def ", "class ", "struct ", "#define ", "attr_reader ", "f", "x", "(", ")", "{", "}", "<", ">", ":", "::", ".", ",", ";", "=", "#", "\"", "'",
		"`", "/*", "*/", "//", "R\"(", "<<EOF", "EOF", "\r", "\n", "\r\n", "\\", " ",
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for name := range languages {
		for range testrun.Rounds(2000, 50_000) {
			text := ""
			for range 1 + rnd.IntN(20) {
				text += tokens[rnd.IntN(len(tokens))]
			}
			check(name, text)
		}
	}
}
