package rank

import (
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	words := []LineWord{{"Read", true}, {"file", false}, {"header", false}}
	for text, want := range map[string]Together{
		"Read file header":                            InSequence,
		"x\n// Read FILE header.":                     InSequence,
		"read file header":                            Scattered, // the first word occurs only in that case
		"Readfile xheaders":                           OneLine,
		"header of a file: ReadAll":                   OneLine,
		"Read file\nheader":                           Scattered,
		"Read  file header":                           OneLine,
		"xRead file header":                           OneLine,
		"Read file headers":                           OneLine,
		"xRead file header Read file header":          InSequence,
		strings.Repeat(" ", 496) + "Read file header": InSequence,
		strings.Repeat(" ", 497) + "Read file header": Scattered,
		"": Scattered,
	} {
		if got := NewLine(words).In([]byte(text), true); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
		if got := NewLine(words).In([]byte(text), false); got != Scattered && !strings.Contains(text, "\n") {
			t.Errorf("%q begins before: %d", text, got)
		}
	}
	if got := NewLine(words[:2]).In([]byte("Read file"), true); got != OneLine {
		t.Errorf("two words: %d", got)
	}
	if NewLine(words[:1]) != nil || NewLine(append(words, LineWord{"a b", false})) != nil {
		t.Error("a single word, or a text that is not a word, stands together")
	}
}
