package shard

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
)

// A search of a shard that is in a bucket reads parts of it, and each read takes a round trip. So a
// search announces what it is about to read, and all of it is loaded at the same time. Announcing
// costs nothing in a local shard; see format.Announcer.

// headBytes is the most that opening a shard reads of the start of a section.
const headBytes = 32

// announceHeads announces what open reads.
func announceHeads(f *format.File) {
	for _, tag := range []format.Tag{
		format.TagDocsInfo, format.TagContentInfo, format.TagWordInfo, format.TagNames, format.TagUnits,
		format.TagNgrams, format.TagNameNgrams, format.TagLexiconNgrams, format.TagWordTable, format.TagDefinitions,
	} {
		if section, ok := f.Section(tag); ok {
			section.Soon(0, headBytes)
		}
	}
}

// announceTables announces the tables into which nearly every search of contents looks.
func (s *search) announceTables(q *Query) {
	if !q.inContent || !s.content.Announces() {
		return
	}
	s.content.Announce()
	s.shardText.Announce()
	if s.words != nil {
		s.words.Announce()
	}
}

// listsAhead is about how many lists are announced. Of more, which are in nearly every part of the
// section, some are announced for all.
const listsAhead = 512

// announceLists announces that the lists of words will be read.
func (s *search) announceLists(found []wordMatch) error {
	return s.words.AnnounceLists(func(yield func(uint32) bool) {
		for i := 0; i < len(found); i += 1 + len(found)/listsAhead {
			if !yield(found[i].word) {
				return
			}
		}
	})
}

// announceShown announces the text of the matches that will be shown.
func (s *search) announceShown(hits []Hit) error {
	if !s.content.Announces() {
		return nil
	}
	var superblocks []uint32
	for i := range hits {
		h := &hits[i].hit
		first, length, err := s.content.Span(h.blob)
		if err != nil {
			return err
		}
		if h.onPath {
			continue
		}
		before := len(superblocks)
		for _, sp := range h.spans {
			superblocks = append(superblocks, first+sp.start/docstore.SuperblockSize)
		}
		for j := range h.inWords {
			for _, t := range upTo(s.opts.MaxMatchesPerFile, h.inWords[j].of(first+uint32(units(length)))) {
				superblocks = append(superblocks, t.superblock)
			}
		}
		if len(superblocks) == before { // its text is read from the start
			superblocks = appendFirst(superblocks, first, length)
		}
	}
	slices.Sort(superblocks)
	return s.content.AnnounceSuperblocks(slices.Values(slices.Compact(superblocks)))
}

// startSuperblocks is how many superblocks of a content are announced that is read from its start until it has
// enough matches.
const startSuperblocks = partRead / docstore.SuperblockSize

// appendFirst appends the first superblocks of a content.
func appendFirst(superblocks []uint32, first, length uint32) []uint32 {
	for i := range uint32(min(startSuperblocks, units(length))) {
		superblocks = append(superblocks, first+i)
	}
	return superblocks
}

// announceFirst announces the starts of contents, which ascend.
func (s *search) announceFirst(blobs []uint32) error {
	if !s.content.Announces() {
		return nil
	}
	var superblocks []uint32
	for _, blob := range blobs[:min(len(blobs), placesAhead)] {
		first, length, err := s.content.Span(blob)
		if err != nil {
			return err
		}
		superblocks = appendFirst(superblocks, first, length)
	}
	return s.content.AnnounceSuperblocks(slices.Values(superblocks))
}

// announceQueue announces the places where the words of the query may stand together, in the first
// documents of the queue.
func (s *search) announceQueue() error {
	t := &s.together
	if !s.content.Announces() || len(t.blobs) == 0 {
		return nil
	}
	var places []uint32
	for i := range s.queue[:min(len(s.queue), placesAhead)] {
		c := &s.queue[i]
		blob := c.number
		if c.hit != nil {
			blob = c.hit.blob
		}
		if t.find(blob) && !t.read[t.at] {
			places = append(places, t.places[t.firsts[t.at]:t.firsts[t.at+1]]...)
		}
	}
	slices.Sort(places)
	return s.content.AnnounceSuperblocks(slices.Values(places))
}

// announceRuns announces the opaque superblocks that will be read.
func (s *search) announceRuns(runs []opaqueRun) error {
	return s.content.AnnounceSuperblocks(func(yield func(uint32) bool) {
		for _, run := range runs {
			for at := run.from; at < run.to; at++ {
				if !yield(at) {
					return
				}
			}
		}
	})
}

// placesAhead is how many places of a literal are announced before the search gets there.
const placesAhead = 64

// announceAhead announces the text of the next places.
func (p *wordPlaces) announceAhead(c *docstore.Content) error {
	from, to := max(p.at, p.announced), min(p.at+placesAhead, len(p.tallies))
	if !c.Announces() || from >= to || p.announced > p.at+placesAhead/2 {
		return nil
	}
	next := p.tallies[from:to]
	p.announced = to
	return c.AnnounceSuperblocks(func(yield func(uint32) bool) {
		for i := range next {
			if !yield(next[i].superblock) {
				return
			}
		}
	})
}

// blobsAhead are ascending blobs whose whole text will be read.
type blobsAhead struct {
	blobs     []uint32
	announced int // of blobs
}

// announce announces the blobs that follow the given one.
func (b *blobsAhead) announce(s *search, blob uint32) error {
	at, _ := slices.BinarySearch(b.blobs, blob)
	from, to := max(at, b.announced), min(at+placesAhead, len(b.blobs))
	if !s.content.Announces() || from >= to || b.announced > at+placesAhead/2 {
		return nil
	}
	b.announced = to
	var superblocks []uint32
	for _, blob := range b.blobs[from:to] {
		first, length, err := s.content.Span(blob)
		if err != nil {
			return err
		}
		for i := range uint32(units(length)) {
			superblocks = append(superblocks, first+i)
		}
	}
	return s.content.AnnounceSuperblocks(slices.Values(superblocks))
}

// announce announces the text of all windows of the blob.
func (w *windows) announce(first uint32) error {
	return w.s.content.AnnounceSuperblocks(func(yield func(uint32) bool) {
		for _, window := range w.all {
			for at := window.lo / docstore.SuperblockSize; at*docstore.SuperblockSize < window.hi; at++ {
				if !yield(first + uint32(at)) {
					return
				}
			}
		}
	})
}
