package search

import (
	"cmp"
	"strings"

	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// wordHits are the blobs with matches of an expression that matches within words. A search finds
// them once and does not change them.
type wordHits struct {
	words   []wordMatch
	tallies []tally
	blobs   []blobTally
}

// knownWords is what the index of words and the paths know of an atom. Helpers begin with a copy.
type knownWords struct {
	candidates *candidateWords
	hits       *wordHits
	read       *among // read instead of being looked up
	names      *nameHits
	defining   []uint32 // blobs with a symbol that may match
	name       *nameIn
}

// knownOf returns what is known of an atom. Callers add to it.
func (s *search) knownOf(m *matching) *knownWords {
	known := s.known[m]
	if known == nil {
		known = new(knownWords)
		s.known[m] = known
	}
	return known
}

// candidateWords are the blocks of the lexicon with words in which an expression may match.
type candidateWords struct {
	blocks []uint32
	n      int // number of blocks, or of those that take as long as the words
	// words has instead all words in which the expression matches, or parts of words in their place; nil if they are to be found in the blocks.
	words []wordMatch
}

// candidateWords returns the blocks for an expression.
func (s *search) candidateWords(m *matching) (*candidateWords, error) {
	known := s.knownOf(m)
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
		if c.blocks, err = s.lexiconBlocks(m.needs); err != nil {
			return nil, err
		}
		c.n = len(c.blocks)
	}
	known.candidates = c
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
	return s.matchBlocks(m.inWords, candidates.blocks)
}

// partOf returns the spellings of a text, and the lists of the part of words that it is, with the number of their postings; nil if the shard
// lists no such part.
func (s *search) partOf(m *matching) (words []wordMatch, postings int, err error) {
	part, ok, err := s.listedPart(m)
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

// listedPart returns the part of words that a text is, if the shard lists it.
func (s *search) listedPart(m *matching) (part inverted.Part, ok bool, err error) {
	if len(m.literals) != 1 || m.literals[0].CaseSensitive {
		return part, false, nil
	}
	text, ok := wordText(m.literals[0])
	if !ok {
		return part, false, nil
	}
	return s.words.Part(strings.ToLower(text))
}

// wordHits returns the hits of an expression, only those in the blobs that can match.
func (s *search) wordHits(m *matching) (*wordHits, error) {
	known := s.knownOf(m)
	if known.hits != nil {
		return known.hits, nil
	}
	h := &wordHits{}
	var err error
	if h.words, err = s.matchingWords(m); err != nil {
		return nil, err
	}
	if h.tallies, err = s.tallies(h.words, allCounts, s.among); err != nil {
		return nil, err
	}
	opaque, err := s.opaqueTallies(m)
	if err != nil {
		return nil, err
	}
	h.tallies = mergeTallies(h.tallies, opaque)
	if h.blobs, err = s.byBlob(h.tallies, m.rate); err != nil {
		return nil, err
	}
	known.hits = h
	return h, nil
}

// readRather reports whether reading the blobs that can match takes less than finding the words in
// which an expression matches.
func (s *search) readRather(m *matching) (bool, error) {
	if s.among == nil || s.among.blobs.count() > mostRead {
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

// mostRead is the most blobs that are read instead of looking words up.
const mostRead = 64

// among has the only blobs that can match, whatever else is found.
type among struct {
	docs  runs // nil if only blobs are known
	blobs runs
	// found has the superblocks of the blobs, and bits one for each superblock of the shard: whether it is one of those. Both are nil until needed.
	found runs
	bits  []uint64
}

// restrict has the texts that are prepared next looked up in no other blobs, nor, unless docs is nil, in other documents.
func (s *search) restrict(docs, blobs runs) {
	if outer := s.among; outer != nil {
		blobs = blobs.and(outer.blobs)
		if docs == nil {
			docs = outer.docs
		} else if outer.docs != nil {
			docs = docs.and(outer.docs)
		}
	}
	s.among = &among{docs: docs, blobs: blobs}
}

// superblocks returns those of the blobs. Callers must not change them.
func (w *among) superblocks(s *search) (runs, error) {
	if w.found != nil {
		return w.found, nil
	}
	found := make(runs, 0, len(w.blobs))
	for _, run := range w.blobs {
		first, err := s.content.FirstSuperblock(run.From)
		end, err2 := s.content.FirstSuperblock(run.To)
		if err := cmp.Or(err, err2, s.tick()); err != nil {
			return nil, err
		}
		if first < end { // not those of empty blobs
			found = found.add(first, end)
		}
	}
	w.found = found
	return found, nil
}

// findSuperblocks finds the bits.
func (w *among) findSuperblocks(s *search) error {
	if w.bits != nil {
		return nil
	}
	found, err := w.superblocks(s)
	if err != nil {
		return err
	}
	w.bits = make([]uint64, s.content.Superblocks()/64+1)
	for _, run := range found {
		for superblock := run.From; superblock < run.To; superblock++ {
			w.bits[superblock/64] |= 1 << (superblock % 64)
		}
	}
	return nil
}

// has reports whether a superblock is of the blobs. Callers have found the bits.
func (w *among) has(superblock uint32) bool { return w.bits[superblock/64]>>(superblock%64)&1 == 1 }

// mostAmong is the most blobs to which the lookup of words is restricted.
const mostAmong = 1 << 14

// spelled is the words [from, to) that equal a literal without case.
type spelled struct{ from, to uint32 }

// spelledAs returns the words that equal a literal, whose word bytes are text.
func (s *search) spelledAs(literal regex.Literal, text string) (in spelled, err error) {
	in, known := s.spelled[literal]
	if known {
		return in, nil
	}
	if in.from, in.to, err = s.words.Spellings(text, &s.lexicon); err != nil {
		return in, err
	}
	if s.spelled == nil {
		s.spelled = map[regex.Literal]spelled{}
	}
	s.spelled[literal] = in
	return in, nil
}

// spellings returns the spellings of a literal and their lists; nil if no word has such bytes.
func (s *search) spellings(literal regex.Literal) (words []wordMatch, lists []inverted.List, err error) {
	text, ok := wordText(literal)
	if !ok {
		return nil, nil, nil
	}
	in, err := s.spelledAs(literal, text)
	if err != nil {
		return nil, nil, err
	}
	words = make([]wordMatch, 0, in.to-in.from)
	for word := in.from; word < in.to; word++ {
		if literal.CaseSensitive {
			if err := s.words.Block(word/blockWords, &s.lexicon); err != nil {
				return nil, nil, err
			}
			if string(s.lexicon.Word(int(word%blockWords))) != text {
				continue
			}
		}
		list, err := s.words.List(word)
		if err != nil {
			return nil, nil, err
		}
		words, lists = append(words, wordMatch{word, oneOf(rank.Word)}), append(lists, list)
	}
	s.stats.ListsRead += uint64(len(lists))
	return words, lists, nil
}
