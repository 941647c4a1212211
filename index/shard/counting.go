package shard

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
)

// Overlapping ranges of two atoms count once, so that counts of words add up only where no word has
// matches of two atoms. Where a word has, the search knows how many matches each of its occurrences
// counts twice, and subtracts them.

// counting says how the matches of a document are counted.
type counting struct {
	// byWords says that all atoms whose ranges in the content are shown are wordAtoms.
	byWords bool
	// twice has, for each blob, how many matches its atoms count too often, ascending by blob.
	twice []blobTally
	next  int
}

// planCounting decides how matches are counted, once the atoms are ready.
func (s *search) planCounting(q query.Q) error {
	s.counting = counting{}
	if s.textAtoms > 0 {
		return nil
	}
	if len(s.wordAtoms) < 2 {
		s.counting.byWords = true
		return nil
	}
	shared := sharedWords(s.wordAtoms)
	if len(shared) == 0 {
		s.counting.byWords = true
		return nil
	}
	if !holdTogether(q) {
		return nil
	}
	var twice []wordMatch
	for i := range shared {
		w := &shared[i]
		n, err := s.countTwice(w)
		if err := cmp.Or(err, s.tick()); err != nil {
			return err
		}
		if n > 0 {
			twice = append(twice, wordMatch{w.word, n})
		}
	}
	tallies, err := s.tallies(twice, false)
	if err != nil {
		return err
	}
	s.counting.twice, err = s.byBlob(tallies)
	s.counting.byWords = err == nil
	return err
}

// sharedWord is a word in which several atoms have matches.
type sharedWord struct {
	word  uint32
	atoms []*wordAtom
}

// sharedWords returns the words in which at least two atoms have matches, ascending.
func sharedWords(atoms []*wordAtom) (shared []sharedWord) {
	type use struct {
		word uint32
		atom *wordAtom
	}
	var all []use
	for _, a := range atoms {
		for _, w := range a.hits.words {
			all = append(all, use{w.word, a})
		}
	}
	slices.SortStableFunc(all, func(a, b use) int { return cmp.Compare(a.word, b.word) })
	for i := 1; i < len(all); i++ {
		if all[i].word != all[i-1].word {
			continue
		}
		if n := len(shared); n == 0 || shared[n-1].word != all[i].word {
			shared = append(shared, sharedWord{all[i].word, []*wordAtom{all[i-1].atom}})
		}
		last := &shared[len(shared)-1]
		last.atoms = append(last.atoms, all[i].atom)
	}
	return shared
}

// holdTogether reports whether the ranges of all atoms that match in a document are shown whenever
// it matches. They are not if some of the atoms that must match together, in one of several
// alternatives, may be missing.
func holdTogether(q query.Q) bool {
	switch q := q.(type) {
	case *query.And:
		return !slices.ContainsFunc(q.Children, func(c query.Q) bool { return !holdTogether(c) })
	case *query.Or:
		return !slices.ContainsFunc(q.Children, func(c query.Q) bool { return isAnd(c) || !holdTogether(c) })
	case *query.Type:
		return holdTogether(q.Child)
	}
	return true
}

func isAnd(q query.Q) bool {
	if t, ok := q.(*query.Type); ok {
		return isAnd(t.Child)
	}
	_, ok := q.(*query.And)
	return ok
}

// countTwice returns how many matches overlap those of other atoms in one occurrence of a word.
func (s *search) countTwice(w *sharedWord) (wordSums, error) {
	if err := s.words.Block(w.word/blockWords, &s.lexicon); err != nil {
		return 0, err
	}
	s.counts.lexiconBlocks++
	word := s.lexicon.Word(int(w.word % blockWords))
	s.overlap = s.overlap[:0]
	for _, a := range w.atoms {
		for start, end := range regex.Ranges(a.matcher, word) {
			s.overlap = append(s.overlap, span{uint32(start), uint32(end)})
		}
	}
	all := len(s.overlap)
	return wordSums(all - len(settle(s.overlap))), nil
}

// twiceIn returns how many matches of a blob are counted too often.
func (c *counting) twiceIn(blob uint32) int {
	if c.next > 0 && c.twice[c.next-1].blob >= blob {
		c.next = 0
	}
	if c.next = seekBlob(c.twice, c.next, blob); c.next < len(c.twice) && c.twice[c.next].blob == blob {
		return c.twice[c.next].counts.All()
	}
	return 0
}
