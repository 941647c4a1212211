package inverted

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// FuzzBlock decodes hostile blocks of the lexicon.
func FuzzBlock(f *testing.F) {
	long := strings.Repeat("aB", ngram.MaxWord/2)
	for _, words := range [][]string{
		{"a"},
		{"alpha", "Alpha", "ALPHA", "alPHA", "beta_1", "beta_12", "Z"},
		{long[:14], long[:15], long[:16], long[:63], long[:64], long[:127], long},
	} {
		var w blockWriter
		for _, word := range words {
			w.add([]byte(word))
		}
		f.Add(w.appendTo(nil), uint8(len(words)))
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		var b, small Block
		n = n%BlockWords + 1
		err, other := b.decode(data, int(n), true), small.decode(data, int(n), false)
		if (err == nil) != (other == nil) {
			t.Fatalf("as it is spelled: %v; in small letters: %v", err, other)
		}
		if err != nil {
			if b.Len() != 0 || small.Len() != 0 {
				t.Fatalf("%d and %d words and %v", b.Len(), small.Len(), err)
			}
			return
		}
		if b.Len() != int(n) || compareFolded(b.Text, small.Text) != 0 {
			t.Fatalf("%d words of %d: %q, in small letters %q", b.Len(), n, b.Text, small.Text)
		}
		checkBlock(t, &b)
	})
}

// checkBlock checks what must hold for every block. If its words are valid and in order, it checks
// that encoding them again gives the same words.
func checkBlock(t *testing.T, b *Block) {
	t.Helper()
	var text, last []byte
	var w blockWriter
	sound := true
	for i := range b.Len() {
		word := b.Word(i)
		if len(word) == 0 || len(word) > ngram.MaxWord {
			t.Fatalf("word %d has %d bytes", i, len(word))
		}
		for at := range word {
			if got := b.At(len(text)+at, 0); got != i {
				t.Fatalf("byte %d of %q belongs to word %d, not to %d", len(text)+at, b.Text, got, i)
			}
		}
		text = append(append(text, word...), '\n')
		sound = sound && ngram.IsWords(word) && (i == 0 || compare(last, word) < 0)
		last = word
		w.add(word)
	}
	if !bytes.Equal(text, b.Text) {
		t.Fatalf("the words of %q are %q", b.Text, text)
	}
	if !sound {
		return
	}
	var again Block
	if err := again.decode(w.appendTo(nil), b.Len(), true); err != nil || !bytes.Equal(again.Text, b.Text) {
		t.Fatalf("%q encoded anew is %q: %v", b.Text, again.Text, err)
	}
}

// fuzzTags are the sections of the index.
var fuzzTags = [...]format.Tag{
	format.TagWordInfo, format.TagLexicon, format.TagLexiconOffsets, format.TagLexiconNgrams, format.TagLexiconPostings,
	format.TagWordPostings, format.TagWordTable, format.TagOpaque, format.TagDefinitions, format.TagParts, format.TagLexiconSamples,
}

// fuzzBlob has several superblocks of the lexicon, and an opaque superblock.
func fuzzBlob() []byte {
	var blob []byte
	for i := range 300 {
		blob = fmt.Appendf(blob, "w%d W%d field%d aFieldOf%d ", i, i%7, i%80, i%90)
	}
	blob = append(blob, "quick Quick QUICK qUick "...)
	return append(blob, strings.Repeat("toolong", 1000)+" quick\n"...)
}

// sealedSections writes a file with only the sections of an index, with correct checksums.
func sealedSections(t testing.TB, sections [len(fuzzTags)][]byte) *format.File {
	t.Helper()
	var data bytes.Buffer
	w := format.NewWriter(&data)
	for i, tag := range fuzzTags {
		if err := w.WriteSection(tag, format.Required, sections[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("hostile.trawl", data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// fuzzSections returns the sections of the index of a blob.
func fuzzSections(t testing.TB, blob []byte, language *symbols.Language) (sections [len(fuzzTags)][]byte) {
	t.Helper()
	b := NewWordBuilder()
	if err := b.Add(0, blob, ngram.AppendOpaque(nil, blob), language); err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	w := format.NewWriter(&data)
	if err := b.Write(w, uint32(len(blob)+ngram.SuperblockSize-1)/ngram.SuperblockSize, NewNgramBuilder()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("sound.trawl", data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for i, tag := range fuzzTags {
		section, _ := f.Section(tag)
		if sections[i], err = section.All(); err != nil {
			t.Fatal(err)
		}
	}
	return sections
}

// wordsOf opens the index of a blob.
func wordsOf(t testing.TB, blob []byte, language *symbols.Language) *Words {
	t.Helper()
	x, err := OpenWords(sealedSections(t, fuzzSections(t, blob, language)))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestSamePostings: two indexes of one content have the same postings, whatever definitions they have.
func TestSamePostings(t *testing.T) {
	text := strings.Repeat("func quick() { return }\n", 300)
	x := wordsOf(t, []byte(text), symbols.For("Go"))
	for other, same := range map[string]bool{
		text: true,
		strings.Replace(text, "quick() {", "quick()  ", 1):                            true,
		strings.Replace(text, "return }", "quick  }", 1):                              false,
		strings.Replace(text, "return }\n", "return\n}", 1):                           true,
		text[:3000] + strings.Repeat(" ", 600) + text[3600:]:                          false,
		strings.Replace(text, "return", "Return", 1):                                  false,
		strings.Repeat(" ", len(text)-len("func quick return")) + "func quick return": false,
	} {
		err := x.SamePostings(wordsOf(t, []byte(other), nil))
		if (err == nil) != same {
			t.Errorf("%.60q…: %v", other, err)
		}
		checkTyped(t, err)
	}
}

// FuzzIndex reads hostile sections with correct checksums.
func FuzzWordIndex(f *testing.F) {
	for _, blob := range [][]byte{nil, []byte("one word"), fuzzBlob()} {
		s := fuzzSections(f, blob, nil)
		f.Add(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10])
	}
	sound := wordsOf(f, fuzzBlob(), nil)
	f.Fuzz(func(t *testing.T, info, lexicon, offsets, ngrams, lists, wordLists, table, opaque, finder, parts, samples []byte) {
		x, err := OpenWords(sealedSections(t, [...][]byte{info, lexicon, offsets, ngrams, lists, wordLists, table, opaque, finder, parts, samples}))
		if err == nil {
			readHostile(t, x, sound)
		} else {
			checkTyped(t, err)
		}
	})
}

func checkTyped(t *testing.T, err error) {
	t.Helper()
	var corrupt *format.CorruptError
	if err != nil && !errors.Is(err, format.ErrVersion) && (!errors.As(err, &corrupt) || corrupt.File == "" || corrupt.Section == "") {
		t.Fatalf("an error without type, file or section: %v", err)
	}
}

// readHostile reads a part of everything in the index.
func readHostile(t *testing.T, x, sound *Words) {
	t.Helper()
	var b Block
	var it Iterator
	for number := range min(x.Blocks()+1, 30) { // one more than there are
		err := x.Block(number, &b)
		checkTyped(t, err)
		if err == nil {
			checkBlock(t, &b)
		}
	}
	for word := range min(x.Len(), 100) {
		list, err := x.List(word)
		checkTyped(t, err)
		if err != nil {
			continue
		}
		for it.Reset(list); it.Next() && it.Superblock() < 5000; {
			it.Mask()
		}
		checkTyped(t, it.Err())
	}
	for _, text := range []string{"quick", "w2", "_", "toolong", "W100", "zz"} {
		for _, find := range []func(string, *Block) (uint32, uint32, error){x.WithPrefix, x.Spellings} {
			from, to, err := find(text, new(Block))
			checkTyped(t, err)
			if from > to || to > x.Len() {
				t.Fatalf("words [%d, %d) of %d", from, to, x.Len())
			}
		}
		holding, ok, err := x.Holding(text)
		checkTyped(t, err)
		if !ok {
			continue
		}
		for superblock, _, ok := holding.Next(); ok; superblock, _, ok = holding.Next() {
			if superblock > x.Len()/wordsPerSuperblock {
				t.Fatalf("superblock %d of a lexicon of %d words", superblock, x.Len())
			}
		}
		checkTyped(t, holding.Err())
		holding.Release()
	}
	for _, text := range []string{"field", "of", "nothing"} {
		part, _, err := x.Part(text)
		checkTyped(t, err)
		for _, number := range []uint32{part.Ends, part.Inside} {
			if list, err := x.List(number); err != nil {
				checkTyped(t, err)
			} else {
				for it.Reset(list); it.Next() && it.Superblock() < 5000; {
					it.Mask()
				}
				checkTyped(t, it.Err())
			}
		}
	}
	checkTyped(t, x.SamePostings(sound))
}

// TestReadHostileReadsAll checks that readHostile reads a sound index to its end.
func TestReadHostileReadsAll(t *testing.T) {
	x := wordsOf(t, fuzzBlob(), nil)
	readHostile(t, x, wordsOf(t, fuzzBlob(), nil))
	if part, ok, err := x.Part("field"); !ok || err != nil || part.Ends == 0 || part.Inside == 0 {
		t.Errorf("the part field: %+v, %t, %v", part, ok, err)
	}
}
