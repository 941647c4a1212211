package shard

import (
	"errors"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// A common literal is in thousands of words, but the best documents have it as a whole word,
// or in their path: others score partOfWord at most. A TopK search for one literal therefore
// looks at those documents first. Their posting lists are few, and read only as far as the
// search gets. It starts over with all words of the lexicon if other documents may be among
// the best after all, or if more content had to be read than the words are worth.

// wholeWords is a literal that is a word, and what may be spent on its documents.
type wholeWords struct {
	literal *matching
	lists   []postings.WordList // of its spellings
	budget  uint64              // bytes of content left
	atom    *wholeWordAtom
	order   placeOrder
}

// partOfWord is the highest score of a document without a match in its path that has one
// literal in parts of words only.
var partOfWord = rank.Content(rank.Partial, rank.Enough, 1)

// errOverBudget ends the search among documents that have the literal as a whole word.
var errOverBudget = errors.New("finding all words takes less than reading documents")

// spend takes bytes from the budget.
func (w *wholeWords) spend(bytes uint32) error {
	if uint64(bytes) > w.budget {
		return errOverBudget
	}
	w.budget -= uint64(bytes)
	return nil
}

// postingPays is how many bytes may be read for a posting that need not be: 77 to 121 ns
// against 3.6 to 8.7 a byte (BenchmarkCosts).
const postingPays = 16

// planWholeWords returns nil if documents with whole words are not worth being looked at first.
func (s *search) planWholeWords(q *Query) (*wholeWords, error) {
	m := onlyLiteral(q)
	if m == nil || s.words == nil || s.opts.Mode != TopK || s.opts.MaxFiles == 0 || !s.mayExceed(partOfWord) {
		return nil, nil
	}
	w := &wholeWords{literal: m}
	df, err := s.openSpellings(w)
	if err != nil || df < uint64(s.opts.MaxFiles) {
		return nil, err
	}
	candidates, err := s.candidateWords(m)
	if err != nil {
		return nil, err
	}
	w.budget = uint64(candidates.n)*readPays + df*postingPays
	if w.budget < uint64(s.opts.MaxFiles)*documentWork {
		return nil, nil
	}
	return w, nil
}

// mayExceed reports whether files that score more are wanted.
func (s *search) mayExceed(score float64) bool {
	return s.opts.After == nil || s.opts.After.Score > score
}

// onlyLiteral returns the literal of a query that is nothing else, or demands it together with
// what has no text; nil for other queries.
func onlyLiteral(q *Query) *matching {
	if len(q.texts) != 1 || !q.inContent {
		return nil
	}
	parts := []query.Q{q.tree}
	if and, ok := q.tree.(*query.And); ok {
		parts = and.Children
	}
	for _, part := range parts {
		if m := q.texts[part]; m != nil && m.withinWords && !m.followed {
			return m
		}
	}
	return nil
}

// mostSpellings is how many lists are walked side by side.
const mostSpellings = 64

// openSpellings opens the lists of the spellings, and returns how many postings they have.
func (s *search) openSpellings(w *wholeWords) (df uint64, err error) {
	literal, ok := w.literal.needs.(regex.Literal)
	if !ok {
		return 0, nil
	}
	w.lists, err = s.spellings(literal, mostSpellings)
	for i := range w.lists {
		df += uint64(w.lists[i].DF())
	}
	return df, err
}

// spellings opens the lists of the spellings of a word; none if they are more than most.
func (s *search) spellings(literal regex.Literal, most int) (lists []postings.WordList, err error) {
	text, ok := wordText(literal)
	if !ok {
		return nil, nil
	}
	from, to, err := s.words.Spellings(text)
	if err != nil || int(to-from) > most {
		return nil, err
	}
	for word := from; word < to; word++ {
		if literal.CaseSensitive {
			if err := s.words.Block(word/blockWords, &s.lexicon); err != nil {
				return nil, err
			}
			if string(s.lexicon.Word(int(word%blockWords))) != text {
				continue
			}
		}
		list, err := s.words.List(word)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	s.stats.ListsRead += uint64(len(lists))
	return lists, nil
}

// amongWholeWords finds the best documents among those that have the literal as a whole word
// or in their path, or that have opaque superblocks. It returns false, and leaves nothing
// behind, if that does not do.
func (s *search) amongWholeWords(q *Query) (done bool, err error) {
	if s.wholeWords, err = s.planWholeWords(q); s.wholeWords == nil || err != nil {
		return false, err
	}
	if err = s.passes(q); err == nil {
		err = s.spendShown()
	}
	w := s.wholeWords
	s.wholeWords = nil
	switch {
	case err == nil && !s.mayReach(partOfWord, 0):
		s.stats.CountsInexact = true
		s.leaveOut()
		return true, nil
	case err != nil && !errors.Is(err, errOverBudget):
		return false, err
	}
	if known := s.known[w.literal]; known.names != nil && known.names.uncounted {
		known.names = nil
		s.known[w.literal] = known
	}
	s.best = best{limit: s.opts.MaxFiles, maxBytes: s.opts.MaxBytes}
	s.stats = Stats{ListsRead: s.stats.ListsRead}
	s.pass, s.deferredFrom, s.deferred = everyPriority, 0, false
	s.explain.startOver(q)
	return false, nil
}

// spendShown takes the best documents from the budget whose matches are counted when they are
// shown.
func (s *search) spendShown() error {
	for i := range s.best.hits {
		h := &s.best.hits[i]
		if !h.atLeast {
			continue
		}
		length, err := s.content.Len(h.blob)
		if err != nil {
			return err
		}
		if err := s.wholeWords.spend(length); err != nil {
			return err
		}
	}
	return nil
}

// wholeWordAtom finds a literal in the documents that have it as a whole word. Others match
// only by their path; whatever matches has all its ranges.
type wholeWordAtom struct {
	s     *search
	words *wholeWords
	blobs *wholeWordBlobs
	// What is known of the blob looked at last. It has the matches found, or more with atLeast.
	blob    uint32
	valid   bool
	atLeast bool
	found   int
	quality rank.Quality
}

// wholeWordAtom makes the atom of s.wholeWords ready.
func (s *search) wholeWordAtom() (*wholeWordAtom, error) {
	opaque, err := s.words.Opaque()
	if err != nil {
		return nil, err
	}
	b := &wholeWordBlobs{s: s, opaque: opaque, lists: make([]postings.WordIterator, len(s.wholeWords.lists))}
	s.wholeWords.atom = &wholeWordAtom{s: s, words: s.wholeWords, blobs: b}
	s.wholeWords.atom.restart()
	return s.wholeWords.atom, nil
}

func (a *wholeWordAtom) plan() (plan, error) {
	n := uint64(a.blobs.opaque.Len())
	for i := range a.words.lists {
		n += uint64(a.words.lists[i].DF())
	}
	return plan{blobs: a.blobs, estimate: n, counted: true}, nil
}

func (a *wholeWordAtom) cost() uint64 { return costContent }

// matches leaves documents out that have the literal in parts of words only, if at all.
func (a *wholeWordAtom) matches(d *document) (bool, error) {
	blob, ok, err := a.blobs.seek(d.blob)
	if !ok || err != nil || blob != d.blob {
		return false, err
	}
	if a.blobs.count > 0 {
		return true, nil
	}
	err = a.look(d.blob) // some superblock is opaque
	return a.found > 0, err
}

// gather counts the matches of a document.
func (a *wholeWordAtom) gather(d *document, g *gathered) (matches int, best rank.Quality, err error) {
	if err := a.look(d.blob); err != nil || a.found == 0 {
		return 0, rank.None, err
	}
	g.more += a.found
	g.inWords = append(g.inWords, inWords{matching: a.words.literal, opaque: true})
	g.atLeast = g.atLeast || a.atLeast
	return a.found, a.quality, nil
}

// look counts the matches in a blob: those that are whole words if they are enough, and
// otherwise all in its text.
func (a *wholeWordAtom) look(blob uint32) error {
	if a.valid && a.blob == blob {
		return nil
	}
	a.valid = false
	if err := a.words.spend(documentWork); err != nil {
		return err
	}
	at, ok, err := a.blobs.seek(blob)
	if err != nil {
		return err
	}
	a.blob, a.found, a.quality, a.atLeast = blob, a.blobs.count, rank.Word, true
	if !ok || at != blob || a.found < rank.Enough {
		err = a.read(blob)
	}
	a.valid = err == nil
	return err
}

// partRead is how much of a content is read before it is known whether more has to be.
const partRead = 16 << 10

// read counts the matches in the text of a blob, up to where more make no difference.
func (a *wholeWordAtom) read(blob uint32) error {
	s := a.s
	a.found, a.quality, a.atLeast = 0, rank.None, false
	length, err := s.content.Len(blob)
	if err != nil {
		return err
	}
	for at, text := 0, s.buf[:0]; at < int(length); {
		if a.found >= rank.Enough && a.quality == rank.Word {
			a.atLeast = true
			return nil
		}
		part := min(partRead, length-uint32(len(text)))
		if err := a.words.spend(part); err != nil {
			return err
		}
		text, err = s.read(text, blob, uint32(len(text)), part)
		s.buf = text
		if err != nil {
			return err
		}
		limit := len(text)
		if limit < int(length) { // a match is within a word, which goes on
			limit = ngram.ExtendedStart(text, limit)
		}
		for start, end := range regex.RangesWhile(a.words.literal.matcher, text[:limit], at, s.goOn) {
			a.found++
			a.quality = max(a.quality, rank.Of(text, start, end))
		}
		if at = limit; s.ended != nil {
			return s.ended
		}
	}
	return nil
}

// restart has the candidates begin with the first blob.
func (a *wholeWordAtom) restart() {
	b := a.blobs
	for i := range b.lists {
		b.lists[i].Reset(a.words.lists[i])
	}
	b.begun, b.done = false, false
}

// wholeWordBlobs has as candidates the blobs with some words, and those with opaque superblocks.
type wholeWordBlobs struct {
	s      *search
	lists  []postings.WordIterator
	opaque eliasfano.List

	begun, done bool
	at          uint32 // the candidate
	count       int    // of the words in its superblocks that are not opaque
}

func (b *wholeWordBlobs) seek(from uint32) (uint32, bool, error) {
	if b.done || b.begun && b.at >= from {
		return b.at, !b.done, nil
	}
	b.begun, b.done, b.count = true, true, 0 // until there is a candidate
	if from >= b.s.content.Blobs() {
		return 0, false, nil
	}
	first, err := b.s.content.FirstSuperblock(from)
	if err != nil {
		return 0, false, err
	}
	superblock, ok, err := b.seekSuperblock(first)
	if !ok || err != nil {
		return 0, false, err
	}
	if b.at, err = b.s.content.BlobOf(superblock); err != nil {
		return 0, false, err
	}
	first, length, err := b.s.content.Span(b.at)
	if err != nil {
		return 0, false, err
	}
	end := first + (length+docstore.SuperblockSize-1)/docstore.SuperblockSize
	if b.at < from || superblock >= end {
		return 0, false, b.s.corrupt("superblock %d is not of blob %d, which ends before %d", superblock, b.at, end)
	}
	for i := range b.lists {
		it := &b.lists[i]
		for ok := it.SeekGE(first); ok && it.Superblock() < end; ok = it.Next() {
			b.count += int(it.Count())
		}
		if err := it.Err(); err != nil {
			return 0, false, err
		}
	}
	b.done = false
	return b.at, true, nil
}

// seekSuperblock returns the first superblock, from this one on, with a word or that is opaque.
func (b *wholeWordBlobs) seekSuperblock(from uint32) (first uint32, ok bool, err error) {
	if i := b.opaque.Search(uint64(from)); i < b.opaque.Len() {
		first, ok = uint32(b.opaque.At(i)), true
	}
	for i := range b.lists {
		it := &b.lists[i]
		if it.SeekGE(from) && (!ok || it.Superblock() < first) {
			first, ok = it.Superblock(), true
		}
		if err := it.Err(); err != nil {
			return 0, false, err
		}
	}
	return first, ok, nil
}
