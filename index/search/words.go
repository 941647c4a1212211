package search

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/literal"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// wordMatch is a word of the lexicon in which an expression matches, and how often.
type wordMatch struct {
	word    uint32
	matches wordSums
}

// wordMatcher finds matches in the words of a lexicon.
type wordMatcher struct {
	regex.Matcher
	// small says that it works on words in lower case.
	small bool
}

// literalInWords finds a literal in words. Without case it does so in lower case, since words have
// no other runes that fold to these letters.
func literalInWords(l regex.Literal) wordMatcher {
	if l.CaseSensitive {
		return wordMatcher{literal.New(l.Text, true), false}
	}
	return wordMatcher{literal.New(strings.ToLower(foldedRunes.Replace(l.Text)), true), true}
}

// matchBlocks returns the words in some blocks in which an expression matches, by ascending number. Its matches are within words
// (regex.WithinWords).
func (s *search) matchBlocks(m wordMatcher, blocks []uint32) (found []wordMatch, err error) {
	defer s.explain.during(PhaseWords)()
	if err := s.words.AnnounceBlocks(blocks); err != nil {
		return nil, err
	}
	for _, number := range blocks {
		if found, err = s.matchBlock(found, m, number); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// matchBlock appends what matchBlocks returns of one block. The text has one word per line: the byte next to a word
// is not a word byte, as in every text, and no match continues into the next word.
func (s *search) matchBlock(dst []wordMatch, m wordMatcher, number uint32) ([]wordMatch, error) {
	if err := s.tick(); err != nil {
		return dst, err
	}
	b := &s.lexicon
	read := s.words.Block
	if m.small {
		read = s.words.SmallBlock
	}
	if err := read(number, b); err != nil {
		return dst, err
	}
	s.reads.LexiconBlocks++
	last, before := -1, len(dst)
	for start, end := range regex.Ranges(m.Matcher, b.Text) {
		i := b.At(start, max(last, 0))
		if i != last {
			dst = append(dst, wordMatch{word: b.First + uint32(i)})
			last = i
		}
		dst[len(dst)-1].matches += oneOf(rank.Of(b.Text, start, end))
	}
	s.reads.Words += uint64(len(dst) - before)
	return dst, nil
}

// lexiconBlocks returns the blocks of the lexicon that may have a word with the needs, ascending.
func (s *search) lexiconBlocks(needs regex.Needs) ([]uint32, error) {
	blocks, some, err := regex.Fold(needs, func(l regex.Literal) ([]uint32, bool, error) {
		text, ok := wordText(l)
		if !ok {
			return nil, true, nil // no word of the lexicon holds it
		}
		return s.blocksHolding(text)
	}, func(parts [][]uint32) []uint32 {
		common := parts[0]
		for _, part := range parts[1:] {
			common = intersect(common, part)
		}
		return common
	}, union)
	for number := uint32(0); !some && number < s.words.Blocks(); number++ {
		blocks = append(blocks, number)
	}
	return blocks, err
}

// union returns the numbers of all lists, ascending.
func union(lists [][]uint32) []uint32 {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// wordText returns the word bytes of a literal; ok is false if no word can hold the literal.
// Without case, the letters replace the runes that fold to them.
func wordText(l regex.Literal) (text string, ok bool) {
	text = l.Text
	for i := 0; i < len(text); i++ {
		if text[i] >= utf8.RuneSelf && !l.CaseSensitive {
			text = foldedRunes.Replace(text) // the first such byte stays one unless its rune is replaced
		}
		if !ngram.IsWord(text[i]) {
			return "", false
		}
	}
	return text, true
}

var foldedRunes = strings.NewReplacer("\u212A", "k", "\u017F", "s")

// blocksHolding returns the blocks of the lexicon that may have a word that holds a text; some is false if any block may.
func (s *search) blocksHolding(text string) (blocks []uint32, some bool, err error) {
	defer s.explain.during(PhaseWords)()
	candidates, ok, err := s.words.Holding(text)
	if err != nil || !ok {
		return nil, false, err
	}
	defer candidates.Release()
	s.stats.ListsRead += uint64(candidates.Lists())
	for superblock, mask, ok := candidates.Next(); ok; superblock, mask, ok = candidates.Next() {
		for j := uint32(0); mask != 0; j, mask = j+1, mask>>1 {
			if mask&1 == 1 {
				blocks = append(blocks, superblock*ngram.BlocksPerSuperblock+j)
			}
		}
	}
	return blocks, true, candidates.Err()
}

// intersect returns what two ascending lists have in common, in the memory of the first.
func intersect(a, b []uint32) []uint32 {
	kept := a[:0]
	for _, v := range a {
		for len(b) > 0 && b[0] < v {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == v {
			kept = append(kept, v)
		}
	}
	return kept
}

// tally says how often an expression matches in the words that start in a superblock, and, if
// requested, in which blocks the words start.
type tally struct {
	superblock uint32
	blocks     uint8
	// opaque says that the superblock is opaque.
	opaque  bool
	matches wordSums
}

func (t *tally) number() uint32 { return t.superblock }

// listPart is what is read of the lists of words.
type listPart uint8

const (
	allCounts       listPart = iota
	withMasks                // of blocks
	definitionsOnly          // without counts
)

// tallies adds up the postings of words to one tally per superblock, ascending. It leaves out those of blobs that are not in w, unless w is nil.
func (s *search) tallies(found []wordMatch, part listPart, w *among) (tallies []tally, err error) {
	defer s.explain.during(PhasePostings)()
	s.stats.ListsRead += uint64(len(found))
	if w != nil {
		if err := w.findSuperblocks(s); err != nil {
			return nil, err
		}
	}
	if err := s.announceLists(found); err != nil {
		return nil, err
	}
	if n := int(s.words.Superblocks()); len(s.sums.matches) < n {
		s.sums = superblockSums{used: make([]uint64, (n+63)/64), matches: make([]wordSums, n), blocks: make([]uint8, n)}
	}
	defer func() { tallies = s.sums.take() }() // even if a fault unwinds the stack: later searches use this memory
	for i := range found {
		list, err := s.words.List(found[i].word)
		if err == nil {
			err = s.eachPosting(list, part, w, func(superblock uint32, count uint16, blocks uint8) {
				s.sums.add(superblock, wordSums(count)*found[i].matches, blocks)
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// superblockSums adds up tallies by superblock. It is empty between uses.
type superblockSums struct {
	n       int      // superblocks in use
	used    []uint64 // a bit for each superblock
	matches []wordSums
	blocks  []uint8
}

func (s *superblockSums) add(superblock uint32, matches wordSums, blocks uint8) {
	word, bit := &s.used[superblock/64], superblock%64
	s.n += int(^*word >> bit & 1)
	*word |= 1 << bit
	s.matches[superblock] += matches
	s.blocks[superblock] |= blocks
}

// take returns the tallies, ascending, and empties the sums.
func (s *superblockSums) take() []tally {
	tallies := make([]tally, 0, s.n)
	for i, word := range s.used {
		if word == 0 {
			continue
		}
		for s.used[i] = 0; word != 0; word &= word - 1 {
			at := i*64 + bits.TrailingZeros64(word)
			tallies = append(tallies, tally{superblock: uint32(at), blocks: s.blocks[at], matches: s.matches[at]})
			s.matches[at], s.blocks[at] = 0, 0
		}
	}
	s.n = 0
	return tallies
}

// mergeTallies merges two ascending lists and joins the tallies of the same superblock. The second list is mostly short.
func mergeTallies(a, b []tally) []tally {
	if len(b) == 0 {
		return a
	}
	merged := make([]tally, 0, len(a)+len(b))
	for _, t := range b {
		n, same := slices.BinarySearchFunc(a, t.superblock, func(t tally, s uint32) int { return int(t.superblock) - int(s) })
		merged = append(merged, a[:n]...)
		if a = a[n:]; same {
			t = tally{t.superblock, t.blocks | a[0].blocks, t.opaque || a[0].opaque, t.matches + a[0].matches}
			a = a[1:]
		}
		merged = append(merged, t)
	}
	return append(merged, a...)
}

// eachPosting calls f for each posting of a list, of the blobs in w unless that is nil. Blocks are 0 without masks.
func (s *search) eachPosting(l inverted.List, part listPart, w *among, f func(superblock uint32, count uint16, blocks uint8)) error {
	s.reads.Postings += uint64(l.DF())
	it := &s.wordIterator
	it.Reset(l)
	for {
		var superblocks []uint32
		var counts []uint16
		var blocks []uint8
		var err error
		if part == definitionsOnly {
			superblocks = it.DefinedBlock()
		} else {
			superblocks, counts = it.Block()
		}
		if len(superblocks) == 0 {
			return it.Err()
		}
		if part == withMasks {
			blocks, err = it.Masks()
		}
		if err := cmp.Or(err, s.tick()); err != nil {
			return err
		}
		for i, superblock := range superblocks {
			switch {
			case w != nil && !w.has(superblock):
			case part == allCounts:
				f(superblock, counts[i], 0)
			case part == withMasks:
				f(superblock, counts[i], blocks[i])
			case it.DefinedAt(i):
				f(superblock, 1, 0)
			}
		}
	}
}

// blobTally is the sum of the tallies of one blob's superblocks.
type blobTally struct {
	blob   uint32
	counts rank.Counts
	// opaque says that some matches are in opaque superblocks.
	opaque bool
	// content is the score of the matches; see rank.Content.
	content float64
	// first is the index of the first tally.
	first int
}

func (t *blobTally) number() uint32 { return t.blob }

// byBlob adds up the tallies of each blob, which rate scores.
func (s *search) byBlob(tallies []tally, rate func(t *blobTally, length int)) ([]blobTally, error) {
	starts, err := s.content.SuperblockStarts()
	if err != nil {
		return nil, err
	}
	cursor := blobOfSuperblocks{starts: starts}
	length := 0 // of the last blob
	blobs := make([]blobTally, 0, min(len(tallies), int(s.content.Blobs())))
	for i := range tallies {
		t := &tallies[i]
		blob := cursor.of(t.superblock)
		if blob < 0 {
			return nil, s.shard.Corruptf("a superblock belongs to no blob")
		}
		if n := len(blobs); n == 0 || blobs[n-1].blob != uint32(blob) {
			if n > 0 {
				rate(&blobs[n-1], length)
			}
			length = int(cursor.superblocks(s.content.Superblocks()))
			blobs = append(blobs, blobTally{blob: uint32(blob), first: i})
		}
		b := &blobs[len(blobs)-1]
		b.counts.Plus(t.matches.counts())
		b.opaque = b.opaque || t.opaque
	}
	if n := len(blobs); n > 0 {
		rate(&blobs[n-1], length)
	}
	return blobs, nil
}

// blobsOfWords returns the blobs of the postings of words, ascending.
func (s *search) blobsOfWords(found []wordMatch, part listPart) (blobs []uint32, err error) {
	tallies, err := s.tallies(found, part, nil)
	if err != nil {
		return nil, err
	}
	return s.blobsOfTallies(tallies)
}

// blobsOfTallies returns the blobs of tallies, ascending.
func (s *search) blobsOfTallies(tallies []tally) (blobs []uint32, err error) {
	found, err := s.byBlob(tallies, func(*blobTally, int) {})
	for i := range found {
		blobs = append(blobs, found[i].blob)
	}
	return blobs, err
}

// rate scores the matches of a text in a content of that many superblocks, the unit of its length.
func (m *matching) rate(t *blobTally, length int) {
	quality, matches := t.counts.Best(length)
	t.content = m.loose.Weigh(rank.Content(quality, matches, length))
}

// wordScratch is memory for reading the index of words.
type wordScratch struct {
	lexicon      inverted.Block
	wordIterator inverted.Iterator
	sums         superblockSums
}

const blockWords = inverted.BlockWords

// wordSums counts matches by their quality, as rank.Counts does, in one number, so that one
// addition adds them all: the words that start in one superblock have at most 4,159 matches.
type wordSums uint64

const sumBits = 21

// oneOf returns one match of a quality.
func oneOf(quality rank.Quality) wordSums {
	one := wordSums(1)
	if quality >= rank.Partial {
		one |= 1 << sumBits
	}
	if quality >= rank.Word {
		one |= 1 << (2 * sumBits)
	}
	return one
}

func (s wordSums) counts() rank.Counts {
	const mask = 1<<sumBits - 1
	return rank.Counts{rank.Inside: uint32(s & mask), rank.Partial: uint32(s >> sumBits & mask), rank.Word: uint32(s >> (2 * sumBits) & mask)}
}

func (s wordSums) all() int { return int(s & (1<<sumBits - 1)) }
