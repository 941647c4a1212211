package ngram

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// place is a window and the offset at which it starts.
type place struct {
	id     ID
	offset int
}

// places finds the windows of a text according to the definition: it folds everything, then takes
// the windows that start at each rune, and each title-case window of the original bytes.
func places(text []byte) (found []place) {
	found = placesOfRunes(text)
	for i := range max(len(text)-2, 0) {
		a, b, c := text[i], text[i+1], text[i+2]
		if 'A' <= a && a <= 'Z' && 'a' <= b && b <= 'z' && 'a' <= c && c <= 'z' {
			id := titleBase + (int(a-'A')*26+int(b-'a'))*26 + int(c-'a')
			found = append(found, place{ID(id), i})
		}
	}
	return found
}

func placesOfRunes(text []byte) (found []place) {
	var folded []rune
	var offsets []int
	for i, r := range string(text) {
		folded = append(folded, modelFold(r))
		offsets = append(offsets, i)
	}
	for i := range folded {
		for length := 1; length <= 3 && i+length <= len(folded); length++ {
			window := folded[i : i+length]
			wide := func(i int) bool { return window[i] >= 0x800 }
			ascii := !slices.ContainsFunc(window, func(r rune) bool { return r >= utf8.RuneSelf })
			known := length == 1 && !ascii || length == 2 && min(window[0], window[1]) >= utf8.RuneSelf || length == 3 && !(wide(0) && wide(1))
			if known && !slices.Contains(window, utf8.RuneError) {
				found = append(found, place{modelID(string(window)), offsets[i]})
			}
		}
	}
	return found
}

// modelID returns the ID of a folded window.
func modelID(window string) ID {
	if strings.ContainsFunc(window, func(r rune) bool { return r >= utf8.RuneSelf }) {
		number := uint64(0)
		for _, r := range window {
			number = number<<21 | uint64(r)
		}
		return 345256 + ID(number*0x9E3779B97F4A7C15>>46)
	}
	return ID(asciiClass[window[0]])<<12 | ID(asciiClass[window[1]])<<6 | ID(asciiClass[window[2]])
}

func modelFold(r rune) rune {
	least := r
	for s := unicode.SimpleFold(r); s != r; s = unicode.SimpleFold(s) {
		least = min(least, s)
	}
	if least < utf8.RuneSelf {
		return unicode.ToLower(least)
	}
	return least
}

// superblocks groups places as an Extractor does.
func superblocks(found []place) map[uint32]map[ID]uint8 {
	model := map[uint32]map[ID]uint8{}
	for _, p := range found {
		s := uint32(p.offset / SuperblockSize)
		if model[s] == nil {
			model[s] = map[ID]uint8{}
		}
		model[s][p.id] |= 1 << (p.offset % SuperblockSize / BlockSize)
	}
	return model
}

var pieces = []string{
	"a", "b", "k", "K", "\u212A", "s", "S", "\u017F", "Ⱥ", "ⱥ", "ẞ", "ß", "Σ", "ς", "ǅ", "𐐀", "𐐨",
	"中", "文", "ー", "�", "\xff", "\xe2\x84", "\x80", "\xed\xa0\x80", "Foo", "Bar", "func", "\n", " ",
	"\t", "\r\n", "(", "_", "#", "@", "\x00", "\x7f", "ABC", "Kk\u212A", "中Foo",
}

// drawText draws a text that may be long, with its interesting pieces near the borders of blocks
// and superblocks.
func drawText(t *rapid.T) []byte {
	var b strings.Builder
	for range rapid.IntRange(0, 4).Draw(t, "parts") {
		border := rapid.SampledFrom([]int{BlockSize, SuperblockSize, 2 * SuperblockSize}).Draw(t, "border")
		filler := rapid.SampledFrom([]string{"x", "some words ", "中", "\xff", "Abc", "ⱥ"}).Draw(t, "filler")
		target := (b.Len()/border+1)*border - rapid.IntRange(0, 9).Draw(t, "near")
		b.WriteString(strings.Repeat(filler, max(target-b.Len(), 0)/len(filler)))
		b.WriteString(strings.Repeat("y", max(target-b.Len(), 0)))
		for _, piece := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces") {
			b.WriteString(piece)
		}
	}
	b.Write(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "tail"))
	return []byte(b.String())
}
