package inverted

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/internal/testrun"
)

// walk collects candidates, by Next and by SeekGE.
func walk(t failer, c *Candidates, random *rand.Rand) map[uint32]uint8 {
	t.Helper()
	found := map[uint32]uint8{}
	last := int64(-1)
	for {
		var superblock uint32
		var blocks uint8
		var ok bool
		if random.IntN(2) == 0 {
			superblock, blocks, ok = c.Next()
		} else {
			superblock, blocks, ok = c.SeekGE(uint32(last + 1))
			if again, b, k := c.SeekGE(superblock); again != superblock || b != blocks || k != ok {
				t.Fatalf("SeekGE moves on from %d to %d", superblock, again)
			}
		}
		if !ok {
			break
		}
		if int64(superblock) <= last || blocks == 0 {
			t.Fatalf("candidate %d %08b after %d", superblock, blocks, last)
		}
		last = int64(superblock)
		found[superblock] = blocks
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// walkUpTo collects candidates by SeekUpTo, one stretch of superblocks at a time.
func walkUpTo(t failer, c *Candidates, superblocks uint32, random *rand.Rand) map[uint32]uint8 {
	t.Helper()
	found := map[uint32]uint8{}
	for from := uint32(0); from < superblocks; {
		last := from + uint32(random.IntN(4))
		superblock, blocks, ok := c.SeekUpTo(from, last)
		if !ok {
			from = last + 1
			continue
		}
		if superblock < from || superblock > last || blocks == 0 {
			t.Fatalf("candidate %d %08b from %d to %d", superblock, blocks, from, last)
		}
		found[superblock] = blocks
		from = superblock + 1
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// checkLiteral compares the candidates with the rule's and with the true matches, whose number it
// returns.
func (m *model) checkLiteral(t failer, literal string, caseSensitive bool, random *rand.Rand) int {
	t.Helper()
	windows := ngram.LiteralWindows(literal, caseSensitive)
	if len(windows) == 0 {
		if _, err := m.index.Literal(windows); !errors.Is(err, ErrNoWindows) {
			t.Fatalf("%q without n-grams: %v", literal, err)
		}
		return 0
	}
	full, err := m.index.literal(windows, len(windows))
	if err != nil {
		t.Fatal(err)
	}
	exact := walk(t, full, random)
	anchor := full.anchor
	full.Release()
	if want := m.candidates(windows, anchor); !maps.Equal(exact, want) {
		t.Fatalf("%q: candidates %v, the rule gives %v", literal, exact, want)
	}
	if full, err = m.index.literal(windows, len(windows)); err != nil {
		t.Fatal(err)
	}
	if parts := walkUpTo(t, full, m.index.Superblocks(), random); !maps.Equal(parts, exact) {
		t.Fatalf("%q: candidates %v, in parts %v", literal, exact, parts)
	}
	full.Release()
	c, err := m.index.Literal(windows)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	m.checkUsual(t, walk(t, c, random), exact, c)
	return m.checkMatches(t, literal, caseSensitive, c, exact)
}

// checkUsual fails if candidates that may result from fewer lists lack one of the exact candidates,
// or are not blocks of the anchor.
func (m *model) checkUsual(t failer, found, exact map[uint32]uint8, c *Candidates) {
	t.Helper()
	for superblock, blocks := range exact {
		if blocks&^found[superblock] != 0 {
			t.Fatalf("candidate %d %08b, not %08b", superblock, found[superblock], blocks)
		}
	}
	for superblock, blocks := range found {
		if blocks&^m.lists[c.anchor.ID][superblock] != 0 {
			t.Fatalf("candidate %d %08b has no anchor", superblock, blocks)
		}
	}
	if uint64(len(found)) > c.Cost() {
		t.Fatalf("%d candidates at a cost of %d", len(found), c.Cost())
	}
	if len(c.followers) < maxFollowers && !maps.Equal(found, exact) {
		t.Fatalf("all lists were used and gave %v, not %v", found, exact)
	}
}

// checkMatches fails if the anchor of a match is in no candidate block.
func (m *model) checkMatches(t failer, literal string, caseSensitive bool, c *Candidates, found map[uint32]uint8) (n int) {
	t.Helper()
	expression := regexp.QuoteMeta(literal)
	if !caseSensitive {
		expression = "(?i)" + expression
	}
	compiled := regexp.MustCompile(expression)
	least, most := c.AnchorOffset()
	for b, blob := range m.blobs {
		for _, span := range compiled.FindAllIndex(blob, -1) {
			ok := false
			for at := span[0] + least; at <= span[0]+most; at++ {
				superblock := m.starts[b] + uint32(at/ngram.SuperblockSize)
				ok = ok || found[superblock]>>(at%ngram.SuperblockSize/ngram.BlockSize)&1 == 1
			}
			if !ok {
				t.Fatalf("match of %q at %d of blob %d is not a candidate (anchor at %d to %d)", literal, span[0], b, least, most)
			}
			n++
		}
	}
	return n
}

// sample takes a literal of valid UTF-8 from a blob, from any place and of any length.
func sample(random *rand.Rand, blobs [][]byte) string {
	blob := blobs[random.IntN(len(blobs))]
	if len(blob) < 3 {
		return "abc"
	}
	length := 3 + random.IntN(12)
	switch random.IntN(4) {
	case 0:
		length = 3 + random.IntN(ngram.MaxSpan+40)
	case 1:
		length = 3
	}
	start := random.IntN(len(blob))
	if random.IntN(2) == 0 { // across a border
		start = max(0, (start/ngram.BlockSize+1)*ngram.BlockSize-random.IntN(length+3))
	}
	start = min(start, len(blob)-1)
	return strings.ToValidUTF8(string(blob[start:min(start+length, len(blob))]), "\uFFFD")
}

func flipCase(random *rand.Rand, literal string) string {
	return strings.Map(func(r rune) rune {
		for range random.IntN(3) {
			r = unicode.SimpleFold(r)
		}
		return r
	}, literal)
}

func TestCandidatesAreTheModelsAndMissNothing(t *testing.T) {
	matches := 0
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		blobs := randomBlobs(random)
		m := buildModel(t, blobs...)
		for range testrun.Rounds(2, 5) {
			literal := sample(random, blobs)
			matches += m.checkLiteral(t, literal, true, random)
			matches += m.checkLiteral(t, flipCase(random, literal), false, random)
		}
	})
	if matches == 0 {
		t.Error("no match was checked")
	}
}

// Literals of every length, at every offset within a block, with neighbours that share their
// n-grams.
func TestEveryLengthAtEveryAlignment(t *testing.T) {
	random := newRandom(t)
	for length := 3; length <= ngram.MaxSpan+8; length += 1 + length/40 {
		literal := validText(random, length)
		caseless := flipCase(random, literal)
		var text bytes.Buffer
		for i := range ngram.BlockSize {
			occurrence := literal
			if i%2 == 1 {
				occurrence = caseless
			}
			text.WriteString(occurrence)
			for text.Len()%ngram.BlockSize != (i*37+1)%ngram.BlockSize && text.Len()%2 == 0 || text.Len()%7 == 0 {
				text.WriteByte('q')
			}
			text.WriteString(occurrence[:min(2, len(occurrence))])
		}
		m := buildModel(t, []byte("first"), text.Bytes(), []byte(literal))
		if n := m.checkLiteral(t, literal, true, random); n < ngram.BlockSize/2 {
			t.Fatalf("%d matches of %q", n, literal)
		}
		if n := m.checkLiteral(t, literal, false, random); n < ngram.BlockSize {
			t.Fatalf("%d matches of %q without case", n, literal)
		}
	}
}

// validText is a literal of about length bytes with case variants of other lengths.
func validText(random *rand.Rand, length int) string {
	var b strings.Builder
	for b.Len() < length {
		w := words[random.IntN(len(words))]
		if utf8.ValidString(w) {
			b.WriteString(w)
		}
	}
	return strings.ToValidUTF8(b.String()[:length], "") + "end"[:min(3, length)]
}
