package search

import (
	"cmp"
	"math"
	"slices"
)

// node is a query tree prepared for one shard. The search calls matches and collect for the documents of
// plan's candidates, in any order of blobs.
type node interface {
	// documents returns the matching documents, if paths and columns alone decide. It looks at up
	// to budget paths. ok is false if more than paths and columns decides, or if the budget is too
	// small.
	documents(budget uint64) (found runs, ok bool, err error)
	// plan narrows down the blobs that can match; see plan.
	plan() (plan, error)
	// matches reports whether the document matches.
	matches(d *document) (bool, error)
	// collect adds the ranges of a document that matches.
	collect(d *document, g *gathered) error
	// cost orders children: the cheap ones decide first.
	cost() uint64
}

// plan is a way to enumerate a superset of the matching blobs.
type plan struct {
	// open makes the candidates when the plan is used, which is once; it is nil if every blob is one. It looks at up to budget paths, and returns
	// nil if that is not enough.
	open func(budget uint64) (blobs, error)
	// estimate is the expected number of candidates.
	estimate uint64
	// counted says that the candidates of a blob's content are its matches, so that nothing is read
	// to verify them.
	counted bool
	// texts is how many texts of the query can match.
	texts int
	// anchors are set in the plan for a text: literals such that every match holds one of them.
	anchors []*literalBlobs
}

// ready is a plan whose candidates are known.
func ready(candidates blobs, estimate uint64) plan {
	return plan{open: func(uint64) (blobs, error) { return candidates, nil }, estimate: estimate}
}

// anyCost is the budget for work that must be done.
const anyCost = math.MaxUint64

func (p plan) narrow() bool { return p.open != nil }

type andNode struct {
	s        *search
	children []node
	// filter has the documents that some of the children let through, if paths and columns alone
	// decide any child; rest has the other children.
	filter   runs
	filtered bool
	blobs    runs // of the filter, once asked for
	rest     []node
}

// add adds a child that is not false. It drops a child that is always true.
func (n *andNode) add(c node) {
	if c != constNode(true) {
		n.children, n.rest = append(n.children, c), append(n.rest, c)
	}
}

// sort puts cheap children first.
func (n *andNode) sort() {
	for _, list := range [][]node{n.children, n.rest} {
		slices.SortStableFunc(list, func(a, b node) int {
			return int(min(a.cost(), costScan)) - int(min(b.cost(), costScan))
		})
	}
}

// decide moves children that paths and columns alone decide from rest to the filter. It looks at up
// to budget paths for each.
func (n *andNode) decide(budget uint64) (err error) {
	n.rest = slices.DeleteFunc(n.rest, func(c node) bool {
		if err != nil {
			return false
		}
		found, ok, failed := c.documents(budget)
		if err = failed; !ok || err != nil {
			return false
		}
		if n.filtered {
			found = found.and(n.filter)
		}
		n.filter, n.filtered, n.blobs = found, true, nil
		return true
	})
	return err
}

// filterBlobs returns the blobs of the documents that the filter lets through.
func (n *andNode) filterBlobs() (_ runs, err error) {
	if n.blobs == nil {
		n.blobs, err = n.s.blobsOf(n.filter)
	}
	return n.blobs, err
}

func (n *andNode) documents(budget uint64) (runs, bool, error) {
	if err := n.decide(budget); err != nil || len(n.rest) > 0 {
		return nil, false, err
	}
	if !n.filtered {
		return runs{}.add(0, n.s.docs.Len()), true, nil
	}
	return n.filter, true, nil
}

// plan intersects the filter and the other children, the smallest leading.
func (n *andNode) plan() (plan, error) {
	var parts []plan
	if n.filtered {
		blobs, err := n.filterBlobs()
		if err != nil {
			return plan{}, err
		}
		parts = append(parts, ready(&blobRuns{rest: blobs}, blobs.count()))
	}
	for _, c := range n.rest {
		p, err := c.plan()
		if err != nil {
			return plan{}, err
		}
		parts = append(parts, p)
	}
	return n.s.bothOf(parts), nil
}

// bothOf is the plan for what all of some plans have. The one with the fewest candidates leads.
func (s *search) bothOf(parts []plan) plan {
	slices.SortStableFunc(parts, func(a, b plan) int {
		switch {
		case a.narrow() == b.narrow():
			return cmp.Compare(a.estimate, b.estimate)
		case a.narrow():
			return -1
		}
		return 1
	})
	var all plan
	if len(parts) > 0 && parts[0].narrow() {
		all = parts[0]
		all.open = func(budget uint64) (blobs, error) { return s.openAll(parts, budget) }
	}
	all.texts = 0
	for _, p := range parts {
		all.texts += p.texts
	}
	return all
}

// looksPay is how many paths may be looked at for each candidate that this may save. A look takes
// some 0.2 µs, and verifying a candidate takes 2.5 µs and more. If nothing has to be verified, only
// the path of a candidate is read.
func (p plan) looksPay() uint64 {
	if p.counted {
		return 2
	}
	return 8
}

// openAll opens the parts, the best first. It leaves out parts that have no plan, and those that cost more to enumerate than they can save.
// Nothing is known of these until documents are looked at.
func (s *search) openAll(parts []plan, budget uint64) (blobs, error) {
	var all allOf
	left, rest := false, everyBlob{blobs: s.content.Blobs()}
	for _, p := range parts {
		var it blobs
		if p.narrow() {
			var err error
			if it, err = p.open(budget); err != nil {
				return nil, err
			}
		}
		if it == nil {
			left, rest.texts = true, rest.texts+p.texts
			continue
		}
		if all = append(all, it); len(all) == 1 {
			if found, ok := it.(*blobRuns); ok { // they were enumerated
				p.estimate = min(p.estimate, found.rest.count())
			}
			budget = p.looksPay() * p.estimate
		}
	}
	switch {
	case len(all) == 0:
		return nil, nil
	case left:
		return append(all, rest), nil
	}
	return all, nil
}

func (n *andNode) matches(d *document) (bool, error) {
	if n.filtered && !n.filter.has(d.id) {
		return false, nil
	}
	for _, c := range n.rest {
		if ok, err := c.matches(d); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (n *andNode) collect(d *document, g *gathered) error {
	for _, c := range n.children {
		if err := c.collect(d, g); err != nil {
			return err
		}
	}
	return nil
}

func (n *andNode) cost() uint64 { return costOf(n.children) }

func costOf(nodes []node) (sum uint64) {
	for _, n := range nodes {
		sum += n.cost()
	}
	return sum
}

// orNode keeps children that are always true: the ranges of the others are still shown.
type orNode struct{ children []node }

func (n *orNode) plan() (plan, error) {
	parts := make([]plan, 0, len(n.children))
	for _, c := range n.children {
		p, err := c.plan()
		if err != nil {
			return plan{}, err
		}
		parts = append(parts, p)
	}
	return eitherOf(parts), nil
}

// eitherOf combines plans, at least one of which must match.
func eitherOf(parts []plan) plan {
	joined := plan{counted: true}
	for _, p := range parts {
		joined.estimate += p.estimate
		joined.texts += p.texts
		joined.anchors = append(joined.anchors, p.anchors...)
		joined.counted = joined.counted && p.counted
	}
	if slices.ContainsFunc(parts, func(p plan) bool { return !p.narrow() }) {
		return plan{texts: joined.texts}
	}
	joined.open = func(budget uint64) (blobs, error) {
		either := &anyOf{}
		for _, p := range parts {
			it, err := p.open(budget)
			if it == nil || err != nil {
				return nil, err
			}
			either.parts = append(either.parts, partOf{blobs: it})
		}
		return either, nil
	}
	return joined
}

func (n *orNode) documents(budget uint64) (either runs, ok bool, err error) {
	for _, c := range n.children {
		found, ok, err := c.documents(budget)
		if !ok || err != nil {
			return nil, false, err
		}
		either = either.or(found)
	}
	return either, true, nil
}

func (n *orNode) matches(d *document) (bool, error) {
	for _, c := range n.children {
		if ok, err := c.matches(d); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// collect asks every child again, because matches stops at the first one that matches.
func (n *orNode) collect(d *document, g *gathered) error {
	for _, c := range n.children {
		ok, err := c.matches(d)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := c.collect(d, g); err != nil {
			return err
		}
	}
	return nil
}

func (n *orNode) cost() uint64 { return costOf(n.children) }

type notNode struct {
	s     *search
	child node
}

func (n *notNode) documents(budget uint64) (runs, bool, error) {
	found, ok, err := n.child.documents(budget)
	if !ok || err != nil {
		return nil, false, err
	}
	return found.not(n.s.docs.Len()), true, nil
}

func (n *notNode) plan() (plan, error) { return plan{}, nil }

func (n *notNode) matches(d *document) (bool, error) {
	ok, err := n.child.matches(d)
	return !ok && err == nil, err
}

func (n *notNode) collect(*document, *gathered) error { return nil }

func (n *notNode) cost() uint64 { return n.child.cost() }

// fileNameNode is type:filename: it does not show ranges in the content.
type fileNameNode struct{ child node }

func (n *fileNameNode) documents(budget uint64) (runs, bool, error) { return n.child.documents(budget) }

func (n *fileNameNode) plan() (plan, error) {
	p, err := n.child.plan()
	if err != nil || !p.narrow() {
		return p, err
	}
	return plan{estimate: p.estimate, texts: p.texts, open: func(budget uint64) (blobs, error) {
		it, err := p.open(budget)
		if it == nil || err != nil {
			return nil, err
		}
		return withoutContent{it}, nil
	}}, nil
}

func (n *fileNameNode) matches(d *document) (bool, error) { return n.child.matches(d) }
func (n *fileNameNode) cost() uint64                      { return n.child.cost() }

func (n *fileNameNode) collect(d *document, g *gathered) error {
	outer := g.namesOnly
	g.namesOnly = true
	err := n.child.collect(d, g)
	g.namesOnly = outer
	return err
}

type constNode bool

func (n constNode) plan() (plan, error) {
	if n {
		return plan{}, nil
	}
	return ready(&blobRuns{}, 0), nil
}

// documents returns ok false for a node that is true: it is decided for the whole shard.
func (n constNode) documents(uint64) (runs, bool, error) { return nil, !bool(n), nil }

func (n constNode) matches(*document) (bool, error)    { return bool(n), nil }
func (n constNode) collect(*document, *gathered) error { return nil }
func (n constNode) cost() uint64                       { return costConst }
