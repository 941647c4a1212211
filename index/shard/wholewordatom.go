package shard

import (
	"slices"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// wholeWordAtom finds a literal in the documents that have it as a whole word; others match only by their path.
// A document that matches has all its ranges.
type wholeWordAtom struct {
	s       *search
	words   *wholeWords
	tallies []tally  // of the spellings
	opaque  []uint32 // blobs with opaque superblocks, ascending
	// What is known of the last blob: its matches, or with atLeast only those that score.
	blob    uint32
	valid   bool
	atLeast bool
	counts  rank.Counts
}

// wholeWordAtom makes the atom of s.wholeWords ready.
func (s *search) wholeWordAtom() (*wholeWordAtom, error) {
	opaque, err := s.opaqueBlobs()
	if err != nil {
		return nil, err
	}
	tallies, err := s.tallies(s.wholeWords.words, false)
	s.wholeWords.atom = &wholeWordAtom{s: s, words: s.wholeWords, tallies: tallies, opaque: opaque}
	return s.wholeWords.atom, err
}

// opaqueBlobs returns the blobs with opaque superblocks, ascending.
func (s *search) opaqueBlobs() (blobs []uint32, err error) {
	opaque, err := s.words.Opaque()
	if err != nil {
		return nil, err
	}
	starts, err := s.content.SuperblockStarts()
	if err != nil {
		return nil, err
	}
	cursor := blobOfSuperblocks{starts: starts}
	for i, it := 0, opaque.From(0); i < opaque.Len(); i++ {
		superblock, _ := it.Next()
		blob := cursor.of(uint32(superblock))
		if blob < 0 {
			return nil, s.corrupt("a superblock belongs to no blob")
		}
		if n := len(blobs); n == 0 || blobs[n-1] != uint32(blob) {
			blobs = append(blobs, uint32(blob))
		}
	}
	return blobs, nil
}

// plan does not narrow down candidates: scanWholeWords finds them.
func (a *wholeWordAtom) plan() (plan, error) {
	return plan{blobs: everyBlob(a.s.content.Blobs()), estimate: uint64(len(a.tallies)), counted: true}, nil
}

func (a *wholeWordAtom) cost() uint64 { return costContent }

// wholeIn says how often a content has whole words, outside of opaque superblocks.
type wholeIn struct {
	whole  uint32
	length int // in superblocks
	opaque bool
}

// in adds up the tallies of a blob.
func (a *wholeWordAtom) in(blob uint32) (in wholeIn, err error) {
	first, bytes, err := a.s.content.Span(blob)
	in.length = units(bytes)
	at, _ := slices.BinarySearchFunc(a.tallies, first, func(t tally, first uint32) int { return int(t.superblock) - int(first) })
	for ; at < len(a.tallies) && int(a.tallies[at].superblock) < int(first)+in.length; at++ {
		in.whole += a.tallies[at].matches.whole()
	}
	in.opaque = holds(a.opaque, blob)
	return in, err
}

// most returns the highest score that the content may have, with parts of words in addition to the whole ones.
func (in *wholeIn) most() float64 {
	whole := min(in.whole, rank.Enough)
	if in.opaque {
		whole = rank.Enough
	}
	return wholeCeilings[min(in.length, rank.CountedUnits)][whole]
}

// wholeCeilings are the highest scores by the length of the content and its number of whole words.
var wholeCeilings = func() (most [rank.CountedUnits + 1][rank.Enough + 1]float64) {
	for length := range most {
		for whole := range most[length] {
			most[length][whole] = max(rank.Content(rank.Word, whole, length), rank.Content(rank.Partial, rank.Enough, length))
		}
	}
	return most
}()

// most returns the highest score that a document with this content can have for it, with definitions.
func (a *wholeWordAtom) most(blob uint32) (float64, error) {
	in, err := a.in(blob)
	most := in.most()
	if a.s.mayDefine(blob) {
		most += rank.Defined(a.s.terms)
	}
	return most, err
}

// matches excludes documents that have the literal only in parts of words, or not at all.
func (a *wholeWordAtom) matches(d *document) (bool, error) {
	in, err := a.in(d.blob)
	if err != nil || in.whole > 0 || !in.opaque {
		return in.whole > 0, err
	}
	err = a.look(d.blob)
	return a.counts.All() > 0, err
}

// gather counts the matches of a document.
func (a *wholeWordAtom) gather(d *document, g *gathered) (rank.Counts, error) {
	if err := a.look(d.blob); err != nil || a.counts.All() == 0 {
		return rank.Counts{}, err
	}
	g.more += a.counts.All()
	g.inWords = append(g.inWords, inWords{matching: a.words.literal, opaque: true})
	g.atLeast = g.atLeast || a.atLeast
	return a.counts, nil
}

// look counts the matches in a blob: only whole words if no others can score more, otherwise all matches in its
// text.
func (a *wholeWordAtom) look(blob uint32) error {
	if a.valid && a.blob == blob {
		return nil
	}
	a.valid = false
	if err := a.words.spend(a.s, wholeWordWork); err != nil {
		return err
	}
	in, err := a.in(blob)
	if err != nil {
		return err
	}
	if !in.opaque && rank.Content(rank.Word, int(in.whole), in.length) == in.most() {
		a.counts, a.atLeast = rank.Counts{rank.Inside: in.whole, rank.Partial: in.whole, rank.Word: in.whole}, true
	} else {
		err = a.read(blob, &in)
	}
	a.blob, a.valid = blob, err == nil
	return err
}

// wholeWordWork is the work of looking at a document without reading it, in bytes of content.
const wholeWordWork = 256

// partRead is how much of a content is read before it is known whether more is needed.
const partRead = 16 << 10

// read counts the matches in the text of a blob, up to where more make no difference. The whole words are known
// already, except in opaque superblocks.
func (a *wholeWordAtom) read(blob uint32, in *wholeIn) error {
	s := a.s
	a.counts, a.atLeast = rank.Counts{}, false
	length, err := s.content.Len(blob)
	if err != nil {
		return err
	}
	for at, text := 0, s.buf[:0]; at < int(length); {
		if a.counts[rank.Word] >= rank.Enough || !in.opaque && a.counts[rank.Partial] >= rank.Enough {
			a.atLeast, a.counts[rank.Word] = true, max(a.counts[rank.Word], in.whole)
			return nil
		}
		part := min(partRead, length-uint32(len(text)))
		if err := a.words.spend(s, part); err != nil {
			return err
		}
		text, err = s.read(text, blob, uint32(len(text)), part)
		s.buf = text
		if err != nil {
			return err
		}
		limit := len(text)
		if limit < int(length) { // a match within the last word may be cut
			limit = ngram.ExtendedStart(text, limit)
		}
		for start, end := range regex.RangesWhile(a.words.literal.matcher, text[:limit], at, s.goOn) {
			a.counts.Add(rank.Of(text, start, end))
		}
		if at = limit; s.ended != nil {
			return s.ended
		}
	}
	return nil
}
