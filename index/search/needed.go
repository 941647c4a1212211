package search

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/literal"
	"github.com/trawl-search/trawl/index/regex"
)

// needed plans to find the blobs that may hold what a match needs. The plan is not narrow if any may.
func (a *contentAtom) needed(needs regex.Needs) (plan, error) {
	switch n := needs.(type) {
	case regex.Literal:
		found, err := a.s.contentPlaces(n)
		if err != nil || found == nil {
			return plan{}, err
		}
		b := &literalBlobs{places: found, s: a.s, maxLen: literal.MaxLen(n.Text, n.CaseSensitive)}
		p := ready(b, uint64(len(found.tallies)))
		p.anchors = []*literalBlobs{b}
		return p, nil
	case regex.And:
		return a.allNeeded(n.Children)
	case regex.Or:
		var parts []plan
		for _, c := range n.Children {
			p, err := a.needed(c)
			if err != nil || !p.narrow() {
				return plan{}, err
			}
			parts = append(parts, p)
		}
		return eitherOf(parts), nil
	}
	return plan{}, nil
}

// allNeeded plans to find the blobs that may hold all of several parts, those with the cheapest lookups first. A part whose lookup costs more than
// verifying the places that are left is skipped, unless whole texts may be read for that.
func (a *contentAtom) allNeeded(all []regex.Needs) (plan, error) {
	type part struct {
		regex.Needs
		blocks uint64
	}
	parts := make([]part, len(all))
	for i, needs := range all {
		blocks, err := a.s.lookupBlocks(needs)
		if err != nil {
			return plan{}, err
		}
		parts[i] = part{needs, blocks}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.blocks, b.blocks) })
	var plans []plan
	left := uint64(anyCost)
	for _, part := range parts {
		if left == 0 || a.bounded && part.blocks > left {
			break
		}
		p, err := a.needed(part.Needs)
		if err != nil {
			return plan{}, err
		}
		if p.narrow() {
			plans, left = append(plans, p), min(left, p.estimate)
		}
	}
	return a.s.bothOf(plans), nil
}

// lookupBlocks is about how many blocks of the lexicon are read to look up needs. Verifying a place takes about as long as reading one.
func (s *search) lookupBlocks(needs regex.Needs) (blocks uint64, err error) {
	for l := range regex.Literals(needs) {
		text, ok := wordText(l)
		if !ok {
			if p := piecesOf(l.Text); len(p) == 1 && p[0].ends {
				text, ok = p[0].text, true
			}
		}
		if !ok {
			blocks++ // for n-grams, or words whose start is known
			continue
		}
		candidates, ok, err := s.words.Holding(text)
		if err != nil {
			return 0, err
		}
		if !ok {
			return uint64(s.words.Blocks()), nil
		}
		blocks += candidates.Cost()
		candidates.Release()
	}
	return blocks, nil
}
