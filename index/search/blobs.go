package search

import (
	"math"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/heap"
	"github.com/trawl-search/trawl/index/rank"
)

// blobs iterates over candidate blobs in ascending order. A candidate may turn out not to match, but every match is a candidate.
type blobs interface {
	// seek returns the first candidate at or after from. Callers pass ascending numbers.
	seek(from uint32) (blob uint32, ok bool, err error)
	// evidence returns what is known of the candidate that seek returned last, before a document is looked at.
	evidence() evidence
}

// evidence is what is known of a blob.
type evidence struct {
	// content is the most that the matches of the texts that are known score in the content; unknown counts the other texts.
	content float64
	unknown int
	// sure says that all documents of the blob match; single, that this holds only if there is one.
	sure, single bool
	// counted says that each document that matches has that many matches in its content.
	counted bool
	matches int
}

// both combines the evidence of two parts of a query, both of which must match.
func (e evidence) both(o evidence) evidence {
	return evidence{e.content + o.content, e.unknown + o.unknown, e.sure && o.sure, e.single || o.single, e.counted && o.counted, e.matches + o.matches}
}

// either combines the evidence of two parts of a query, one of which must match. It counts matches only if both parts match in the same
// documents of the blob.
func (e evidence) either(o evidence) evidence {
	joined := e.both(o)
	joined.sure, joined.single = e.sure || o.sure, !(e.sure && !e.single || o.sure && !o.single)
	joined.counted = joined.counted && e.sure && o.sure && e.single == o.single
	return joined
}

// everyBlob has all blobs as candidates, for a number of texts.
type everyBlob struct {
	blobs uint32
	texts int
}

func (n everyBlob) seek(from uint32) (uint32, bool, error) { return from, from < n.blobs, nil }
func (n everyBlob) evidence() evidence                     { return evidence{unknown: n.texts} }

// allOf has the common candidates of its parts, rarest first.
type allOf []blobs

func (a allOf) seek(from uint32) (uint32, bool, error) {
	agreed := 0
	for i := 0; agreed < len(a); i = (i + 1) % len(a) {
		b, ok, err := a[i].seek(from)
		if !ok || err != nil {
			return 0, false, err
		}
		if b > from {
			from, agreed = b, 0
		}
		agreed++
	}
	return from, true, nil
}

func (a allOf) evidence() evidence {
	e := a[0].evidence()
	for _, part := range a[1:] {
		e = e.both(part.evidence())
	}
	return e
}

// anyOf has the candidates of each of its parts. There may be a thousand, so they are a heap by their next candidates.
type anyOf struct {
	parts []partOf
	begun bool
	at    []int // for evidence
}

// partOf is a part of anyOf and the candidate that it has reached.
type partOf struct {
	blob uint32
	blobs
}

func comparePartsOf(a, b *partOf) int { return int(a.blob) - int(b.blob) }

func (a *anyOf) seek(from uint32) (uint32, bool, error) {
	if !a.begun {
		a.begun = true
		parts := a.parts
		a.parts = nil
		for _, p := range parts {
			var ok bool
			var err error
			if p.blob, ok, err = p.seek(from); err != nil {
				return 0, false, err
			}
			if ok {
				a.parts = heap.Push(a.parts, p, comparePartsOf)
			}
		}
	}
	for len(a.parts) > 0 && a.parts[0].blob < from {
		first := &a.parts[0]
		blob, ok, err := first.seek(from)
		if err != nil {
			return 0, false, err
		}
		if ok {
			first.blob = blob
			heap.Fix(a.parts, 0, comparePartsOf)
		} else {
			a.parts = heap.Pop(a.parts, comparePartsOf)
		}
	}
	if len(a.parts) == 0 {
		return 0, false, nil
	}
	return a.parts[0].blob, true, nil
}

// evidence joins that of the parts that have reached the candidate: they are next to each other at the top of the heap.
func (a *anyOf) evidence() evidence {
	e, blob := a.parts[0].evidence(), a.parts[0].blob
	for a.at = append(a.at[:0], 1, 2); len(a.at) > 0; {
		i := a.at[len(a.at)-1]
		if a.at = a.at[:len(a.at)-1]; i < len(a.parts) && a.parts[i].blob == blob {
			e = e.either(a.parts[i].evidence())
			a.at = append(a.at, 2*i+1, 2*i+2)
		}
	}
	return e
}

// withoutContent has the candidates of a part of a query whose ranges in the content do not count.
type withoutContent struct{ blobs }

func (w withoutContent) evidence() evidence {
	e := w.blobs.evidence()
	return evidence{sure: e.sure, single: e.single, counted: true}
}

// atomBlobs has the candidates of a text in the content or in the path.
type atomBlobs struct {
	in    [2]blobs // content and path
	at    [2]uint32
	some  [2]bool
	begun bool
}

func (a *atomBlobs) seek(from uint32) (best uint32, found bool, err error) {
	for i := range a.in {
		if !a.begun || a.some[i] && a.at[i] < from {
			if a.at[i], a.some[i], err = a.in[i].seek(from); err != nil {
				return 0, false, err
			}
		}
		if a.some[i] && (!found || a.at[i] < best) {
			best, found = a.at[i], true
		}
	}
	a.begun = true
	return best, found, nil
}

// evidence of a path says nothing of the content, where all matches are known.
func (a *atomBlobs) evidence() evidence {
	content, name := a.some[0], a.some[1]
	if content && name {
		content, name = a.at[0] <= a.at[1], a.at[1] <= a.at[0]
	}
	switch {
	case !name:
		return a.in[0].evidence()
	case !content:
		return a.in[1].evidence()
	}
	inContent, inName := a.in[0].evidence(), a.in[1].evidence()
	if !inContent.sure {
		inContent.sure, inContent.single = inName.sure, inName.single
	}
	return inContent
}

// textBlobs has the candidates of a text that is read to find its matches.
type textBlobs struct {
	blobs
	atom *contentAtom
	blob uint32
}

func (t *textBlobs) seek(from uint32) (_ uint32, ok bool, err error) {
	t.blob, ok, err = t.blobs.seek(from)
	return t.blob, ok, err
}

// evidence bounds what the matches score if all of them are at the places of one literal. Each match has a word of its own, and the places say
// how often that word is there. Otherwise only the length of the content bounds it.
func (t *textBlobs) evidence() evidence {
	a := t.atom
	if len(a.anchors) == 1 && a.s.opts.Mode == TopK {
		if first, end, err := a.s.superblocksOf(t.blob); err == nil { // reading the blob reports an error
			return evidence{content: rank.Content(rank.Word, a.anchors[0].mostIn(first, end), int(end-first))}
		}
	}
	return evidence{unknown: 1}
}

// literalBlobs has as candidates the blobs with a place of a literal.
type literalBlobs struct {
	*places
	s      *search
	maxLen int // the longest text in bytes that matches the literal
	at     int // index of the first tally that was not passed
}

func (l *literalBlobs) evidence() evidence { return evidence{} }

func (l *literalBlobs) seek(from uint32) (uint32, bool, error) {
	if from >= l.s.content.Blobs() {
		return 0, false, nil
	}
	first, err := l.s.content.FirstSuperblock(from)
	if err != nil {
		return 0, false, err
	}
	if l.at = seek(l.tallies, l.at, first, (*tally).number); l.at == len(l.tallies) {
		return 0, false, nil
	}
	blob, err := l.s.content.BlobOf(l.tallies[l.at].superblock)
	return blob, err == nil, err
}

// in returns the places in superblocks [first, end). It is fast if calls mostly ascend.
func (l *literalBlobs) in(first, end uint32) []tally {
	l.at = seekAgain(l.tallies, l.at, first, (*tally).number)
	n := l.at
	for n < len(l.tallies) && l.tallies[n].superblock < end {
		n++
	}
	return l.tallies[l.at:n]
}

// mostIn bounds how many matches start in superblocks [first, end), all of one blob, up to rank.Enough.
func (l *literalBlobs) mostIn(first, end uint32) (most int) {
	for _, t := range l.in(first, end) {
		if t.opaque || t.matches == 0 {
			return rank.Enough
		}
		most += t.matches.all()
	}
	return min(most, rank.Enough)
}

// blobOfSuperblocks finds the blobs of ascending superblocks.
type blobOfSuperblocks struct {
	starts     eliasfano.List
	it         eliasfano.Iterator
	blob       int
	first      uint64 // its first superblock
	next       uint64 // first superblock of the next blob
	begun, end bool
}

// of returns the blob of a superblock, -1 if it has none.
func (c *blobOfSuperblocks) of(superblock uint32) int {
	if c.begun {
		for range nearBlobs {
			if c.end || uint64(superblock) < c.next {
				return c.blob
			}
			c.blob++
			c.step()
		}
	}
	c.blob = c.starts.Last(uint64(superblock))
	if c.blob < 0 {
		return c.blob
	}
	c.it = c.starts.From(c.blob + 1)
	c.begun, c.next = true, c.starts.At(c.blob)
	c.step()
	return c.blob
}

// superblocks returns how many superblocks the blob found last has; all is the number in the shard.
func (c *blobOfSuperblocks) superblocks(all uint32) uint32 {
	if c.end {
		return all - uint32(c.first)
	}
	return uint32(c.next - c.first)
}

func (c *blobOfSuperblocks) step() {
	var ok bool
	c.first = c.next
	c.next, ok = c.it.Next()
	c.end = !ok
}

// sharedBlobs walks the blobs that have several documents.
type sharedBlobs struct {
	it   eliasfano.Iterator
	next uint64
	some bool
}

func newSharedBlobs(docs *docstore.Docs) (c sharedBlobs, err error) {
	list, err := docs.SharedBlobs()
	if err != nil {
		return c, err
	}
	c.it = list.From(0)
	c.next, c.some = c.it.Next()
	return c, nil
}

// documents returns how many documents a blob has. Callers pass ascending numbers.
func (c *sharedBlobs) documents(blob uint32) int {
	for c.some && c.next < uint64(blob) {
		c.next, c.some = c.it.Next()
	}
	n := 1
	for ; c.some && c.next == uint64(blob); n++ {
		c.next, c.some = c.it.Next()
	}
	return n
}

// superblocksOf returns the superblocks [first, end) of a blob.
func (s *search) superblocksOf(blob uint32) (first, end uint32, err error) {
	first, length, err := s.content.Span(blob)
	return first, first + uint32(units(length)), err
}

// allUnits stands for all superblocks of a blob.
const allUnits = math.MaxUint32

// units converts a length in bytes to the unit of scores.
func units(length uint32) int { return int((length + rank.LengthUnit - 1) / rank.LengthUnit) }

// A superblock is the unit of length in package rank.
var _ [rank.LengthUnit]struct{} = [docstore.SuperblockSize]struct{}{}
