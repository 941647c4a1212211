package inverted

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/trawl-search/trawl/index/ngram"
)

// ErrNoWindows means that a literal has no n-gram to look for.
var ErrNoWindows = errors.New("a literal without n-grams has no candidates")

// Literal returns the places where a literal with these windows, as Windows returns them, may be.
// The rarest window is the anchor: for every match, the block in which its anchor window starts is
// among the candidates.
//
// If a window does not occur at all, there are no candidates. Without any window the error is
// ErrNoWindows.
func (x *Index) Literal(windows []ngram.Window) (*Candidates, error) {
	return x.literal(windows, maxFollowers)
}

// planned is one n-gram of a literal with its windows.
type planned struct {
	list    *List
	windows []windowTerm
}

func (x *Index) literal(windows []ngram.Window, followers int) (*Candidates, error) {
	if len(windows) == 0 {
		return nil, ErrNoWindows
	}
	p, _ := planners.Get().(*planner)
	defer p.release()
	found, err := p.lookup(x, windows)
	if err != nil {
		return nil, err
	}
	c, _ := walks.Get().(*Candidates)
	if !found {
		c.done = true
		return c, nil
	}
	c.begin(p.plan[0], p.plan[1:min(len(p.plan), followers+1)])
	return c, nil
}

// planner is memory for looking up a literal's n-grams.
type planner struct {
	terms []windowTerm
	found []span // of the lists
	lists []List
	plan  []planned
}

// windowTerm is a window and the term of its n-gram.
type windowTerm struct {
	ngram.Window
	term uint32
}

// planners has the released ones.
var planners = sync.Pool{New: func() any { return new(planner) }}

func (p *planner) release() {
	clear(p.lists)
	planners.Put(p)
}

// mostRemote is the most n-grams of a literal whose lists are read where each costs requests to a bucket or a disk: those with the shortest
// lists. In the dictionary of words it is mostOfWords, since each wrong block of words there costs a request, too.
const (
	mostRemote  = 5
	mostOfWords = 8
)

// announce announces the lists of the n-grams. It keeps only those with the shortest lists, since announcing has an effect only where reading
// is not cheap.
func (p *planner) announce(x *Index) {
	most := mostRemote
	if x.lists.Tag() == dictionaryTags.Lists {
		most = mostOfWords
	}
	if len(p.found) > most {
		sizes := make([]int64, len(p.found))
		for i := range p.found {
			sizes[i] = p.found[i].bytes()
		}
		slices.Sort(sizes)
		n := 0
		for i, at := range p.found {
			if n < most && at.bytes() <= sizes[most-1] {
				p.found[n], p.plan[n] = at, p.plan[i]
				n++
			}
		}
		p.found, p.plan = p.found[:n], p.plan[:n]
	}
	x.announce(slices.Values(p.found))
}

// AnnounceLiteral announces that Literal will be called with the windows.
func (x *Index) AnnounceLiteral(windows []ngram.Window) error {
	if !x.lists.Announces() || len(windows) == 0 {
		return nil
	}
	p, _ := planners.Get().(*planner)
	defer p.release()
	t, err := x.openedTable()
	if err != nil {
		return err
	}
	if p.locate(t, windows) {
		p.announce(x)
	}
	return nil
}

// locate finds the lists of the n-grams, each once, in the order of the terms. It returns false if one does not occur.
func (p *planner) locate(t *table, windows []ngram.Window) (found bool) {
	p.terms = p.terms[:0]
	for _, w := range windows {
		term, ok := t.ngrams.Find(uint64(w.ID))
		if !ok {
			return false
		}
		p.terms = append(p.terms, windowTerm{w, uint32(term)})
	}
	slices.SortStableFunc(p.terms, func(a, b windowTerm) int { return cmp.Compare(a.term, b.term) })
	p.found, p.plan = p.found[:0], p.plan[:0]
	for first := 0; first < len(p.terms); {
		end, term := first+1, p.terms[first].term
		for end < len(p.terms) && p.terms[end].term == term {
			end++
		}
		p.found, p.plan = append(p.found, t.find(term)), append(p.plan, planned{windows: p.terms[first:end]})
		first = end
	}
	return true
}

// lookup looks up the n-grams, each once, and puts the rarest first in plan. It returns false if
// one does not occur, and then reads no list: most literals that do not occur have such an n-gram.
func (p *planner) lookup(x *Index, windows []ngram.Window) (found bool, err error) {
	t, err := x.openedTable()
	if err != nil || !p.locate(t, windows) {
		return false, err
	}
	if x.lists.Announces() {
		p.announce(x)
	}
	p.lists = slices.Grow(p.lists[:0], len(p.found))[:len(p.found)]
	for i, at := range p.found {
		if err := p.lists[i].open(x, t, at); err != nil {
			return false, err
		}
		p.plan[i].list = &p.lists[i]
	}
	slices.SortStableFunc(p.plan, func(a, b planned) int { return cmp.Compare(a.list.DF(), b.list.DF()) })
	return true, nil
}

// maxFollowers is the most lists, the next rarest ones, that are read in addition to the anchor's.
const maxFollowers = 12

// Candidates walks the superblocks in which a literal may be. It allocates nothing. It is not safe
// for concurrent use.
type Candidates struct {
	anchor    ngram.Window
	lead      Iterator
	followers []follower
	started   bool
	settled   bool // the lead is at a candidate
	done      bool
	blocks    uint8
	err       error
}

// walks has the released Candidates.
var walks = sync.Pool{New: func() any { return new(Candidates) }}

// begin prepares the walk for the n-grams of a literal.
func (c *Candidates) begin(lead planned, others []planned) {
	c.anchor = lead.windows[0].Window
	c.lead.Reset(*lead.list)
	c.followers = slices.Grow(c.followers, len(others))[:len(others)]
	for i := range others {
		c.followers[i].reset(&others[i], c.anchor)
	}
}

// Release returns the memory for another literal. The caller must not use the Candidates
// afterwards.
func (c *Candidates) Release() {
	c.lead.release()
	for i := range c.followers {
		c.followers[i].it.release()
	}
	c.followers = c.followers[:0]
	c.started, c.settled, c.done, c.blocks, c.err = false, false, false, 0, nil
	walks.Put(c)
}

// Cost returns the number of superblocks with the anchor window, which is the most candidates
// possible. It is 0 if there are none.
func (c *Candidates) Cost() uint64 { return uint64(c.lead.list.df) }

// Lists returns the number of posting lists that are read.
func (c *Candidates) Lists() int {
	if c.Cost() == 0 {
		return 0
	}
	return 1 + len(c.followers)
}

// AnchorOffset bounds the distance in bytes from a match's start to its anchor window. The bounds
// differ in the same cases as those of ngram.Window.
func (c *Candidates) AnchorOffset() (least, most int) {
	return c.anchor.MinOffset, c.anchor.MaxOffset
}

// Err returns the error that ended the walk, nil at its regular end.
func (c *Candidates) Err() error { return c.err }

// Next moves to the next candidate: a superblock, and in blocks a bit j for each of its blocks in
// which the anchor window of a match may start. It returns false at the end or after an error. Do
// not mix it with SeekUpTo.
func (c *Candidates) Next() (superblock uint32, blocks uint8, ok bool) {
	if c.done {
		return 0, 0, false
	}
	c.started = true
	return c.settle(c.lead.step(), math.MaxUint32)
}

// SeekGE moves to the first candidate whose superblock is at least the given one, and never back:
// it stays at the current one if that is far enough.
func (c *Candidates) SeekGE(superblock uint32) (found uint32, blocks uint8, ok bool) {
	return c.SeekUpTo(superblock, math.MaxUint32)
}

// SeekUpTo is SeekGE for a candidate up to a last superblock. If it returns false, there is none up
// to there, but there may be later ones.
func (c *Candidates) SeekUpTo(superblock, last uint32) (found uint32, blocks uint8, ok bool) {
	if c.done {
		return 0, 0, false
	}
	there := c.started && c.lead.Superblock() >= superblock
	if there && c.settled {
		return c.lead.Superblock(), c.blocks, c.lead.Superblock() <= last
	}
	there = there || c.lead.seek(superblock)
	c.started = true
	return c.settle(there, last)
}

// settle advances the lead to the first candidate that is not before its place, and not beyond a
// last superblock; at says that the lead has a place.
func (c *Candidates) settle(at bool, last uint32) (superblock uint32, blocks uint8, ok bool) {
	for at {
		if c.settled = c.lead.Superblock() <= last; !c.settled {
			return 0, 0, false
		}
		next, more := c.meet()
		if next == c.lead.Superblock() {
			if c.blocks = c.match(); c.blocks != 0 {
				return next, c.blocks, true
			}
			at = c.err == nil && c.lead.step()
			continue
		}
		at = more && c.lead.seek(next)
	}
	c.done, c.err = true, cmp.Or(c.err, c.lead.err)
	for i := range c.followers {
		c.err = cmp.Or(c.err, c.followers[i].it.err)
	}
	return 0, 0, false
}

// meet returns the lead's superblock if all followers meet there, or else the least one where they
// may; more is false if they never will.
func (c *Candidates) meet() (next uint32, more bool) {
	superblock := c.lead.Superblock()
	for i := range c.followers {
		if ok, next, more := c.followers[i].meet(superblock); !ok {
			return next, more
		}
	}
	return superblock, true
}

// match returns the blocks of the lead's superblock that may hold the anchor.
func (c *Candidates) match() uint8 {
	blocks, err := c.lead.maskOf(c.lead.block.number, c.lead.i)
	for i := 0; err == nil && blocks != 0 && i < len(c.followers); i++ {
		blocks, err = c.followers[i].allow(blocks)
	}
	if err != nil {
		c.err = err
		return 0
	}
	return blocks
}
