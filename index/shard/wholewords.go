package shard

import (
	"errors"
	"math"
	"slices"

	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// A common literal is in thousands of words, but the best documents have it as a whole word or in their path: others score
// partOfWord at most. A TopK search for one literal, or one of several, therefore looks at those documents first. The posting lists
// of its few spellings say how often they have the word, which with the length of the content bounds the score. So the search skips
// most postings immediately (see scanWholeWords). It starts over with all words of the lexicon if other documents may be among the
// best after all, or if it had to read more content than the lookup of the words would cost.

// wholeWords are literals that are words, and the budget for their documents.
type wholeWords struct {
	budget
	words []wordMatch // the literals' spellings
	atom  *wholeWordAtom
	order placeOrder
}

// partOfWord is the highest score, without the rank of its repo, of a document whose path does not match and that has one literal only in
// parts of words.
var partOfWord = rank.Content(rank.Partial, rank.Enough, 1)

// errOverBudget ends the search among documents with the literal as a whole word.
var errOverBudget = errors.New("finding all words takes less than reading documents")

// budget is how many bytes of content may be read instead of looking up all words that hold a literal.
type budget struct {
	literal *matching
	left    uint64
	all     bool // left includes what looking up the words would cost, which is added only when it is needed
}

// spend takes bytes from the budget.
func (b *budget) spend(s *search, bytes uint32) error {
	if uint64(bytes) > b.left && !b.all {
		candidates, err := s.candidateWords(b.literal)
		if err != nil {
			return err
		}
		b.all, b.left = true, b.left+uint64(candidates.n)*readPays
		if l, ok := b.literal.needs.(regex.Literal); ok {
			from, to, err := s.words.WithPrefix(l.Text, &s.lexicon)
			if err != nil {
				return err
			}
			b.left += uint64(to-from) * wordPays
		}
	}
	if uint64(bytes) > b.left {
		return errOverBudget
	}
	b.left -= uint64(bytes)
	return nil
}

// wordPays is how many bytes may be read for each word that need not be looked up, if whole blocks of the lexicon begin with the
// literal: a list takes about a microsecond.
const wordPays = 128

// postingPays is how many bytes may be read for each posting that need not be: 77 to 121 ns against 3.6 to 8.7 a byte
// (BenchmarkCosts), and about as much for skipping its document.
const postingPays = 32

// planWholeWords returns nil if looking at documents with whole words first does not pay.
func (s *search) planWholeWords(q *Query) (*wholeWords, error) {
	m := onlyLiterals(q)
	if m == nil || s.opts.Mode != TopK || s.opts.MaxFiles == 0 || !s.mayExceed(partOfWord) {
		return nil, nil
	}
	w := &wholeWords{budget: budget{literal: m}}
	df, err := s.openSpellings(w)
	if err != nil || df < uint64(s.opts.MaxFiles) {
		return nil, err
	}
	w.left = df * postingPays
	if err := w.spend(s, uint32(min(s.opts.MaxFiles, math.MaxUint32/wholeWordWork))*wholeWordWork); err != nil {
		if errors.Is(err, errOverBudget) {
			return nil, nil
		}
		return nil, err
	}
	return w, nil
}

// bestName returns how well a path may match at best.
func (w *wholeWords) bestName() rank.Name {
	if w.literal.scope == query.Content {
		return rank.NoName
	}
	return rank.Base
}

// mayExceed reports whether the search wants files that score more than this.
func (s *search) mayExceed(score float64) bool {
	return s.opts.After == nil || s.opts.After.Score > score
}

// onlyLiterals returns the text of a query that consists of one text, alone or together with conditions that have no text, if the
// text is a literal or one of several. It returns nil for other queries.
func onlyLiterals(q *Query) *matching {
	if len(q.texts) != 1 || !q.inContent {
		return nil
	}
	parts := []query.Q{q.tree}
	if and, ok := q.tree.(*query.And); ok {
		parts = and.Children
	}
	for _, part := range parts {
		if m := q.texts[part]; m != nil && m.withinWords && m.literals != nil && m.inNames == nil && !m.outside {
			return m
		}
	}
	return nil
}

// mostSpellings is the most lists that are added up.
const mostSpellings = 64

// openSpellings finds the spellings and returns the number of their postings.
func (s *search) openSpellings(w *wholeWords) (df uint64, err error) {
	for _, literal := range w.literal.literals {
		words, lists, err := s.spellings(literal, mostSpellings-len(w.words))
		if err != nil || words == nil {
			return 0, err
		}
		for i := range words {
			if whole, err := s.matchesWhole(w, words[i].word); err != nil {
				return 0, err
			} else if whole {
				w.words = append(w.words, words[i])
				df += uint64(lists[i].DF())
			}
		}
	}
	return df, nil
}

// matchesWhole reports whether a spelling of a literal, not yet known, is a match from end to end. Of several literals, a preferred
// one may match a part of it.
func (s *search) matchesWhole(w *wholeWords, word uint32) (bool, error) {
	if len(w.literal.literals) == 1 {
		return true, nil
	}
	if slices.ContainsFunc(w.words, func(known wordMatch) bool { return known.word == word }) {
		return false, nil
	}
	if err := s.words.Block(word/blockWords, &s.lexicon); err != nil {
		return false, err
	}
	text := s.lexicon.Word(int(word % blockWords))
	for start, end := range regex.Ranges(w.literal.matcher, text) {
		return start == 0 && end == len(text), nil
	}
	return false, nil
}

// spelled is the words [from, to) that equal a literal without case.
type spelled struct{ from, to uint32 }

// spellings returns the spellings of a literal and their lists; nil if there are more than most, or if it cannot be looked up.
func (s *search) spellings(literal regex.Literal, most int) (words []wordMatch, lists []postings.WordList, err error) {
	text, ok := wordText(literal)
	if !ok {
		return nil, nil, nil
	}
	in, known := s.spelled[literal]
	if !known {
		if in.from, in.to, err = s.words.Spellings(text, &s.lexicon); err != nil {
			return nil, nil, err
		}
		if s.spelled == nil {
			s.spelled = map[regex.Literal]spelled{}
		}
		s.spelled[literal] = in
	}
	if int(in.to-in.from) > most {
		return nil, nil, nil
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

// amongWholeWords finds the best documents among those that have the literal as a whole word or in their path, or that have opaque
// superblocks. If these are not enough, it returns false and undoes what it did.
func (s *search) amongWholeWords(q *Query) (done bool, err error) {
	if err := s.prepareFloor(); err != nil {
		return false, err
	}
	if s.wholeWords, err = s.planWholeWords(q); s.wholeWords == nil || err != nil {
		return false, err
	}
	if s.mayReach(rank.Bound(rank.Content(rank.Word, rank.Enough, 1)+rank.Defined(1), 1, s.wholeWords.bestName(), false), 0) {
		err = s.passes(q)
	}
	w := s.wholeWords
	s.wholeWords = nil
	switch {
	case err == nil && !s.mayReach(partOfWord, 0):
		s.stats.CountsInexact = true
		s.explain.leftOutBelow(partOfWord+s.mostOfRepo, 0)
		s.leaveOut()
		return true, nil
	case err != nil && !errors.Is(err, errOverBudget):
		return false, err
	}
	if known := s.known[w.literal]; known.names != nil && known.names.uncounted {
		known.names = nil
		s.known[w.literal] = known
	}
	s.startOver(q)
	return false, nil
}

// startOver drops the documents that were found.
func (s *search) startOver(q *Query) {
	s.best = best{limit: s.opts.MaxFiles, maxBytes: s.opts.MaxBytes}
	s.stats = Stats{ListsRead: s.stats.ListsRead}
	s.pass, s.deferredFrom, s.deferred = everyPriority, 0, false
	s.explain.startOver(q)
}
