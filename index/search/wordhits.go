package search

import (
	"cmp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
)

// wordHits are the blobs with matches of an expression that matches within words. A search finds
// them once and does not change them.
type wordHits struct {
	words   []wordMatch
	tallies []tally
	blobs   []blobTally
}

// knownWords is what the index of words and the paths know of an atom. All parts of a search share
// it.
type knownWords struct {
	candidates *candidateWords
	hits       *wordHits
	read       *among // read instead of being looked up
	names      *nameHits
	defining   []uint32 // blobs with a symbol that may match
	name       *nameIn
}

// candidateWords are the blocks of the lexicon with words in which an expression may match.
type candidateWords struct {
	blocks []uint32
	all    bool
	n      int // number of blocks, or of those that take as long as the words
	// words has instead all words in which the expression matches, or parts of words in their place; nil if they are to be found in the blocks.
	words []wordMatch
}

// postingsPerBlock is how many postings are read in the time that finding words in a block of the lexicon takes, with their lists: 77 to 121 ns
// against 4.2 to 10.4 µs (BenchmarkCosts).
const postingsPerBlock = 64

// candidateWords returns the blocks for an expression.
func (s *search) candidateWords(m *matching) (*candidateWords, error) {
	known := s.known[m]
	if known.candidates != nil {
		return known.candidates, nil
	}
	c := new(candidateWords)
	var err error
	var postings int
	if c.words, postings, err = s.partOf(m); err != nil {
		return nil, err
	}
	if c.n = 1 + postings/postingsPerBlock; c.words == nil {
		if c.blocks, c.all, err = s.lexiconBlocks(m.needs); err != nil {
			return nil, err
		}
		if c.n = len(c.blocks); c.all {
			c.n = int(s.words.Blocks())
		}
	}
	known.candidates = c
	s.known[m] = known
	return c, nil
}

// matchingWords returns the words in which an expression matches, or parts of words in their place.
func (s *search) matchingWords(m *matching) ([]wordMatch, error) {
	candidates, err := s.candidateWords(m)
	if err != nil {
		return nil, err
	}
	if candidates.words != nil {
		return candidates.words, nil
	}
	return s.matchBlocks(nil, m.inWords, candidates.blocks, candidates.all)
}

// partOf returns the spellings of a text, and the lists of the part of words that it is, with the number of their postings; nil if the shard
// lists no such part.
func (s *search) partOf(m *matching) (words []wordMatch, postings int, err error) {
	if len(m.literals) != 1 || m.literals[0].CaseSensitive {
		return nil, 0, nil
	}
	text, ok := wordText(m.literals[0])
	if !ok {
		return nil, 0, nil
	}
	part, ok, err := s.words.Part(strings.ToLower(text))
	if !ok || err != nil {
		return nil, 0, err
	}
	words, lists, err := s.spellings(m.literals[0])
	if err != nil {
		return nil, 0, err
	}
	for _, w := range []wordMatch{{part.Ends, oneOf(rank.Partial)}, {part.Inside, oneOf(rank.Inside)}} {
		if w.word == 0 {
			continue
		}
		list, err := s.words.List(w.word)
		if err != nil {
			return nil, 0, err
		}
		words, lists = append(words, w), append(lists, list)
	}
	for i := range lists {
		postings += int(lists[i].DF())
	}
	return words, postings, nil
}

// wordHits returns the hits of an expression. It looks only in the blobs that can match if that is
// cheaper.
func (s *search) wordHits(m *matching) (*wordHits, error) {
	if known := s.known[m]; known.hits != nil {
		return known.hits, nil
	}
	h := &wordHits{}
	var err error
	if h.words, err = s.matchingWords(m); err != nil {
		return nil, err
	}
	few, err := s.fewAmong(h.words)
	if err != nil {
		return nil, err
	}
	if few {
		h.tallies, err = s.talliesAmong(h.words)
	} else {
		h.tallies, err = s.tallies(h.words, false)
	}
	if err != nil {
		return nil, err
	}
	opaque, err := s.opaqueTallies(nil, m)
	if err != nil {
		return nil, err
	}
	h.tallies = mergeTallies(h.tallies, opaque)
	if h.blobs, err = s.byBlob(h.tallies, m.rate); err != nil {
		return nil, err
	}
	known := s.known[m]
	known.hits = h
	s.known[m] = known
	return h, nil
}

// fewAmong reports whether to look words up only in the blobs that can match, rather than in all:
// if these are few and the words are in more, or if seeking takes less than reading all postings.
func (s *search) fewAmong(found []wordMatch) (bool, error) {
	if s.among == nil || len(found) == 0 {
		return false, nil
	}
	all, few := float64(max(s.content.Blobs(), 1)), float64(s.among.blobs.count())
	if len(found) > countedWords {
		return few*amongShare <= all, nil
	}
	if err := s.announceLists(found); err != nil {
		return false, err
	}
	outside := 1 - few/all // approximate share of the postings
	seeks, postings := float64(len(s.among.blobs)*len(found)*seekPostings), 0.0
	for i := range found {
		list, err := s.words.List(found[i].word)
		if err != nil {
			return false, err
		}
		if postings += float64(list.DF()); postings*outside > seeks || few*amongShare <= all && postings > few {
			return true, nil
		}
	}
	return false, nil
}

// countedWords is the most words whose postings are counted.
const countedWords = 1 << 12

// readRather reports whether reading the blobs that can match takes less than finding the words in
// which an expression matches.
func (s *search) readRather(m *matching) (bool, error) {
	switch {
	case s.among == nil:
		return false, nil
	case s.among.read:
		return true, nil
	case s.among.blobs.count() > mostRead:
		return false, nil
	}
	candidates, err := s.candidateWords(m)
	if err != nil {
		return false, err
	}
	bytes := 0
	for _, run := range s.among.blobs {
		for blob := run.From; blob < run.To; blob++ {
			n, err := s.content.Len(blob)
			if err != nil {
				return false, err
			}
			bytes += int(n)
		}
	}
	return bytes < readPays*candidates.n, nil
}

// At most mostRead blobs are read instead of looking words up. Finding the words of a block of the
// lexicon, with their postings, costs as much as reading readPays bytes: 4.2 to 10.4 µs against 3.6
// to 8.7 ns a byte (BenchmarkCosts).
const (
	mostRead = 64
	readPays = 1024
)

// among has the only blobs that can match, whatever else is found.
type among struct {
	docs  runs // nil if only blobs are known
	blobs runs
	spans []superblocks // of the blobs, once needed
	bits  []uint64      // one for each superblock: whether it is in spans
	read  bool          // read all of them instead of looking words up
}

// superblocks is the superblocks [first, end) of a run of blobs.
type superblocks struct{ first, end uint32 }

// superblocks returns the superblocks of the blobs. It sets bits.
func (w *among) superblocks(content *docstore.Content) ([]superblocks, error) {
	if w.spans != nil {
		return w.spans, nil
	}
	for _, run := range w.blobs {
		first, err := content.FirstSuperblock(run.From)
		if err != nil {
			return nil, err
		}
		last, length, err := content.Span(run.To - 1)
		if err != nil {
			return nil, err
		}
		w.spans = append(w.spans, superblocks{first, last + (length+docstore.SuperblockSize-1)/docstore.SuperblockSize})
	}
	w.bits = make([]uint64, content.Superblocks()/64+1)
	for _, span := range w.spans {
		for superblock := span.first; superblock < min(span.end, content.Superblocks()); superblock++ {
			w.bits[superblock/64] |= 1 << (superblock % 64)
		}
	}
	return w.spans, nil
}

// Words are looked up in at most mostAmong blobs rather than everywhere, and always, if there are
// very many words, in at most one in amongShare of all blobs. A seek costs as much as reading
// seekPostings postings of a long list: 435 to 694 ns against 77 to 121 (BenchmarkCosts).
const (
	mostAmong    = 1 << 14
	amongShare   = 16
	seekPostings = 6
)

// talliesAmong is tallies in only the blobs that can match.
func (s *search) talliesAmong(found []wordMatch) ([]tally, error) {
	defer s.explain.during(PhasePostings)()
	spans, err := s.among.superblocks(s.content)
	if err != nil {
		return nil, err
	}
	s.stats.ListsRead += uint64(len(found))
	if err := s.announceLists(found); err != nil {
		return nil, err
	}
	superblocks := 0
	for _, span := range spans {
		superblocks += int(span.end - span.first)
	}
	if err := s.words.Read(&s.wordReader); err != nil {
		return nil, err
	}
	var tallies []tally
	for i := range found {
		if len(found) > 1 && len(tallies) > superblocks/sparseShare {
			return s.denseTallies(found, false, spans)
		}
		if err := s.eachAmong(found[i].word, func(superblock uint32, count uint16) {
			tallies = append(tallies, tally{superblock: superblock, matches: wordSums(count) * found[i].matches})
		}); err != nil {
			return nil, err
		}
	}
	if len(found) > 1 {
		slices.SortFunc(tallies, func(a, b tally) int { return int(a.superblock) - int(b.superblock) })
		tallies = joinTallies(tallies)
	}
	return tallies, nil
}

// eachAmong calls f for each posting of a word in the blobs that can match. It seeks in a long list
// and reads a short one. The caller has prepared wordReader and the superblocks of s.among.
func (s *search) eachAmong(word uint32, f func(superblock uint32, count uint16)) error {
	w, r := s.among, &s.wordReader
	df, err := r.Open(word)
	if err != nil {
		return err
	}
	if uint64(df) > uint64(len(w.spans))*seekPostings {
		return s.seekAmong(word, f)
	}
	s.reads.Postings += uint64(df)
	for superblocks, counts := r.Block(); len(superblocks) > 0; superblocks, counts = r.Block() {
		for i, superblock := range superblocks {
			if w.bits[superblock/64]>>(superblock%64)&1 == 1 {
				f(superblock, counts[i])
			}
		}
	}
	return cmp.Or(r.Err(), s.tick())
}

// seekAmong is eachAmong by seeks.
func (s *search) seekAmong(word uint32, f func(superblock uint32, count uint16)) error {
	list, err := s.words.List(word)
	if err != nil {
		return err
	}
	it := &s.wordIterator
	it.Reset(list)
	for _, span := range s.among.spans {
		ok := it.SeekGE(span.first)
		for ; ok && it.Superblock() < span.end; ok = it.Next() {
			s.reads.Postings++
			f(it.Superblock(), it.Count())
		}
		if !ok {
			break
		}
	}
	return cmp.Or(it.Err(), s.tick())
}
