package shard

import (
	"cmp"
	"errors"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// A document whose path also matches two or more of the words scores extra: for the path, for a name that the words make up, and for words
// that stand in one line. Posting lists know paths and names, and the contents with such extra points mostly are the best, so they are read
// first. The lowest score among the best of them then narrows the search. Every other content may still have all words in one line.

// For each file that is wanted, up to readFirst contents are read first, in probes of a third of a content per file.
const (
	readFirst = 3
	probes    = 3
)

// rareBare is the number of superblocks with a word, for each file that is wanted, from which on its contents are read first.
const rareBare = 4

// bareBlocks is the least number of lexicon blocks with the words for which contents are read first. In fewer blocks, looking up all words
// that hold one takes little (decision 48 has the measurement).
const bareBlocks = 1500

// amongBareWords is amongContenders where some of the words may be in a path.
func (s *search) amongBareWords(q *Query, words []contender) (done bool, err error) {
	c, err := s.contestOfBareWords(q, words)
	if c == nil || err != nil {
		return false, err
	}
	s.narrowed = &contenders{among: among{read: true}}
	done, err = s.readBareWords(q, c)
	if done && err == nil || err != nil && !errors.Is(err, errOverBudget) {
		return done, err
	}
	for m, known := range s.known {
		known.read = nil
		s.known[m] = known
	}
	s.narrowed, s.together = nil, together{}
	s.startOver(q)
	return false, nil
}

// contestOfBareWords adds the contents with all words as whole words. It returns nil if few words of the lexicon hold one of them, if a
// word is in few contents, or if few contents hold all words: then looking up all words takes little, or other contents are among the best.
func (s *search) contestOfBareWords(q *Query, words []contender) (*contest, error) {
	c := &contest{s: s, words: words, defined: rank.Defined(q.terms)}
	if q.line != nil {
		c.line = rank.TogetherScore(rank.OneLine, q.terms)
	}
	c.others = partOfWord*float64(len(words)) + c.line
	if floor := s.opts.Floor; floor != nil {
		c.least = floor.Score - s.mostOfRepo
	}
	blocks := 0
	for i := range words {
		candidates, err := s.candidateWords(words[i].matching)
		if err != nil {
			return nil, err
		}
		blocks += candidates.n
	}
	if blocks < bareBlocks && !s.opts.smallLexicons {
		return nil, nil
	}
	if worth, err := s.openContenders(words, uint64(s.opts.MaxFiles)*rareBare); !worth || err != nil {
		return nil, err
	}
	s.asksForLow = q.asksForLow
	if err := c.prepare(); err != nil {
		return nil, err
	}
	if err := c.addAllWhole(); err != nil || c.least <= c.others && len(c.found) < s.opts.MaxFiles {
		return nil, err
	}
	return c, nil
}

// readBareWords reads the contents that may be among the best. It returns false if there are too many.
func (s *search) readBareWords(q *Query, c *contest) (done bool, err error) {
	if err := s.beginHits(q); err != nil {
		return false, err
	}
	if ok, err := c.findBonuses(); !ok || err != nil {
		return false, err
	}
	defer s.explain.scanning()()
	reach := s.narrowed
	reach.budget = c.budget + s.reader.BytesDecoded
	c.found = slices.DeleteFunc(c.found, func(f boundedBlob) bool { return c.bonusOf(f.blob) > 0 })
	if err := c.addWithBonus(); err != nil {
		return false, err
	}
	if err := c.push(reach); err != nil {
		return false, err
	}
	if enough, err := c.readFirst(reach); !enough || err != nil {
		return false, err
	}
	if few, err := c.addPartial(c.longest(1)); !few || err != nil {
		return false, err
	}
	if err := c.narrowTo(reach); err != nil {
		return false, err
	}
	return true, s.scanContenders()
}

// readFirst reads the contents with the highest bounds. It reports whether all of the best certainly score more than contents with none of
// the words as a whole word.
func (c *contest) readFirst(reach *contenders) (enough bool, err error) {
	s := c.s
	probe := (s.opts.MaxFiles + probes - 1) / probes
	for read := 0; read < readFirst*probes*probe; read += probe {
		above := 0
		for i := range s.best.hits {
			if s.best.hits[i].score-s.mostOfRepo > c.others {
				above++
			}
		}
		if c.least <= c.others && (above*3 < read-probe || len(reach.order) < s.opts.MaxFiles-above) {
			return false, nil
		}
		if err := s.readContenders(probe); err != nil {
			return false, err
		}
		if s.best.full() {
			c.least = max(c.least, s.best.hits[0].score-s.mostOfRepo)
		}
	}
	return c.least > c.others, nil
}

// findBonuses finds the contents that score points for more than their words. It returns false if any path may match.
func (c *contest) findBonuses() (ok bool, err error) {
	s := c.s
	if c.bonuses, ok, err = s.bonusesOfPaths(); !ok || err != nil {
		return false, err
	}
	for i, blob := range s.compound.blobs {
		if i > 0 && s.compound.blobs[i-1] == blob {
			continue
		}
		defined := slices.ContainsFunc(s.compound.names, func(n nameIn) bool { return n.mayDefine(blob) })
		c.bonuses = append(c.bonuses, boundedBlob{rank.CompoundScore(s.terms, defined), blob})
	}
	slices.SortFunc(c.bonuses, func(a, b boundedBlob) int { return cmp.Compare(a.blob, b.blob) })
	kept := c.bonuses[:0]
	for _, b := range c.bonuses {
		if last := len(kept) - 1; last >= 0 && kept[last].blob == b.blob {
			kept[last].bound += b.bound
		} else {
			kept = append(kept, b)
		}
	}
	c.bonuses = kept
	return true, nil
}

// bonusesOfPaths returns the contents of the documents whose paths match, with the most points that a path adds to their scores. It returns
// false if any path may match.
func (s *search) bonusesOfPaths() (found []boundedBlob, ok bool, err error) {
	points := make([]uint16, s.docs.Len())
	for _, a := range s.nameAtoms {
		if !a.candidates.narrow {
			return nil, false, nil
		}
		if _, err := a.enumerate(anyCost); err != nil {
			return nil, false, err
		}
		places := a.hits.places
		for _, run := range a.hits.docs {
			for doc := run.From; doc < run.To; doc, places = doc+1, places[1:] {
				points[doc] += uint16(places[0].name.Score())
				if places[0].name > rank.Directory {
					points[doc] |= inBase
				}
			}
		}
	}
	var docs []uint32
	for doc, p := range points {
		if p > 0 {
			docs = append(docs, uint32(doc))
		}
	}
	blobs, err := s.docs.AppendBlobs(nil, docs)
	if err != nil {
		return nil, false, err
	}
	for i, doc := range docs {
		most := float64(points[doc])
		if points[doc]&inBase > 0 {
			s.doc.reset(doc, blobs[i], 0)
			path, err := s.doc.loadPath()
			if err := cmp.Or(err, s.tick()); err != nil {
				return nil, false, err
			}
			names, spelling := s.scoreOfPath(path)
			most = rank.Total(0, names, spelling, spelling, false) // as if there were no other words, which gives the most
		}
		found = append(found, boundedBlob{most, blobs[i]})
	}
	return found, true, nil
}

// scoreOfPath returns the sum of the scores of each text's best place in a path, and how many texts spell the file's name.
func (s *search) scoreOfPath(path []byte) (names float64, spelling int) {
	ranges := s.overlap[:0]
	for _, a := range s.nameAtoms {
		best := rank.NoName
		for start, end := range regex.Ranges(a.matcher, path) {
			best = max(best, rank.OfName(path, start, end))
			ranges = append(ranges, span{uint32(start), uint32(end)})
		}
		if names += a.loose.Weigh(best.Score()); best > rank.Directory {
			spelling++
		}
	}
	if s.overlap = ranges; s.loose || !spells(path, ranges) {
		spelling = 0
	}
	return names, spelling
}

// inBase marks points for a match in the base name.
const inBase = 1 << 15

// addWithBonus adds the contents that score points for more than their words.
func (c *contest) addWithBonus() error {
	c.rewind()
	for _, b := range c.bonuses {
		first, length, err := c.s.content.Span(b.blob)
		if err := cmp.Or(err, c.s.tick()); err != nil {
			return err
		}
		in := c.in(first, first+(length+docstore.SuperblockSize-1)/docstore.SuperblockSize)
		if b.bound += in.most + c.line; c.mayBeBest(b.bound) {
			c.found = append(c.found, b)
		}
	}
	return nil
}

// bonusOf returns how many points a content has for more than its words and a line.
func (c *contest) bonusOf(blob uint32) float64 {
	i, ok := slices.BinarySearchFunc(c.bonuses, blob, func(b boundedBlob, blob uint32) int { return cmp.Compare(b.blob, blob) })
	if !ok {
		return 0
	}
	return c.bonuses[i].bound
}
