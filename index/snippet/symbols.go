package snippet

import (
	"strings"

	"github.com/trawl-search/trawl/index/symbols"
)

// Bounds in bytes: the symbols of a file as Symbol.Size counts them, and a name.
const (
	maxSymbolBytes = 256 << 10
	maxSymbolName  = 256
)

// Symbols returns the symbols that contain ranges of chunks, as far as there is room, and notes them in the ranges. all are the
// symbols of the text in the order of their places.
func Symbols(text []byte, all []symbols.Symbol, chunks []Chunk) (shown []Symbol) {
	within, places, room := symbols.NewWithin(all), map[int]int{}, maxSymbolBytes
	for _, c := range chunks {
		for i := range c.Ranges {
			r := &c.Ranges[i]
			at := within.At(r.Start.Offset)
			if at < 0 {
				continue
			}
			if places[at] == 0 {
				in := &all[at]
				symbol := Symbol{Name: nameOf(text, in.Span), Kind: in.Kind, Scope: nameOf(text, in.Scope)}
				if room -= symbol.Size(); room < 0 {
					return shown
				}
				shown = append(shown, symbol)
				places[at] = len(shown)
			}
			r.Symbol, r.Definition = places[at], r.Start.Offset < all[at].End
		}
	}
	return shown
}

func nameOf(text []byte, name symbols.Span) string {
	return strings.ToValidUTF8(string(text[name.Start:min(name.End, name.Start+maxSymbolName)]), "\uFFFD")
}
