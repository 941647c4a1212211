package shard

import (
	"cmp"
	"slices"
)

// node is a query tree made ready for one shard. matches and collect see each
// document after plan's candidates reached its blob, blobs ascending.
type node interface {
	// plan narrows the blobs that can match; see plan.
	plan() (plan, error)
	// matches decides the document.
	matches(d *document) (bool, error)
	// collect adds the ranges of a document that matches.
	collect(d *document, g *gathered) error
	// cost orders children: what is cheap to decide comes first.
	cost() uint64
}

// plan is a way to enumerate a superset of the matching blobs.
type plan struct {
	// blobs is nil when every blob is a candidate.
	blobs blobs
	// estimate of how many candidates there are.
	estimate uint64
	// setup is how many paths, or numbers of documents, open decodes.
	setup uint64
	// counted says that the candidates of a blob's content are its matches: nothing is read
	// to verify them.
	counted bool
	// open, when set, makes blobs at a cost of about estimate; it is called
	// only when the plan is used.
	open func() (blobs, error)
}

func (p plan) narrow() bool { return p.blobs != nil || p.open != nil }

// iterator makes the plan's blobs.
func (p plan) iterator() (blobs, error) {
	if p.open != nil {
		return p.open()
	}
	return p.blobs, nil
}

// Costs of nodes only order them: a column is read sooner than a path, and
// that sooner than content. They are guesses of nanoseconds for each document.
const (
	costConst   = 1
	costColumn  = 20
	costPath    = 200
	costContent = 10_000
	costScan    = 1_000_000
)

type andNode struct{ children []node }

// newAnd is false when a child is; what is true anyway is left out.
func newAnd(children []node) node {
	if slices.Contains(children, node(constNode(false))) {
		return constNode(false)
	}
	children = slices.DeleteFunc(children, func(n node) bool { return n == constNode(true) })
	slices.SortStableFunc(children, func(a, b node) int {
		return int(min(a.cost(), costScan)) - int(min(b.cost(), costScan))
	})
	return &andNode{children}
}

// plan intersects the parts, the smallest leading.
func (n *andNode) plan() (plan, error) {
	var parts []plan
	for _, c := range n.children {
		p, err := c.plan()
		if err != nil {
			return plan{}, err
		}
		if p.narrow() {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return plan{}, nil
	}
	slices.SortStableFunc(parts, func(a, b plan) int { return cmp.Compare(a.estimate, b.estimate) })
	lead := parts[0]
	return plan{estimate: lead.estimate, setup: lead.setup, counted: lead.counted, open: func() (blobs, error) { return openAll(parts) }}, nil
}

// setupPays is how many paths may be decoded for each candidate that it may
// save: that takes some 0.2 µs, verifying a candidate 2.5 µs and more. Where nothing
// is to be verified, the path of a candidate is all that is read.
const setupPays = 8

func (p plan) setupPays() uint64 {
	if p.counted {
		return 1
	}
	return setupPays
}

// openAll leaves out parts that cost more to enumerate than they can save.
func openAll(parts []plan) (blobs, error) {
	var all allOf
	for i, p := range parts {
		if i > 0 && p.setup > parts[0].setupPays()*parts[0].estimate {
			continue
		}
		it, err := p.iterator()
		if err != nil {
			return nil, err
		}
		all = append(all, it)
	}
	return all, nil
}

func (n *andNode) matches(d *document) (bool, error) {
	for _, c := range n.children {
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

func (n *andNode) cost() (sum uint64) {
	for _, c := range n.children {
		sum += c.cost()
	}
	return sum
}

// orNode may hold what is true anyway: the ranges of the others are shown all the same.
type orNode struct{ children []node }

func newOr(children []node) node {
	children = slices.DeleteFunc(children, func(n node) bool { return n == constNode(false) })
	if len(children) == 0 {
		return constNode(false)
	}
	return &orNode{children}
}

func (n *orNode) plan() (plan, error) {
	var parts []plan
	var sum, setup uint64
	counted := true
	for _, c := range n.children {
		p, err := c.plan()
		if err != nil || !p.narrow() {
			return plan{}, err
		}
		parts = append(parts, p)
		sum += p.estimate
		setup += p.setup
		counted = counted && p.counted
	}
	return plan{estimate: sum, setup: setup, counted: counted, open: func() (blobs, error) { return openAny(parts) }}, nil
}

func openAny(parts []plan) (blobs, error) {
	var some anyOf
	for _, p := range parts {
		it, err := p.iterator()
		if err != nil {
			return nil, err
		}
		some = append(some, it)
	}
	return some, nil
}

func (n *orNode) matches(d *document) (bool, error) {
	for _, c := range n.children {
		if ok, err := c.matches(d); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// collect asks every child again: matches stopped at the first.
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

func (n *orNode) cost() (sum uint64) {
	for _, c := range n.children {
		sum += c.cost()
	}
	return sum
}

type notNode struct{ child node }

func (n *notNode) plan() (plan, error) { return plan{}, nil }

func (n *notNode) matches(d *document) (bool, error) {
	ok, err := n.child.matches(d)
	return !ok && err == nil, err
}

func (n *notNode) collect(*document, *gathered) error { return nil }

func (n *notNode) cost() uint64 { return n.child.cost() }

// fileNameNode is type:filename: ranges in the content are not shown.
type fileNameNode struct{ child node }

func (n *fileNameNode) plan() (plan, error)               { return n.child.plan() }
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
	return plan{blobs: &blobList{}}, nil
}

func (n constNode) matches(*document) (bool, error)    { return bool(n), nil }
func (n constNode) collect(*document, *gathered) error { return nil }
func (n constNode) cost() uint64                       { return costConst }
