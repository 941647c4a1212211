package shard

import (
	"strings"

	"github.com/trawl-search/trawl/index/symbols"
)

// Symbol is a definition that contains matches of a file.
type Symbol struct {
	Name string
	Kind symbols.Kind
	// Scope is the name of the innermost definition around it; empty if there is none or it is
	// unknown.
	Scope string
}

// Bounds in bytes: the content that is searched for symbols, the symbols of a file as Symbol.size
// counts them, and a name.
const (
	maxSymbolText  = 4 << 20
	maxSymbolBytes = 256 << 10
	maxSymbolName  = 256
)

// size is the room in bytes that it takes in an answer.
func (s *Symbol) size() int { return symbolSize + len(s.Name) + len(s.Scope) }

// nameSymbols adds the symbols that contain the ranges of a file's chunks.
func (s *search) nameSymbols(doc, blob uint32, f *FileMatch) error {
	if len(f.Chunks) == 0 || f.Chunks[0].FileName {
		return nil
	}
	rules, err := s.rulesOf(doc)
	if err != nil || rules == nil {
		return err
	}
	if n, err := s.content.Len(blob); err != nil || n > maxSymbolText {
		return err
	}
	text, err := s.text.load(s, blob)
	if err != nil {
		return err
	}
	found := s.symbolsOf(rules, blob, text)
	within, places, room := symbols.NewWithin(found), map[int]int{}, maxSymbolBytes
	for _, c := range f.Chunks {
		for i := range c.Ranges {
			r := &c.Ranges[i]
			at := within.At(r.Start.Offset)
			if at < 0 {
				continue
			}
			if places[at] == 0 {
				in := &found[at]
				symbol := Symbol{Name: shownName(text, in.Span), Kind: in.Kind, Scope: shownName(text, in.Scope)}
				if room -= symbol.size(); room < 0 {
					return nil
				}
				f.Symbols = append(f.Symbols, symbol)
				places[at] = len(f.Symbols)
			}
			r.Symbol, r.Definition = places[at], r.Start.Offset < found[at].End
		}
	}
	return nil
}

func shownName(text []byte, name symbols.Span) string {
	return strings.ToValidUTF8(string(text[name.Start:min(name.End, name.Start+maxSymbolName)]), "\uFFFD")
}
