package search

import (
	"math"
	"slices"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// A search for the best documents first looks up only the few spellings of the query's words. They say which contents have a word as a whole
// word, and how often. Every other content scores at most as if it had the words as parts of others. If enough documents score more, the
// thousands of words that hold one of the query's words are never looked up. If several words must match, the one that is the cheapest to look
// up leads: all words that hold it are looked up, and the others are asked for in its documents. Once the search has spent half of what all words
// take, it looks them up after all.

// mostSpellings is the most lists of one text that are added up.
const mostSpellings = 64

// chooseTier decides whether to look for whole words first.
func (s *search) chooseTier(q *Query) error {
	s.windows = q.windows
	leaves := wordsOf(q)
	if leaves == nil || s.opts.Mode != TopK || s.opts.MaxFiles == 0 {
		return nil
	}
	if err := s.prepareFloor(); err != nil {
		return err
	}
	if q.allMatch && len(leaves) > 1 {
		inSequence := q.line != nil && q.line.Best() == rank.InSequence                           // any content may have that, so bounds say little
		if and, ok := q.tree.(*query.And); inSequence || !ok || len(and.Children) > len(leaves) { // or other conditions may leave few documents
			return nil
		}
		return s.chooseLead(leaves)
	}
	partial := partialScores(leaves)
	partOfWords := slices.Max(partial[:]) + s.mostOfRepo
	if after := s.opts.After; after != nil && after.Score <= partOfWords {
		return nil
	}
	all, postings := 0, uint64(0)
	for _, m := range leaves {
		candidates, err := s.candidateWords(m)
		if err != nil {
			return err
		}
		all += candidates.n * costLexiconBlock
	}
	if all < leastTierCost && !s.opts.wholeFirst {
		return nil
	}
	for _, m := range leaves {
		df, ok, err := s.countSpellings(m)
		if err != nil || !ok {
			return err
		}
		postings += df
	}
	enough := s.opts.Floor != nil && s.opts.Floor.Score > partOfWords
	if !enough && postings < uint64(s.opts.MaxFiles) || postings*costPosting > uint64(all) && !s.opts.wholeFirst {
		return nil
	}
	s.partial, s.partOfWords = partial, partOfWords
	s.beginTier(all)
	return nil
}

// beginTier has the search look for whole words first. All is what looking up all words costs.
func (s *search) beginTier(all int) {
	s.tier, s.left = wholeWords, all/2
	s.seen = make([]uint64, s.content.Blobs()/64+1)
}

// chooseLead is chooseTier for words that must all match.
func (s *search) chooseLead(leaves []*matching) error {
	var lead *matching
	blocks := make(map[*matching]int)
	for _, m := range leaves {
		candidates, err := s.candidateWords(m)
		if err != nil {
			return err
		}
		if blocks[m] = candidates.n; lead == nil || candidates.n < blocks[lead] {
			lead = m
		}
	}
	others := slices.DeleteFunc(leaves, func(m *matching) bool { return m == lead })
	worth := func(all int) bool { return all >= leastLeadCost || s.opts.wholeFirst }
	all := 0
	for _, m := range others {
		all += blocks[m] * costLexiconBlock
	}
	if !worth(all) {
		return nil
	}
	hits, err := s.wordHits(lead)
	if err != nil {
		return err
	}
	all = 0
	for _, m := range others {
		_, ok, err := s.countSpellings(m)
		if err != nil || !ok {
			return err
		}
		all += min(blocks[m]*costLexiconBlock, len(hits.blobs)*costCandidateText)
	}
	if !worth(all) || len(hits.blobs) < 2*s.opts.MaxFiles && !s.opts.wholeFirst {
		return nil
	}
	s.lead, s.partial, s.partOfWords = lead, partialScores(others), math.Inf(-1)
	s.beginTier(all)
	return nil
}

// partialScores returns the most that a content of each length scores for all texts if it has them only as parts of words.
func partialScores(leaves []*matching) (scores [rank.CountedUnits + 1]float64) {
	for length := range scores {
		for _, m := range leaves {
			scores[length] += m.loose.Weigh(rank.Content(rank.Partial, rank.Enough, length))
		}
	}
	return scores
}

// wordsOf returns the texts of a query if all of them are words, and all of them or one of them must match. It returns nil for other queries.
func wordsOf(q *Query) (words []*matching) {
	parts := []query.Q{q.tree}
	switch tree := q.tree.(type) {
	case *query.And:
		parts = tree.Children
	case *query.Or:
		parts = tree.Children
	}
	for _, part := range parts {
		if m := q.texts[part]; m != nil && m.withinWords && m.literals != nil && m.inNames == nil && !m.outside && m.scope != query.FileName {
			words = append(words, m)
		} else if _, or := q.tree.(*query.Or); or || isText(part) {
			return nil
		}
	}
	return words
}

// countSpellings counts the postings of a text's spellings. It returns false if there are too many.
func (s *search) countSpellings(m *matching) (df uint64, ok bool, err error) {
	for _, literal := range m.literals {
		words, lists, err := s.spellings(literal, mostSpellings)
		if words == nil || err != nil {
			return 0, false, err
		}
		for i := range lists {
			df += uint64(lists[i].DF())
		}
	}
	return df, true, nil
}

// mayBeEnough reports whether the wanted number of documents may score more than those with only parts of words.
func (s *search) mayBeEnough() bool {
	if floor := s.opts.Floor; floor != nil && floor.Score > s.partOfWords || s.lead != nil {
		return true
	}
	wanted := s.opts.MaxFiles
	for i := range s.queue.waiting {
		if s.queue.waiting[i].bound > s.partOfWords {
			if wanted--; wanted <= 0 {
				return true
			}
		}
	}
	return false
}

// spend takes what it costs to look at a candidate among whole words. It returns errTierEnds if all words cost less, or if the candidate may
// not score more than documents without whole words.
func (s *search) spend(c *candidate) error {
	if c.bound <= s.partOfWords && s.admits(s.partOfWords, 0) {
		return errTierEnds
	}
	cost := costCandidate
	if !c.several && !c.byPath { // only its path is read
		s.left -= costOnePath
		return nil
	}
	if text, err := s.needsText(c.blob); err != nil {
		return err
	} else if text {
		length, err := s.content.Len(c.blob)
		if err != nil {
			return err
		}
		cost += int(length) * costTextPerKiB / 1024
	}
	if s.left -= cost; s.left < 0 {
		return errTierEnds
	}
	return nil
}

// needsText reports whether the text of a blob must be read to score it.
func (s *search) needsText(blob uint32) (bool, error) {
	if !s.together.known(blob) {
		return true, nil
	}
	for _, a := range s.wordAtoms {
		if enough, err := a.wholeIsEnough(blob); !enough || err != nil {
			return true, err
		}
	}
	return false, nil
}

// wholeHits returns the blobs that have a text as a whole word, and those with opaque superblocks, whose words are not all known. Their scores
// are what they have more than the text as parts of words.
func (s *search) wholeHits(m *matching) (*wordHits, error) {
	known := s.known[m]
	if known.whole != nil {
		return known.whole, nil
	}
	h := &wordHits{}
	for _, literal := range m.literals {
		words, _, err := s.spellings(literal, mostSpellings)
		if err != nil {
			return nil, err
		}
		for i := range words {
			if whole, err := s.matchesWhole(m, h.words, words[i].word); err != nil {
				return nil, err
			} else if whole {
				h.words = append(h.words, words[i])
			}
		}
	}
	tallies, err := s.tallies(h.words, false)
	if err != nil {
		return nil, err
	}
	if h.blobs, err = s.byBlob(tallies, func(t *blobTally, length int) { t.content = m.more(t.counts[rank.Word], length) }); err != nil {
		return nil, err
	}
	opaque, err := s.opaqueBlobs()
	if err != nil {
		return nil, err
	}
	for i := range opaque {
		length, err := s.content.Len(opaque[i].blob)
		if err != nil {
			return nil, err
		}
		opaque[i].content = m.more(rank.Enough, units(length))
	}
	h.blobs = mergeBlobs(h.blobs, opaque)
	known.whole = h
	s.known[m] = known
	return h, nil
}

// mergeBlobs merges two ascending lists. Those of the second replace others, whose counts they take over.
func mergeBlobs(blobs, others []blobTally) []blobTally {
	if len(others) == 0 {
		return blobs
	}
	merged := make([]blobTally, 0, len(blobs)+len(others))
	for _, o := range others {
		n := seekBlob(blobs, 0, o.blob)
		merged, blobs = append(merged, blobs[:n]...), blobs[n:]
		if len(blobs) > 0 && blobs[0].blob == o.blob {
			o.counts, blobs = blobs[0].counts, blobs[1:]
		}
		merged = append(merged, o)
	}
	return append(merged, blobs...)
}

// more returns what so many whole words score more than parts of words.
func (m *matching) more(whole uint32, length int) float64 {
	parts := m.loose.Weigh(rank.Content(rank.Partial, rank.Enough, length))
	return max(m.loose.Weigh(rank.Content(rank.Word, int(min(whole, rank.Enough)), length))-parts, 0)
}

// matchesWhole reports whether a spelling of a literal, not yet known, is a match from end to end. Of several literals, a preferred one may
// match a part of it.
func (s *search) matchesWhole(m *matching, known []wordMatch, word uint32) (bool, error) {
	if len(m.literals) == 1 {
		return true, nil
	}
	if slices.ContainsFunc(known, func(k wordMatch) bool { return k.word == word }) {
		return false, nil
	}
	if err := s.words.Block(word/blockWords, &s.lexicon); err != nil {
		return false, err
	}
	text := s.lexicon.Word(int(word % blockWords))
	for start, end := range regex.Ranges(m.matcher, text) {
		return start == 0 && end == len(text), nil
	}
	return false, nil
}
