package inverted

import "github.com/trawl-search/trawl/index/ngram"

// relation says where a window must start, given the block in which the anchor window of the same
// match starts. All windows of a literal start within ngram.MaxSpan, one block, of each other, so
// that is the same block or the adjacent one on the window's side of the anchor.
type relation uint8

const (
	sameBlock   relation = 1 << iota // at the anchor's offset
	blockAfter                       // in the anchor's block or the next one
	blockBefore                      // in the anchor's block or the one before
)

// place is the place of a posting in a list.
type place struct {
	number, i int
	there     bool
}

// follower checks a window other than the anchor. The superblocks before and after the anchor's may
// belong to other texts, which can cost a needless candidate but not lose a match.
type follower struct {
	it      Iterator
	related relation
	// near has the postings of the superblock before the anchor's, of the anchor's own, and of the
	// next one.
	near [3]place
}

// reset prepares the follower for the n-gram of a literal with that anchor.
func (f *follower) reset(p *planned, anchor ngram.Window) {
	f.it.Reset(*p.list)
	f.related = 0
	for _, w := range p.windows {
		switch {
		case w.MinOffset > anchor.MinOffset:
			f.related |= blockAfter
		case w.MinOffset < anchor.MinOffset:
			f.related |= blockBefore
		default: // both share a rune of any match, so they start in the same block, and there is no stricter relation
			f.related = sameBlock
			return
		}
	}
}

// meet looks for the window around superblock. If it is not there, next is the least superblock
// where it may be, and more is false if there is none.
func (f *follower) meet(superblock uint32) (ok bool, next uint32, more bool) {
	f.near = [3]place{}
	low, high := superblock, superblock
	if f.related&blockBefore != 0 && superblock > 0 {
		low--
	}
	if f.related&blockAfter != 0 {
		high++
	}
	if !f.it.seek(low) {
		return false, 0, false
	}
	if first := f.it.Superblock(); first > high {
		if f.related == blockAfter {
			first--
		}
		return false, first, true
	}
	for more = true; more && f.it.Superblock() <= high; more = f.it.step() {
		f.near[f.it.Superblock()+1-superblock] = place{f.it.block.number, f.it.i, true}
	}
	before, own, after := f.near[0].there, f.near[1].there, f.near[2].there
	ok = own || f.related == blockAfter && after || f.related == blockBefore && before ||
		f.related == blockAfter|blockBefore && before && after
	return ok, superblock + 1, true
}

// allow returns those of the anchor's blocks around which the window starts in the right place, in
// the superblock last met.
func (f *follower) allow(anchor uint8) (uint8, error) {
	own, err := f.mask(1)
	if err != nil || f.related == sameBlock {
		return anchor & own, err
	}
	if f.related&blockAfter != 0 {
		allowed := own | own>>1
		if anchor&^allowed&0x80 != 0 {
			next, err := f.mask(2)
			if err != nil {
				return 0, err
			}
			allowed |= next << 7
		}
		anchor &= allowed
	}
	if f.related&blockBefore != 0 {
		allowed := own | own<<1
		if anchor&^allowed&1 != 0 {
			last, err := f.mask(0)
			if err != nil {
				return 0, err
			}
			allowed |= last >> 7
		}
		anchor &= allowed
	}
	return anchor, nil
}

// mask returns the mask of a posting of near, 0 if there is none.
func (f *follower) mask(at int) (uint8, error) {
	p := f.near[at]
	if !p.there {
		return 0, nil
	}
	return f.it.maskOf(p.number, p.i)
}
