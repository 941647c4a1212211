package shard

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// wordHits are the blobs in which an expression whose matches are within words has some.
// They are made once for a search and not changed.
type wordHits struct {
	words   []wordMatch
	tallies []tally
	blobs   []blobTally
}

// wordHits finds them, once for all parts of the search.
func (s *search) wordHits(m *matching) (*wordHits, error) {
	if h, ok := s.hits[m]; ok {
		return h, nil
	}
	found, err := s.wordsOf(m)
	if err != nil {
		return nil, err
	}
	h := &wordHits{words: found.words}
	if w := s.among; w != nil && uint64(len(w.blobs)*len(h.words))*seekPostings < found.df {
		h.tallies, err = s.talliesAmong(h.words, w)
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
	if h.blobs, err = s.byBlob(h.tallies); err != nil {
		return nil, err
	}
	s.hits[m] = h
	return h, nil
}

// matchedWords are the words in which an expression matches, and how many postings they
// have, if the words are few, or at least.
type matchedWords struct {
	words []wordMatch
	df    uint64
}

// candidateWords are the blocks of the lexicon in which an expression may match.
type candidateWords struct {
	blocks []uint32
	all    bool
	n      int // of the blocks
}

// candidateWords finds them, once for all parts of the search.
func (s *search) candidateWords(m *matching) (c candidateWords, err error) {
	if c, ok := s.candidatesOf[m]; ok {
		return c, nil
	}
	if c.blocks, c.all, err = s.lexiconBlocks(m.needs); err != nil {
		return c, err
	}
	if c.n = len(c.blocks); c.all {
		c.n = int(s.words.Blocks())
	}
	s.candidatesOf[m] = c
	return c, nil
}

// readRather reports whether reading the blobs outside of which nothing matches is sooner
// done than finding the words in which an expression matches.
func (s *search) readRather(m *matching) (bool, error) {
	if s.among == nil || len(s.among.blobs) > mostRead {
		return false, nil
	}
	candidates, err := s.candidateWords(m)
	if err != nil {
		return false, err
	}
	bytes := 0
	for _, blob := range s.among.blobs {
		n, err := s.content.Len(blob)
		if err != nil {
			return false, err
		}
		bytes += int(n)
	}
	return bytes < readPays*candidates.n, nil
}

// At most mostRead blobs are read rather than words looked up, where finding those of a
// block of the lexicon, and reading their postings, takes as long as reading readPays bytes.
const (
	mostRead = 64
	readPays = 512
)

// countedWords is of how many words the postings are counted.
const countedWords = 1 << 12

// wordsOf finds the words in which an expression matches, once for all parts of the search.
func (s *search) wordsOf(m *matching) (found matchedWords, err error) {
	if found, ok := s.found[m]; ok {
		return found, nil
	}
	candidates, err := s.candidateWords(m)
	if err != nil {
		return found, err
	}
	if found.words, err = s.matchBlocks(nil, m.inWords, candidates.blocks, candidates.all); err != nil {
		return found, err
	}
	for i := range found.words[:min(len(found.words), countedWords)] {
		list, err := s.words.List(found.words[i].word)
		if err != nil {
			return found, err
		}
		found.df += uint64(list.DF())
	}
	if n := len(found.words); n > countedWords {
		found.df += uint64(n - countedWords)
	}
	s.found[m] = found
	return found, nil
}

// among is the blobs outside of which nothing matches, whatever is found there.
type among struct {
	blobs []uint32
	spans []superblocks // of the blobs, once asked for
}

// superblocks [first, end) are those of a blob.
type superblocks struct{ first, end uint32 }

// Words are looked up in up to mostAmong blobs rather than read as a whole, where a seek
// takes as long as to read seekPostings postings.
const (
	mostAmong    = 1 << 14
	seekPostings = 24
)

// talliesAmong is tallies in some blobs only.
func (s *search) talliesAmong(found []wordMatch, w *among) ([]tally, error) {
	if w.spans == nil {
		for _, blob := range w.blobs {
			first, length, err := s.content.Span(blob)
			if err != nil {
				return nil, err
			}
			w.spans = append(w.spans, superblocks{first, first + (length+docstore.SuperblockSize-1)/docstore.SuperblockSize})
		}
	}
	var tallies []tally
	it := &s.wordIterator
	for i := range found {
		if err := s.tick(); err != nil {
			return nil, err
		}
		list, err := s.words.List(found[i].word)
		if err != nil {
			return nil, err
		}
		it.Reset(list)
		for _, span := range w.spans {
			ok := it.SeekGE(span.first)
			for ; ok && it.Superblock() < span.end; ok = it.Next() {
				tallies = append(tallies, tally{superblock: it.Superblock(), matches: uint32(it.Count()) * found[i].matches, quality: found[i].quality})
			}
			if !ok {
				break
			}
		}
		if it.Err() != nil {
			return nil, it.Err()
		}
	}
	slices.SortFunc(tallies, func(a, b tally) int { return int(a.superblock) - int(b.superblock) })
	return joinTallies(tallies), nil
}

// wordAtom finds a text within the words of documents. Which blobs have how many
// matches is known before any is looked at; only what is shown is read.
type wordAtom struct {
	*matching
	s    *search
	hits *wordHits
	next int // index in blobs of the first that was not passed
	// keep is how many spans are wanted of a document, 0 for all.
	keep int
	// spans are the ranges of the document read last, and best the best quality of one.
	spans spanList
	best  rank.Quality
}

func (a *wordAtom) plan() (plan, error) {
	return plan{blobs: &wordBlobs{blobs: a.hits.blobs}, estimate: uint64(len(a.hits.blobs)), counted: true}, nil
}

// wordBlobs has the blobs of hits as candidates.
type wordBlobs struct {
	blobs []blobTally
	next  int
}

func (b *wordBlobs) seek(from uint32) (uint32, bool, error) {
	b.next = seekBlob(b.blobs, b.next, from)
	if b.next == len(b.blobs) {
		return 0, false, nil
	}
	return b.blobs[b.next].blob, true, nil
}

// seekBlob returns the index, not below at, of the first blob that is at least from. It
// gallops.
func seekBlob(blobs []blobTally, at int, from uint32) int {
	if at == len(blobs) || blobs[at].blob >= from {
		return at
	}
	step := 1
	for at+step < len(blobs) && blobs[at+step].blob < from {
		at += step
		step *= 2
	}
	i, _ := slices.BinarySearchFunc(blobs[at+1:min(at+step+1, len(blobs))], from,
		func(b blobTally, from uint32) int { return int(b.blob) - int(from) })
	return at + 1 + i
}

func (a *wordAtom) cost() uint64 { return costColumn }

// tally returns what is known of a document's content, nil if it has no match.
func (a *wordAtom) tally(d *document) *blobTally {
	blobs := a.hits.blobs
	if a.next > 0 && blobs[a.next-1].blob >= d.blob {
		a.next = 0 // it goes back, to show what was found
	}
	a.next = seekBlob(blobs, a.next, d.blob)
	if a.next == len(blobs) || blobs[a.next].blob != d.blob {
		return nil
	}
	return &blobs[a.next]
}

func (a *wordAtom) matches(d *document) (bool, error) { return a.tally(d) != nil, nil }

// gather counts the matches of a document, or adds their ranges.
func (a *wordAtom) gather(d *document, g *gathered) error {
	if !g.counting {
		if err := a.read(d); err != nil {
			return err
		}
		if a.spans.n > 0 {
			g.content = append(g.content, &a.spans)
		}
		g.best = max(g.best, a.best)
		return nil
	}
	if b := a.tally(d); b != nil {
		g.more += int(b.matches)
		g.best = max(g.best, b.quality)
		if b.opaque {
			g.opaque++
		}
	}
	return nil
}

// read reads where the matches are in a document that has some: all, or the first ones
// that are wanted.
func (a *wordAtom) read(d *document) error {
	a.spans.reset()
	a.best = rank.None
	b := a.tally(d)
	if b == nil {
		return nil
	}
	first, length, err := a.s.content.Span(d.blob)
	if err != nil {
		return err
	}
	end := first + (length+docstore.SuperblockSize-1)/docstore.SuperblockSize
	add := func(start, end uint32, quality rank.Quality) bool {
		a.spans.add(span{start, end})
		a.best = max(a.best, quality)
		return a.keep == 0 || a.spans.n < a.keep
	}
	if b.opaque || a.s.text.holds(d.blob) || end-first <= mostWhole && a.touched(b, end)*wholeShare >= int(end-first) {
		return a.readWhole(d.blob, add)
	}
	for tallies := a.hits.tallies[b.first:]; len(tallies) > 0 && tallies[0].superblock < end; {
		n, matches := 1, int(tallies[0].matches)
		for n < len(tallies) && tallies[n].superblock < end && tallies[n].superblock == tallies[n-1].superblock+1 {
			matches += int(tallies[n].matches)
			n++
		}
		r := wordReader{s: a.s, m: a.matching, blob: d.blob, wanted: matches, found: add}
		if err := r.read(tallies[0].superblock-first, tallies[n-1].superblock+1-first); err != nil {
			return err
		}
		if a.keep > 0 && a.spans.n == a.keep {
			break
		}
		tallies = tallies[n:]
	}
	return nil
}

// A content of up to mostWhole superblocks is read as a whole, once for its matches and for
// the lines around them, where these are in one of wholeShare superblocks.
const (
	mostWhole  = 1 << 10
	wholeShare = 2
)

// touched is how many superblocks of a blob that ends before one have matches.
func (a *wordAtom) touched(b *blobTally, end uint32) (n int) {
	for _, t := range a.hits.tallies[b.first:] {
		if t.superblock >= end {
			break
		}
		n++
	}
	return n
}

// readWhole finds the matches in the whole content.
func (a *wordAtom) readWhole(blob uint32, add func(start, end uint32, quality rank.Quality) bool) error {
	text, err := a.s.text.load(a.s, blob)
	if err != nil {
		return err
	}
	for start, end := range regex.RangesWhile(a.matcher, text, 0, a.s.goOn) {
		if !add(uint32(start), uint32(end), rank.Of(text, start, end)) {
			break
		}
	}
	return a.s.ended
}

// wordReader finds the matches in the words that start in some superblocks of a blob, none
// of which is opaque. How many there are is known, so that it reads no further than the last.
type wordReader struct {
	s      *search
	m      *matching
	blob   uint32
	wanted int
	found  func(start, end uint32, quality rank.Quality) bool

	begin uint32 // offset in the blob of the text that is read
	head  int    // length of a word that may have started before
}

// wordStep is how much of a blob is read at once. It divides a superblock.
const wordStep = 1 << 10

// read reads superblocks [from, to), counted from the blob's first one. Matches in a word
// that started before them are none of theirs.
func (r *wordReader) read(from, to uint32) error {
	r.begin = from * docstore.SuperblockSize
	end := int((to - from) * docstore.SuperblockSize)
	text := r.s.buf[:0]
	for at := 0; r.wanted > 0 && at < end; {
		had := len(text)
		var err error
		text, err = r.s.reader.Append(text, r.blob, r.begin+uint32(had), wordStep)
		r.s.buf = text
		if err != nil {
			return err
		}
		limit := len(text)
		if len(text)-had == wordStep { // else the blob ends here
			limit = ngram.ExtendedStart(text, len(text))
		}
		if at == 0 && r.begin > 0 {
			r.head = ngram.ExtendedEnd(text[:limit], 0)
		}
		if limit <= at {
			if len(text) == had {
				return nil
			}
			continue // within a word
		}
		if more, err := r.match(text[:limit], at, end); !more || err != nil {
			return err
		}
		if at = limit; len(text) == had {
			return nil
		}
	}
	return nil
}

// match finds the matches in text[at:] that start before end; more says whether others are wanted.
func (r *wordReader) match(text []byte, at, end int) (more bool, err error) {
	for start, stop := range regex.RangesFrom(r.m.matcher, text, at) {
		if start < r.head {
			if own, err := r.ownHead(); err != nil {
				return false, err
			} else if !own {
				continue
			}
		}
		if start >= end && ngram.ExtendedStart(text, start) >= end {
			return false, nil
		}
		r.wanted--
		if !r.found(r.begin+uint32(start), r.begin+uint32(stop), rank.Of(text, start, stop)) {
			return false, nil
		}
	}
	return true, nil
}

// ownHead reports whether the word at the start of the text started there.
func (r *wordReader) ownHead() (bool, error) {
	before := min(r.begin, contextBytes)
	text, err := r.s.reader.Append(r.s.edge[:0], r.blob, r.begin-before, before)
	r.s.edge = text
	if err != nil {
		return false, err
	}
	own := ngram.ExtendedStart(text, len(text)) == len(text)
	if own {
		r.head = 0
	}
	return own, nil
}
