package inverted

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/internal/testrun"
)

// failer has the methods common to *testing.T and *rapid.T.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// model is an index as plain maps, and the index built from the same blobs.
type model struct {
	index  *Index
	lists  map[ngram.ID]map[uint32]uint8
	blobs  [][]byte
	starts []uint32 // first superblock of each blob
	size   uint32   // number of superblocks
	file   []byte
}

// add adds a blob's postings to model and builder.
func (m *model) add(t failer, b *NgramBuilder, e *ngram.Extractor, blob []byte) {
	t.Helper()
	start := m.size
	e.Extract(blob, func(superblock uint32, ids []ngram.ID, masks []uint8) {
		for i, id := range ids {
			if m.lists[id] == nil {
				m.lists[id] = map[uint32]uint8{}
			}
			m.lists[id][start+superblock] = masks[i]
		}
		if err := b.Add(start+superblock, ids, masks); err != nil {
			t.Fatal(err)
		}
	})
	m.blobs = append(m.blobs, blob)
	m.starts = append(m.starts, start)
	m.size += uint32((len(blob) + ngram.SuperblockSize - 1) / ngram.SuperblockSize)
}

var (
	testBuilder   = NewNgramBuilder() // shared, so that leftovers would have an effect
	testExtractor = ngram.NewExtractor()
)

func buildModel(t failer, blobs ...[]byte) *model {
	t.Helper()
	m := &model{lists: map[ngram.ID]map[uint32]uint8{}}
	testBuilder.Reset()
	for _, blob := range blobs {
		m.add(t, testBuilder, testExtractor, blob)
	}
	m.file = writeFile(t, testBuilder, m.size)
	m.index = openFile(t, m.file)
	return m
}

func writeFile(t failer, b *NgramBuilder, superblocks uint32) []byte {
	t.Helper()
	var file bytes.Buffer
	w := format.NewWriter(&file)
	if err := b.Write(w, ContentTags, superblocks); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func openFile(t failer, file []byte) *Index {
	t.Helper()
	f, err := format.NewFile("test", file)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open(f, ContentTags)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// list returns the superblocks of a model's list, ascending.
func list(masks map[uint32]uint8) []uint32 {
	superblocks := make([]uint32, 0, len(masks))
	for s := range masks {
		superblocks = append(superblocks, s)
	}
	slices.Sort(superblocks)
	return superblocks
}

// startsIn reports whether a window of id starts in a block, counted over all superblocks.
func (m *model) startsIn(id ngram.ID, block int64) bool {
	return block >= 0 && m.lists[id][uint32(block/8)]>>(block%8)&1 == 1
}

// candidates applies the planner's rule block by block.
func (m *model) candidates(windows []ngram.Window, anchor ngram.Window) map[uint32]uint8 {
	found := map[uint32]uint8{}
	for superblock, mask := range m.lists[anchor.ID] {
		for j := range int64(8) {
			block := int64(superblock)*8 + j
			fits := func(w ngram.Window) bool {
				return m.startsIn(w.ID, block) ||
					w.MinOffset > anchor.MinOffset && m.startsIn(w.ID, block+1) ||
					w.MinOffset < anchor.MinOffset && m.startsIn(w.ID, block-1)
			}
			if mask>>j&1 == 1 && !slices.ContainsFunc(windows, func(w ngram.Window) bool { return !fits(w) }) {
				found[superblock] |= 1 << j
			}
		}
	}
	return found
}

var words = []string{
	"func ", "return", "Error", "Kelvin", "\u212Aelvin", "\u017Ftream", "Stream", "Ⱥbc", "ⱥbc", "STRAẞE", "straße", "中文字符", "日本語",
	"\xff\xfe", "\xe2\x84", "kkkk", "SSSS", "\n", "\t", " ", "x", "y", "zz", "(", ");\n", "the ", "Foo", "foo", "Bar_baz", "0x1F", "ΣΑΣ", "σας",
}

// randomText returns about size bytes of words. If these are few, the text is clustered.
func randomText(random *rand.Rand, size int) []byte {
	var b strings.Builder
	for b.Len() < size {
		some := 1 + random.IntN(len(words))
		for range random.IntN(400) {
			b.WriteString(words[random.IntN(some)])
		}
	}
	return []byte(b.String()[:size])
}

func newRandom(t *testing.T) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(testrun.Seed(t), 0))
}
