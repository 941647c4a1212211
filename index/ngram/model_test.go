package ngram

import (
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

// places finds the windows of text by the definition: fold everything, then take
// each three bytes; and each title-case window of the original bytes.
func places(text []byte) (found []place) {
	var folded []byte
	var offsets []int
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		one := []byte(string(modelFold(r)))
		if r == utf8.RuneError && size == 1 {
			one = text[i : i+1]
		}
		for _, c := range one {
			folded = append(folded, c)
			offsets = append(offsets, i)
		}
		i += size
	}
	for i := range max(len(folded)-2, 0) {
		found = append(found, place{windowID(folded[i], folded[i+1], folded[i+2]), offsets[i]})
	}
	for i := range max(len(text)-2, 0) {
		a, b, c := text[i], text[i+1], text[i+2]
		if 'A' <= a && a <= 'Z' && 'a' <= b && b <= 'z' && 'a' <= c && c <= 'z' {
			id := titleBase + (int(a-'A')*26+int(b-'a'))*26 + int(c-'a')
			found = append(found, place{ID(id), i})
		}
	}
	return found
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

// drawText draws a text that may be long, whose interesting pieces stand near
// the borders of blocks and superblocks.
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
