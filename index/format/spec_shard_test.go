package format_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
	"github.com/trawl-search/trawl/internal/testrun"
)

// shard is a real shard and its input.
type shard struct {
	data     []byte
	sections map[string][]byte
	blobs    [][]byte
	paths    []byte
	content  indexed
	names    indexed
	lexicon  indexed
	words    wordModel
}

// indexed is the input of an n-gram index: the masks of each n-gram's postings by superblock.
type indexed struct {
	superblocks uint32
	masks       map[uint64]map[uint32]uint8
}

var must = testrun.Must

// sample writes a shard with some of everything. Its contents have more than 128 superblocks, so
// that posting lists have several blocks of all codings.
func sample(t *testing.T) *shard {
	t.Helper()
	s := &shard{sections: map[string][]byte{}}
	var buf bytes.Buffer
	w := format.NewWriter(&buf)
	content, err := docstore.NewContentWriter(w, docstore.Fresh, 1)
	must(t, err)
	docs, blobs := docstore.NewDocsWriter(), texts()
	var names []byte
	next := 0
	add := func(path string, blob int, doc docstore.Document) {
		doc.Path, doc.Blob, doc.OID = []byte(path), uint32(blob), bytes.Repeat([]byte{byte(blob + 1)}, 20)
		if blob == next {
			next++
			_, err := content.Add(blobs[blob])
			must(t, err)
		}
		must(t, docs.AddDocument(doc))
		names = append(names, path...)
	}
	main, both := []uint32{0}, []uint32{0, 2}
	must(t, docs.AddRepo(docstore.Repo{Name: "a", URL: "https://a", Branches: make([]docstore.Branch, 3), Fork: true, Meta: map[string]string{"k": "v"}, Rank: 60}))
	for i := range blobs {
		add(fmt.Sprintf("dir/file%03d.go", i), i, docstore.Document{Branches: both, Language: "Go"})
	}
	add("vendor/copy.go", 3, docstore.Document{Branches: main, Language: "C"})
	must(t, docs.AddRepo(docstore.Repo{Name: "b", Branches: make([]docstore.Branch, 1), Generation: 300}))
	blobs = append(blobs, nil)
	add("video", len(blobs)-1, docstore.Document{Branches: main, Skip: docstore.Binary, Size: 1 << 40})
	must(t, content.Close(), docs.Close(w))
	s.blobs, s.paths = blobs, names

	s.content, s.words = indexContent(t, w, blobs)
	s.lexicon = s.words.lexicon(ngram.NewExtractor())
	// There are too few real names for a wide gap between superblocks, which has a coding of its
	// own, so they are spread.
	// a coding of its own: they are spread.
	s.names = indexNames(t, w, 9, slices.Collect(slices.Chunk(names, len(names)/10+1)))
	must(t, w.Close())
	s.data = buf.Bytes()
	f, err := format.NewFile("test", s.data)
	must(t, err)
	for _, info := range f.Sections() {
		section, _ := f.Section(info.Tag)
		s.sections[info.Tag.String()], err = section.All()
		must(t, err)
	}
	return s
}

// texts have words of very different frequency, the same in every run.
func texts() [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	blobs := [][]byte{nil, []byte("short\n"), unusual(), data(rng)}
	for len(blobs) < 60 {
		var text []byte
		for len(text) < 20_000 {
			word := int(rng.ExpFloat64() * 40)
			text = fmt.Appendf(text, "Word%c%c%d é ", 'a'+word%26, 'a'+word/7%26, word/300)
			if word%9 == 0 {
				text = append(text, '\n')
			}
		}
		if len(blobs) < 35 {
			text = append(text, "zebra crossing in half of them"...)
		}
		blobs = append(blobs, text)
	}
	var text []byte
	for i := range 100 {
		text = fmt.Appendf(text, "field%d my_Field_%d getFields%d HTTPBody%d nobody%d fieldfield%d ana_banana%d ", i, i, i, i, i, i, i)
	}
	return append(blobs, text, append(text, " field"...))
}

// data has superblocks of data, and superblocks in which slightly less than half is data.
func data(rng *rand.Rand) []byte {
	var text []byte
	for len(text) < 5*4096 {
		text = fmt.Appendf(text, "%016x%016x ", rng.Uint64(), rng.Uint64())
		if len(text) > 2*4096 {
			text = append(text, "and some words between all the numbers of it "[:25+rng.IntN(20)]...)
		}
	}
	return text
}

// unusual is a text with words of all spellings and lengths, and with opaque superblocks.
func unusual() []byte {
	var text []byte
	fill := func(to int) {
		text = append(text, bytes.Repeat([]byte("Fill "), (to-len(text))/5)...)
		text = append(text, "....."[:to-len(text)]...)
	}
	text = append(text, "small Title CAPITALS mixedCase aB A a A1 1a _ _A Σκ é \xff\u212B "...)
	for _, n := range []int{13, 14, 15, 16, 17, 28, 29, 30, 31, 32, 62, 63, 64, 65, 126, 127, 128} {
		long := strings.Repeat("Longest", 20)[:n]
		text = append(text, long+" "+strings.ToLower(long)+" "+long[:n-1]+"\n"...)
	}
	fill(2*4096 - 40)
	text = append(text, strings.Repeat("Opaque", 22)...) // in two superblocks: too long for a word
	fill(4*4096 - 3)
	text = append(text, "Next word goes on from no opaque superblock\nfunc "+definedWord+"()\n"...)
	fill(5*4096 + 100)
	text = append(text, "is\u212Aelvin "...)
	fill(6*4096 - 5)
	text = append(text, "GoesOnFromAnOpaqueSuperblock Then "...)
	fill(8*4096 - 1)
	return append(text, "s\u017Fs and a \u017F"...) // the rune is in the second of two superblocks
}

func (in *indexed) add(id uint64, superblock uint32, mask uint8) {
	if in.masks[id] == nil {
		in.masks[id] = map[uint32]uint8{}
	}
	in.masks[id][superblock] |= mask
}

// indexNames writes the index of names. It leaves gap superblocks out after each, and a wide gap
// before the last but one.
func indexNames(t *testing.T, w *format.Writer, gap uint32, texts [][]byte) indexed {
	t.Helper()
	in := indexed{masks: map[uint64]map[uint32]uint8{}}
	b, e := inverted.NewNgramBuilder(), ngram.NewExtractor()
	for i, text := range texts {
		if i == len(texts)-2 {
			in.superblocks += 200 * gap
		}
		e.Extract(text, func(superblock uint32, ids []ngram.ID, masks []uint8) {
			superblock += in.superblocks
			must(t, b.Add(superblock, ids, masks))
			for i, id := range ids {
				in.add(uint64(id), superblock, masks[i])
			}
		})
		in.superblocks += uint32((len(text)+docstore.SuperblockSize-1)/docstore.SuperblockSize) + gap
	}
	must(t, b.Write(w, inverted.NameTags, in.superblocks))
	return in
}

// indexContent writes the indexes of n-grams and words of blobs, and returns what they must
// contain.
func indexContent(t *testing.T, w *format.Writer, blobs [][]byte) (indexed, wordModel) {
	t.Helper()
	in, model := indexed{masks: map[uint64]map[uint32]uint8{}}, wordModel{words: map[string]map[uint32]wordPosting{}}
	b, e, all := inverted.NewNgramBuilder(), ngram.NewExtractor(), inverted.NewWordBuilder()
	for _, blob := range blobs {
		opaque := ngram.AppendOpaque(nil, blob)
		e.ExtractBetween(blob, opaque, func(superblock uint32, ids []ngram.ID, masks []uint8) {
			must(t, b.Add(in.superblocks+superblock, ids, masks))
		})
		must(t, all.Add(in.superblocks, blob, opaque, symbols.For("Go")))
		in.addBetween(e, blob)
		model.add(in.superblocks, blob)
		in.superblocks += uint32((len(blob) + docstore.SuperblockSize - 1) / docstore.SuperblockSize)
	}
	must(t, b.Write(w, inverted.ContentTags, in.superblocks), all.Write(w, in.superblocks, b))
	return in, model
}

// foldRune returns the representative of the case-folding orbit of r, as section 7 defines it.
func foldRune(r rune) rune {
	least := r
	for s := unicode.SimpleFold(r); s != r; s = unicode.SimpleFold(s) {
		least = min(least, s)
	}
	if 'A' <= least && least <= 'Z' {
		return least + 'a' - 'A'
	}
	return least
}

// addBetween adds the n-grams that the index of a blob has according to section 7.
func (in *indexed) addBetween(e *ngram.Extractor, blob []byte) {
	opaque := opaqueOf(blob)
	kept := map[int]bool{} // places in the rest of a word that starts in an opaque superblock
	for _, at := range wordRun.FindAllIndex(blob, -1) {
		for i := (at[0]/4096 + 1) * 4096; opaque[at[0]/4096] && i < at[1]; i++ {
			kept[i] = true
		}
	}
	add := func(id uint64, at int) {
		in.add(id, in.superblocks+uint32(at/4096), uint8(1)<<(at%4096/512))
	}
	var folded []rune
	var places []int
	for i, r := range string(blob) {
		folded, places = append(folded, foldRune(r)), append(places, i)
	}
	for i, at := range places {
		for length := 1; length <= min(3, len(folded)-i); length++ {
			window := folded[i : i+length]
			if isWindow(window) && (!leftToWords.MatchString(string(window)) || opaque[at/4096] || kept[at]) {
				add(numberOf(e, window), at)
			}
		}
	}
	for _, at := range title.FindAllIndex(blob, -1) {
		if c := blob[at[0]:at[1]]; opaque[at[0]/4096] || kept[at[0]] {
			add(327680+26*26*uint64(c[0]-'A')+26*uint64(c[1]-'a')+uint64(c[2]-'a'), at[0])
		}
	}
}

// isWindow reports whether these runes are a window according to the table in section 7.
func isWindow(runes []rune) bool {
	wide := func(i int) bool { return runes[i] >= 0x800 }
	switch {
	case slices.Contains(runes, utf8.RuneError):
		return false
	case len(runes) == 1:
		return runes[0] >= 0x80
	case len(runes) == 2:
		return runes[0] >= 0x80 && runes[1] >= 0x80
	}
	return !wide(0) || !wide(1)
}

// numberOf returns the n-gram of a window.
func numberOf(e *ngram.Extractor, window []rune) uint64 {
	if slices.Max(window) < 0x80 {
		return windowOf(e, string(window))
	}
	x := uint64(0)
	for _, r := range window {
		x = x<<21 + uint64(r)
	}
	return 345256 + x*0x9E3779B97F4A7C15>>46
}

// leftToWords matches the windows that the index has only in and after opaque superblocks.
var leftToWords = regexp.MustCompile(`^([0-9A-Za-z_]+[\x00-\x20]*|[\x00-\x20]+[0-9A-Za-z_]+)$`)

var title = regexp.MustCompile(`[A-Z][a-z][a-z]`)
