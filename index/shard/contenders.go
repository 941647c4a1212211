package shard

import (
	"cmp"
	"errors"
	"slices"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
)

// If several words must match, most contents that have them all cannot be among the best. The posting lists of the few spellings of each
// word show which can. The whole words of a content give it a least score. Once as many contents as wanted have one, the lowest of these
// scores is a floor that all of the best reach. The whole words of a content also bound its score from above, with parts of words added.
// The search then narrows to the contents whose upper bound reaches the floor. It need not look up, for all other contents, the thousands
// of words that hold one of the query's words.

// contenders are the contents that may be among the best, judging by whole words.
type contenders struct {
	among
	// order is a heap of contents by their highest possible score. The search reads them in this order, within a budget of bytes: beyond
	// it, looking up all words that hold one of the words takes less.
	order  []boundedBlob
	taken  int           // number of contents taken from order
	opaque []boundedBlob // with opaque superblocks, whose words are not all known: read last
	budget uint64
	bound  float64 // of the content that is being looked at
	least  float64 // all of the best score at least this, without the rank of their repo
}

// contender is a word that must match.
type contender struct {
	*matching
	words   []wordMatch // the word's spellings
	df      uint64      // number of their postings
	tallies []tally     // postings of the spellings
	at      int         // index in tallies
	defines nameIn      // where the word may be defined
}

// contest finds the contenders.
type contest struct {
	s       *search
	lengths []uint8
	starts  eliasfano.List
	words   []contender
	defined float64 // score of a word that is defined in the content
	// All of the best score least or more. Contents with none of the words as a whole word score up to others. Neither includes the rank
	// of the repo.
	least, others float64
	// budget is how many bytes may be read: beyond it, looking up all words that hold one of the words takes less. left is what may still
	// be spent on contenders.
	budget, left uint64
	// line is the score of all words in one line, which any content may have. bonuses has the contents that score points for more than their
	// words, with these points, ascending by blob.
	line    float64
	bonuses []boundedBlob
	opaque  []uint32      // contents with opaque superblocks
	found   []boundedBlob // by their highest possible score without definitions
	sure    []boundedBlob // contents with all words: a heap by their least score at usual priority
}

// narrowToContenders narrows a search for the best to the contents that may be among them, if whole words decide that.
func (s *search) narrowToContenders(q *Query, words []contender) error {
	// Files with none of the words as a whole word score up to others.
	least, others := 0.0, partOfWord*float64(len(words))
	if floor := s.opts.Floor; floor != nil {
		least = floor.Score - s.mostOfRepo
	}
	enough := uint64(s.opts.MaxFiles)
	if least > others {
		enough = 0
	}
	if worth, err := s.openContenders(words, enough); !worth || err != nil {
		return err
	}
	s.asksForLow = q.asksForLow
	c := contest{s: s, words: words, others: others, least: least, defined: rank.Defined(len(words))}
	if err := c.prepare(); err != nil {
		return err
	}
	if few, err := c.addAll(); !few || err != nil {
		return err
	}
	reach := &contenders{least: c.least, budget: c.budget}
	if err := c.narrowTo(reach); err != nil {
		return err
	}
	blobs := make([]uint32, 0, len(reach.order)+len(reach.opaque))
	for _, b := range slices.Concat(reach.order, reach.opaque) {
		blobs = append(blobs, b.blob)
	}
	slices.Sort(blobs)
	reach.blobs, reach.read = runsOf(blobs), true
	s.narrowed = reach
	return nil
}

// addAll adds the contents that may be among the best. It reports whether it found them all, few enough to be read.
func (c *contest) addAll() (few bool, err error) {
	if err := c.addAllWhole(); err != nil || c.least <= c.others {
		return false, err
	}
	return c.addPartial(c.longest(1))
}

// addAllWhole adds the contents that have all words as whole words.
func (c *contest) addAllWhole() error {
	// Short contents go first: hardly any long one scores as much as the best short ones.
	if err := c.addWhole(0, shortContent); err != nil {
		return err
	}
	return c.addWhole(shortContent, c.longest(0))
}

// shortContent is the most superblocks of a short content.
const shortContent = 4

// onlyWords returns the words of a query that consists only of words that must all match, in the same scope; nil for other queries.
func onlyWords(q *Query) (words []contender) {
	and, ok := q.tree.(*query.And)
	if !ok {
		return nil
	}
	for _, c := range and.Children {
		m := q.texts[c]
		if _, ok := c.(*query.Substring); !ok || !m.withinWords || m.scope == query.FileName || len(words) > 0 && m.scope != words[0].scope {
			return nil
		}
		words = append(words, contender{matching: m})
	}
	return words
}

// openContenders reads the postings of the spellings of all words, the rarest first. It is not worth it if a word has fewer than enough.
func (s *search) openContenders(words []contender, enough uint64) (worth bool, err error) {
	for i := range words {
		w := &words[i]
		var lists []postings.WordList
		if w.words, lists, err = s.spellings(w.literals[0], mostSpellings); w.words == nil || err != nil {
			return false, err
		}
		for j := range lists {
			w.df += uint64(lists[j].DF())
		}
		if w.df < enough {
			return false, nil
		}
	}
	slices.SortStableFunc(words, func(a, b contender) int { return cmp.Compare(a.df, b.df) })
	for i := range words {
		w := &words[i]
		if w.tallies, err = s.tallies(w.words, false); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (c *contest) prepare() (err error) {
	for i := range c.words {
		candidates, err := c.s.candidateWords(c.words[i].matching)
		if err != nil {
			return err
		}
		c.budget += uint64(candidates.n) * readPays
		if c.s.words.Marked() {
			if c.words[i].defines, err = c.s.nameIn(c.words[i].matching, false); err != nil {
				return err
			}
		}
	}
	c.left = c.budget * contendersRead
	if c.lengths, err = c.s.lengths(); err != nil {
		return err
	}
	if c.starts, err = c.s.content.SuperblockStarts(); err != nil {
		return err
	}
	c.opaque, err = c.s.opaqueBlobs()
	return err
}

// contendersRead is how many contenders there may be for each one that is read. The more there are, the higher is the score that the others
// have to reach.
const contendersRead = 4

// spend takes a content from left, unless only definitions can make it one of the best. It reports whether left was large enough.
func (c *contest) spend(f boundedBlob) (bool, error) {
	if f.bound < c.least {
		return true, nil
	}
	n, err := c.s.content.Len(f.blob)
	if uint64(n) > c.left || err != nil {
		return false, err
	}
	c.left -= uint64(n)
	return true, nil
}

// mayBeBest reports whether a content may be among the best if all words are defined in it.
func (c *contest) mayBeBest(most float64) bool {
	return most+float64(len(c.words))*c.defined >= c.least
}

// longest returns the greatest length of a content that may be among the best although it lacks that many of the words as whole words.
func (c *contest) longest(lacking int) int {
	whole, parts := float64(len(c.words)-lacking), float64(lacking)
	for length := rank.CountedUnits; length > 0; length-- {
		if whole*(wholeCeilings[length][rank.Enough]+c.defined)+parts*wholeCeilings[length][0]+c.line >= c.least {
			return length
		}
	}
	return 0
}

// addWhole adds the contents that have all words as whole words, and more than above and up to upTo superblocks. Once it has as many as
// files are wanted, their scores are a floor for the best.
func (c *contest) addWhole(above, upTo int) error {
	if upTo <= above {
		return nil
	}
	c.rewind()
	cursor, passed := blobOfSuperblocks{starts: c.starts}, uint32(0)
	for i := range c.words[0].tallies {
		superblock := c.words[0].tallies[i].superblock
		if length := int(c.lengths[superblock]); length <= above || length > upTo || superblock < passed {
			continue
		}
		blob, end, err := c.s.blobOf(&cursor, superblock)
		if err := cmp.Or(err, c.s.tick()); err != nil {
			return err
		}
		if in := c.in(uint32(cursor.first), end); in.missing == 0 {
			c.found = append(c.found, boundedBlob{in.most + c.line, blob})
			c.sure = push(c.sure, boundedBlob{in.least, blob}, compareBounded)
		}
		passed = end
	}
	reached, err := c.reached()
	c.least = max(c.least, reached+c.s.leastOfRepo-c.s.mostOfRepo)
	return err
}

// addPartial adds the contents of up to longest superblocks that lack one of the words as a whole word and may be among the best. It
// reports whether the contents found are few enough to be read.
func (c *contest) addPartial(longest int) (few bool, err error) {
	c.found = slices.DeleteFunc(c.found, func(f boundedBlob) bool { return !c.mayBeBest(f.bound) })
	for _, f := range c.found {
		if few, err := c.spend(f); !few || err != nil {
			return false, err
		}
	}
	if longest == 0 {
		return true, nil
	}
	for i := range c.words {
		c.rewind()
		cursor, passed := blobOfSuperblocks{starts: c.starts}, uint32(0)
		for j := range c.words[i].tallies {
			superblock := c.words[i].tallies[j].superblock
			if int(c.lengths[superblock]) > longest || superblock < passed {
				continue
			}
			blob, end, err := c.s.blobOf(&cursor, superblock)
			if err := cmp.Or(err, c.s.tick()); err != nil {
				return false, err
			}
			passed = end
			// The first word that it has adds it, and no other word does.
			if in := c.in(uint32(cursor.first), end); in.missing > 0 && in.first == i && c.mayBeBest(in.most+c.line) && c.bonusOf(blob) == 0 {
				f := boundedBlob{in.most + c.line, blob}
				c.found = append(c.found, f)
				if few, err := c.spend(f); !few || err != nil {
					return false, err
				}
			}
		}
	}
	return true, nil
}

func (c *contest) rewind() {
	for i := range c.words {
		c.words[i].at = 0
	}
}

// wordsIn says what a content has of the words as whole words: the highest and the lowest score that it may have without definitions, how
// many of the words it lacks, and the first one that it has.
type wordsIn struct {
	most, least    float64
	missing, first int
}

// in adds up the words of the content in superblocks [first, end). Callers pass ascending superblocks.
func (c *contest) in(first, end uint32) (in wordsIn) {
	length := min(int(end-first), rank.CountedUnits)
	for i := len(c.words) - 1; i >= 0; i-- {
		w := &c.words[i]
		whole := 0
		for w.at = seekTally(w.tallies, w.at, first); w.at < len(w.tallies) && w.tallies[w.at].superblock < end; w.at++ {
			whole = min(whole+int(w.tallies[w.at].matches.whole()), rank.Enough)
		}
		in.most += wholeCeilings[length][whole]
		in.least += rank.Content(rank.Word, whole, length)
		if whole > 0 {
			in.first = i
		} else {
			in.missing++
		}
	}
	return in
}

// reached returns the score that the wanted number of contents with all words reach, not counting those of low priority. It is 0 if there
// are not enough.
func (c *contest) reached() (score float64, err error) {
	s := c.s
	var best []boundedBlob
	for len(c.sure) > 0 && len(best) < s.opts.MaxFiles {
		first := c.sure[0]
		c.sure = dropFirst(c.sure, compareBounded)
		doc, err := s.docs.FirstDoc(first.blob)
		if err := cmp.Or(err, s.tick()); err != nil {
			return 0, err
		}
		s.doc.reset(doc, first.blob, 0)
		path, err := s.doc.loadPath()
		if err != nil {
			return 0, err
		}
		if !s.low(path) {
			best, score = append(best, first), first.bound
		}
	}
	if len(best) < s.opts.MaxFiles {
		score = 0
	}
	c.sure = best // they are in heap order
	return score, nil
}

// push queues the contents found that may be among the best, including by what is defined in them.
func (c *contest) push(reach *contenders) error {
	for _, f := range c.found {
		if holds(c.opaque, f.blob) {
			continue
		}
		if err := c.s.tick(); err != nil {
			return err
		}
		for i := range c.words {
			if c.words[i].defines.mayDefine(f.blob) {
				f.bound += c.defined
			}
		}
		if f.bound >= c.least {
			reach.order = push(reach.order, f, compareBounded)
		}
	}
	c.found = c.found[:0]
	return nil
}

// narrowTo queues the contents found and those with opaque superblocks.
func (c *contest) narrowTo(reach *contenders) error {
	s := c.s
	reach.least = c.least
	if err := c.push(reach); err != nil {
		return err
	}
	for _, blob := range c.opaque { // their text may have more words than their postings show
		length, err := s.content.Len(blob)
		if err := cmp.Or(err, s.tick()); err != nil {
			return err
		}
		most := float64(len(c.words))*(rank.Content(rank.Word, rank.Enough, units(length))+c.defined) + c.line + c.bonusOf(blob)
		if most >= c.least {
			reach.opaque = append(reach.opaque, boundedBlob{most, blob})
		}
	}
	return nil
}

// amongContenders finds the best documents among the contents that may be among them by their whole words. It returns false if whole words
// do not decide that.
func (s *search) amongContenders(q *Query) (done bool, err error) {
	words := onlyWords(q)
	if words == nil || s.opts.Mode != TopK || s.opts.MaxFiles == 0 || s.opts.After != nil {
		return false, nil
	}
	if visible, err := s.repos.allShown(); !visible || err != nil {
		return false, err
	}
	if words[0].scope == query.Either {
		if q.line != nil && q.line.Best() == rank.InSequence || len(words) > rank.MaxCompound {
			return false, nil
		}
		if done, err = s.amongBareWords(q, words); !done || err != nil {
			return false, err
		}
	} else {
		if err := s.narrowToContenders(q, words); err != nil || s.narrowed == nil {
			return false, err
		}
		if err = s.passes(q); errors.Is(err, errOverBudget) {
			s.startOver(q)
			s.narrowed.read = false
			err = s.passes(q)
		}
	}
	s.stats.CountsInexact = true
	s.explain.leftOutBelow(s.narrowed.least+s.mostOfRepo, 0)
	s.leaveOut()
	return true, err
}

// scanContenders reads the contenders in the order of their highest possible score, until no other may be among the best.
func (s *search) scanContenders() error {
	reach := s.narrowed
	if err := s.readContenders(len(reach.order)); err != nil {
		return err
	}
	for _, o := range reach.opaque {
		if !s.mayReach(o.bound, o.blob) {
			continue
		}
		if err := s.readContender(o); err != nil {
			return err
		}
	}
	return nil
}

// readContenders reads the next contenders, at most that many.
func (s *search) readContenders(most int) error {
	reach := s.narrowed
	for ; most > 0 && len(reach.order) > 0; most-- {
		first := reach.order[0]
		// The documents of a blob have its number or a higher one.
		if !s.mayReach(first.bound, first.blob) {
			break // so no later one may be either
		}
		if err := s.announceBounded(reach.order, reach.taken, s.appendContent); err != nil {
			return err
		}
		reach.order, reach.taken = dropFirst(reach.order, compareBounded), reach.taken+1
		if err := s.readContender(first); err != nil {
			return err
		}
	}
	return nil
}

// readContender looks at the documents of one contender.
func (s *search) readContender(c boundedBlob) error {
	if s.reader.BytesDecoded > s.narrowed.budget {
		return errOverBudget
	}
	s.narrowed.bound = c.bound
	if err := s.togetherIn(c.blob); err != nil {
		return err
	}
	return cmp.Or(s.tick(), s.eachOf(c.blob, s.hit))
}
