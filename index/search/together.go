package search

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
)

// Words of the query that stand together in a line raise the score of a document. The text of a superblock decides whether they do,
// and postings show where they may before it is read. So documents get a bound, and text is read only for those whose bound may put
// them among the best, the highest bound first: see queue.

// together knows where the words of the query may stand in one line.
type together struct {
	line  *rank.Line
	terms int
	// places are superblocks that have all words, and sequence says for each whether the words may follow each other there.
	places   []uint32
	sequence []bool
	// blobs[i] has places[firsts[i]:firsts[i+1]]. best[i] says how its words stand together: a bound until read[i] is set.
	blobs  []uint32
	firsts []int
	best   []rank.Together
	read   []bool
	at     int // in blobs: the last one found, or the next one
}

// prepareTogether finds the superblocks that may have all words of the query in a line.
// Opaque superblocks do not count, since their words are not all known.
func (s *search) prepareTogether() (err error) {
	t := &s.together
	t.line, t.terms = s.query.line, s.query.terms
	if t.line == nil || s.opts.MaxFiles == 0 {
		return nil
	}
	var hits []*wordHits // of the words that were looked up
	for _, b := range s.query.bare {
		if known := s.knownOf(s.query.texts[b]).hits; known != nil {
			hits = append(hits, known)
		}
	}
	slices.SortFunc(hits, func(a, b *wordHits) int { return len(a.tallies) - len(b.tallies) })
	if len(hits) > 0 {
		t.places, err = s.commonPlaces(hits)
	} else {
		t.places, err = s.placesRead()
	}
	if len(t.places) == 0 || err != nil {
		return err
	}
	if err := s.markSequences(); err != nil {
		return err
	}
	return s.placesByBlob()
}

// markSequences marks the places where the words may follow each other: those with the n-grams across the spaces.
func (s *search) markSequences() error {
	t := &s.together
	t.sequence = make([]bool, len(t.places))
	typed, ok := t.line.Typed()
	if !ok {
		return nil
	}
	windows := slices.DeleteFunc(ngram.LiteralWindows(typed.Text, typed.CaseSensitive), func(w ngram.Window) bool { return w.OfWords })
	found, narrow, err := s.ngramPlaces(s.shardText, windows)
	if err != nil {
		return err
	}
	for i, superblock := range t.places {
		if err := s.tick(); err != nil {
			return err
		}
		t.sequence[i] = !narrow
		if narrow {
			_, _, t.sequence[i] = found.SeekUpTo(superblock, superblock)
		}
	}
	return nil
}

// commonPlaces returns the superblocks, except opaque ones, in which all hits have matches.
func (s *search) commonPlaces(hits []*wordHits) (places []uint32, err error) {
	opaque, err := s.words.Opaque()
	if err != nil {
		return nil, err
	}
	at := make([]int, len(hits))
	for superblock, agreed, i := uint32(0), 0, 0; ; i = (i + 1) % len(hits) {
		tallies := hits[i].tallies
		if at[i] = seek(tallies, at[i], superblock, (*tally).number); at[i] == len(tallies) {
			return places, nil
		}
		if found := tallies[at[i]].superblock; found > superblock {
			superblock, agreed = found, 0
		}
		if agreed++; agreed < len(hits) {
			continue
		}
		if _, hidden := opaque.Find(uint64(superblock)); !hidden {
			places = append(places, superblock)
		}
		superblock, agreed = superblock+1, 0
	}
}

// placesRead returns all superblocks, except opaque ones, of the few contents that are read because no word was looked up.
func (s *search) placesRead() (places []uint32, err error) {
	i := slices.IndexFunc(s.query.bare, func(b *query.Substring) bool { return s.knownOf(s.query.texts[b]).read != nil })
	if i < 0 { // paths have excluded all documents
		return nil, nil
	}
	opaque, err := s.words.Opaque()
	if err != nil {
		return nil, err
	}
	read := s.knownOf(s.query.texts[s.query.bare[i]]).read
	if err := read.findSuperblocks(s); err != nil {
		return nil, err
	}
	for i, word := range read.bits {
		for ; word != 0; word &= word - 1 {
			superblock := i*64 + bits.TrailingZeros64(word)
			if _, hidden := opaque.Find(uint64(superblock)); !hidden {
				places = append(places, uint32(superblock))
			}
		}
	}
	return places, nil
}

// placesByBlob finds the blobs of the places.
func (s *search) placesByBlob() error {
	starts, err := s.content.SuperblockStarts()
	if err != nil {
		return err
	}
	t, cursor := &s.together, blobOfSuperblocks{starts: starts}
	for i, superblock := range t.places {
		blob := cursor.of(superblock)
		if blob < 0 {
			return s.shard.Corruptf("a superblock belongs to no blob")
		}
		n := len(t.blobs)
		if n == 0 || t.blobs[n-1] != uint32(blob) {
			t.blobs, t.firsts, t.best, n = append(t.blobs, uint32(blob)), append(t.firsts, i), append(t.best, rank.OneLine), n+1
		}
		if t.sequence[i] {
			t.best[n-1] = rank.InSequence
		}
	}
	t.firsts, t.read = append(t.firsts, len(t.places)), make([]bool, len(t.blobs))
	return nil
}

// find reports whether a blob has places, and sets t.at to its index. It is fast if callers pass ascending blobs.
func (t *together) find(blob uint32) bool {
	t.at = seekAgain(t.blobs, t.at, blob, func(b *uint32) uint32 { return *b })
	return t.at < len(t.blobs) && t.blobs[t.at] == blob
}

// atBest returns how the words stand together in a blob, at best if its text has not been read.
func (t *together) atBest(blob uint32) rank.Together {
	if t.find(blob) {
		return t.best[t.at]
	}
	return rank.Scattered
}

// mostIn returns the most that this adds to the score of a document.
func (t *together) mostIn(blob uint32) float64 { return rank.TogetherScore(t.atBest(blob), t.terms) }

// known reports whether it is certain how the words stand together in a blob.
func (t *together) known(blob uint32) bool {
	return !t.find(blob) || t.read[t.at]
}

// readTogether reads how the words stand together in a blob. It first reads the places where they may follow each other. It reads the
// others only until the words stand in one line.
func (s *search) readTogether(blob uint32) (err error) {
	t := &s.together
	if t.known(blob) {
		return nil
	}
	first, err := s.content.FirstSuperblock(blob)
	if err != nil {
		return err
	}
	found := rank.Scattered
	for _, best := range []rank.Together{rank.InSequence, rank.OneLine} {
		for i := t.firsts[t.at]; i < t.firsts[t.at+1] && found < best; i++ {
			if t.sequence[i] != (best == rank.InSequence) {
				continue
			}
			from := (t.places[i] - first) * docstore.SuperblockSize
			part := s.text.part(blob, from, docstore.SuperblockSize)
			if part == nil {
				s.buf, err = s.reader.Append(s.buf[:0], blob, from, docstore.SuperblockSize)
				part = s.buf
			}
			found = max(found, t.line.In(part, from == 0))
			if err := cmp.Or(err, s.tick()); err != nil {
				return err
			}
		}
	}
	t.best[t.at], t.read[t.at] = found, true
	return nil
}
