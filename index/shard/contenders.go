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

// Where several words must match, most contents that have them cannot be among the best, and the posting lists of the few spellings of
// each word say which. A content with all of them as whole words scores at least what these score. If as many files as
// are wanted do so, the least of their scores is one that all of the best reach. A content's whole words also bound what it may score, with
// parts of words beside them. The search is then narrowed to the contents whose bounds reach that score: the thousands
// of words that hold one of the words are not looked up for all others.

// contenders are the contents that may be among the best, as whole words say.
type contenders struct {
	among
	// order is a heap of them by the most that they may score. In this order they are read, up to a budget of bytes: beyond that it
	// takes less to look up all words that hold one of the words.
	order  []boundedBlob
	opaque []boundedBlob // with opaque superblocks, of which little is known: they are read last
	budget uint64
	bound  float64 // of the one that is looked at
	least  float64 // all of the best score so much or more
}

// contender is a word that must match.
type contender struct {
	*matching
	words   []wordMatch // its spellings
	df      uint64      // of these
	tallies []tally     // of these
	at      int         // in tallies
	defines nameIn      // where it may be defined
}

// contest finds the contenders.
type contest struct {
	s       *search
	lengths []uint8
	starts  eliasfano.List
	words   []contender
	defined float64 // score of a word that is defined
	// All of the best score least or more; contents without any of the words as a whole word score up to others.
	least, others float64
	// Beyond the budget of bytes it takes less to look up all words that hold one of the words. The contenders may have more by what is left.
	budget, left uint64
	// line is what all words in one line add, which any content may have, and beside has the contents with points for what else is beside
	// their words, and these points, ascending by blob.
	line   float64
	beside []boundedBlob
	opaque []uint32      // contents with opaque superblocks
	found  []boundedBlob // by the most that they score without what is defined
	sure   []boundedBlob // contents with all words, a heap by the least that they score unless their priority is low
}

// narrowToContenders narrows a search for the best to the contents that may be among them, if whole words say which.
func (s *search) narrowToContenders(q *Query, words []contender) error {
	// Files that have none of the words as a whole word score up to others.
	least, others := 0.0, partOfWord*float64(len(words))
	if floor := s.opts.Floor; floor != nil {
		least = floor.Score
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

// addAll adds the contents that may be among the best. It reports whether these are known, and few enough to be read.
func (c *contest) addAll() (few bool, err error) {
	if err := c.addAllWhole(); err != nil || c.least <= c.others {
		return false, err
	}
	return c.addPartial(c.longest(1))
}

// addAllWhole adds the contents that have all words as whole words.
func (c *contest) addAllWhole() error {
	// Short contents first: mostly no long one scores as much as the number of these that is wanted.
	if err := c.addWhole(0, shortContent); err != nil {
		return err
	}
	return c.addWhole(shortContent, c.longest(0))
}

// shortContent is the most superblocks of a short content.
const shortContent = 4

// onlyWords returns the words of a query that is nothing but words that must all match, in the same places; nil for other queries.
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

// openContenders reads the postings of the spellings of all words, the rarest first. That is not worth it if one has fewer than
// enough.
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

// contendersRead is how many contenders there may be for each that is read: the more of them are, the higher is the score that
// the others are to reach.
const contendersRead = 4

// spend takes a content from what the contenders may have, if it is one without what is defined. It reports whether there was so much.
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

// longest is the greatest length of a content that may be among the best and lacks that many of the words as whole words.
func (c *contest) longest(lacking int) int {
	whole, parts := float64(len(c.words)-lacking), float64(lacking)
	for length := rank.CountedUnits; length > 0; length-- {
		if whole*(wholeCeilings[length][rank.Enough]+c.defined)+parts*wholeCeilings[length][0]+c.line >= c.least {
			return length
		}
	}
	return 0
}

// addWhole adds the contents that have all words as whole words, those with more superblocks than a number and up to another. All of
// the best score at least what as many of these do as files are wanted.
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
	c.least = max(c.least, reached)
	return err
}

// addPartial adds the contents of up to that many superblocks that lack one of the words as a whole word, those of them that may be among
// the best. It reports whether the contents found are few enough to be read.
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
			// It is added by the first word that it has, and by no other.
			if in := c.in(uint32(cursor.first), end); in.missing > 0 && in.first == i && c.mayBeBest(in.most+c.line) && c.besideIn(blob) == 0 {
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

// wordsIn is what a content has of the words as whole words: the most and the least that it may score without what is defined, how many
// of the words it lacks, and the first that it has.
type wordsIn struct {
	most, least    float64
	missing, first int
}

// in adds up the words of the content in superblocks [first, end). Calls ascend.
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

// reached returns the score that as many contents with all words reach as files are wanted, without those of low priority; 0 if these are
// fewer.
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
	c.sure = best // which are in the order of a heap
	return score, nil
}

// push has the contents found wait, those that may be among the best also by what is defined in them.
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

// narrowTo has the contents found wait, and those with opaque superblocks.
func (c *contest) narrowTo(reach *contenders) error {
	s := c.s
	reach.least = c.least
	if err := c.push(reach); err != nil {
		return err
	}
	for _, blob := range c.opaque { // whose text may have more words than postings say
		length, err := s.content.Len(blob)
		if err := cmp.Or(err, s.tick()); err != nil {
			return err
		}
		most := float64(len(c.words))*(rank.Content(rank.Word, rank.Enough, units(length))+c.defined) + c.line + c.besideIn(blob)
		if most >= c.least {
			reach.opaque = append(reach.opaque, boundedBlob{most, blob})
		}
	}
	return nil
}

// amongContenders finds the best documents among the contents that may be among them by their whole words. It returns false if whole
// words do not say which.
func (s *search) amongContenders(q *Query) (done bool, err error) {
	words := onlyWords(q)
	if words == nil || s.words == nil || s.opts.Mode != TopK || s.opts.MaxFiles == 0 || s.opts.After != nil {
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
	s.explain.leftOutBelow(s.narrowed.least, 0)
	s.leaveOut()
	return true, err
}

// scanContenders reads the contenders in the order of the most that they may score, until no other may be among the best.
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

// readContenders reads up to that many contenders.
func (s *search) readContenders(most int) error {
	reach := s.narrowed
	for ; most > 0 && len(reach.order) > 0; most-- {
		first := reach.order[0]
		// The documents of a blob have its number or a higher one.
		if !s.mayReach(first.bound, first.blob) {
			break // and so is none of the others
		}
		reach.order = dropFirst(reach.order, compareBounded)
		if err := s.readContender(first); err != nil {
			return err
		}
	}
	return nil
}

// readContender looks at the documents of one.
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
