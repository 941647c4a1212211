package search

import (
	"github.com/trawl-search/trawl/index/rank"
)

// atomNode is a Substring or Regexp of the query: it finds a text in the content, the path, or either.
type atomNode struct {
	content contentNode // nil with scope FileName
	name    *nameAtom   // nil with scope Content
	// word says where the text may be defined as a whole word.
	word nameIn
	// loose is set for a word of a match:any.
	loose *rank.LooseWord
}

// matchesNothing reports whether it is known that no document matches.
func (n *atomNode) matchesNothing() bool {
	if n.name != nil && !(n.name.candidates.narrow && n.name.candidates.superblocks == 0) {
		return false
	}
	a, ok := n.content.(*wordAtom)
	return ok && len(a.hits.blobs) == 0
}

// contentNode finds a text in the content of documents: a wordAtom or a contentAtom.
type contentNode interface {
	plan() (plan, error)
	cost() uint64
	matches(d *document) (bool, error)
	// gather adds the ranges in a document, or counts them, and returns how many there are. It counts whole
	// words beyond rank.Enough only as far as they score.
	gather(d *document, g *gathered) (rank.Counts, error)
}

func (n *atomNode) documents(budget uint64) (runs, bool, error) {
	if n.content != nil {
		return nil, false, nil
	}
	return n.name.documents(budget)
}

func (n *atomNode) plan() (p plan, err error) {
	switch {
	case n.name == nil:
		p, err = n.content.plan()
	case n.content == nil:
		p = n.name.plan()
	default:
		p, err = n.planBoth()
	}
	p.texts = 1
	return p, err
}

func (n *atomNode) planBoth() (plan, error) {
	p, err := n.content.plan()
	if err != nil || !p.narrow() {
		return plan{}, err
	}
	q := n.name.plan()
	return plan{estimate: p.estimate + q.estimate, counted: p.counted, open: func(budget uint64) (blobs, error) {
		content, err := p.open(budget)
		if content == nil || err != nil {
			return nil, err
		}
		name, err := q.open(budget)
		if name == nil || err != nil {
			return nil, err
		}
		return &atomBlobs{in: [2]blobs{content, name}}, nil
	}}, nil
}

func (n *atomNode) matches(d *document) (bool, error) {
	if n.name != nil {
		if ok, err := n.name.matches(d); ok || err != nil {
			return ok, err
		}
	}
	if n.content != nil {
		return n.content.matches(d)
	}
	return false, nil
}

func (n *atomNode) collect(d *document, g *gathered) error {
	term := rank.Term{Loose: n.loose}
	if n.content != nil && !g.namesOnly {
		counts, err := n.content.gather(d, g)
		if err != nil {
			return err
		}
		length, err := d.s.content.Len(d.blob)
		if err != nil {
			return err
		}
		term.Content, term.Matches = counts.Best(units(length))
		if term.Defined, err = n.word.defines(d); err != nil {
			return err
		}
	}
	if n.name != nil {
		spans, best, err := n.name.spans(d)
		if err != nil {
			return err
		}
		term.Name, g.name = best, append(g.name, spans...)
	}
	if term.Matches > 0 || term.Name > rank.NoName {
		g.terms = append(g.terms, term)
	}
	return nil
}

func (n *atomNode) cost() uint64 {
	var sum uint64
	if n.name != nil {
		sum += costPath
	}
	if n.content != nil {
		sum += n.content.cost()
	}
	return sum
}

// gathered are the ranges of one document.
type gathered struct {
	content []*spanList // per atom that has some
	name    []span
	shown   []mark       // the first of all ranges in the content
	packed  []byte       // those of the last hit
	merge   []spanReader // a heap
	of      []int        // how many of these each text has
	// matches is the number of ranges in the content, the sum over all atoms.
	matches int
	// inWords has, for each atom whose matches were counted but not read, where they are.
	inWords []inWords
	// namesOnly leaves content ranges out.
	namesOnly bool
	// terms says how the atoms that have a range match.
	terms []rank.Term
}

// release drops the references to the atoms' lists.
func (g *gathered) release() {
	clear(g.content[:cap(g.content)])
	clear(g.inWords[:cap(g.inWords)])
	clear(g.merge[:cap(g.merge)])
}

func (g *gathered) reset() {
	*g = gathered{content: g.content[:0], name: g.name[:0], inWords: g.inWords[:0], terms: g.terms[:0], shown: g.shown[:0], packed: g.packed, merge: g.merge[:0], of: g.of[:0]}
}
