package search

import (
	"fmt"
	"slices"
	"time"

	"github.com/trawl-search/trawl/index/query"
)

// explainer watches a search. It charges each read to the current node and phase of the search. A
// nil explainer does nothing.
type explainer struct {
	s     *search
	nodes []*explained
	of    map[any]*explained // by query.Q, node and *nameAtom
	root  *explained         // asked about every document that is looked at
	led   bool               // the root's plan names candidates
	// collects is set while ranges are collected: nodes are then asked a second time.
	collects bool
	stop     Stop
	other    Reads
	phases   [phases]time.Duration
	began    time.Time

	payer *Reads // receives the charges
	phase Phase
	mark  Reads // the reads when the current charge began
	since time.Time
}

// explained is a node of the query and its form in the shard.
type explained struct {
	ExplainedNode
	node   node // the last one made
	ranges bool // decided by paths and columns
}

// watch starts to explain the search if the caller asked for it and may read the whole shard: the
// reads depend on other repos too.
func (s *search) watch(q *Query) error {
	if !s.opts.Explain {
		return nil
	}
	if s.opts.Repos != nil {
		for repo := range s.docs.Repos() {
			if live, err := s.repos.live(repo); !live || err != nil {
				return err
			}
		}
	}
	s.explain = newExplainer(s, q)
	return nil
}

func newExplainer(s *search, q *Query) *explainer {
	e := &explainer{
		s: s, of: map[any]*explained{}, began: time.Now(),
	}
	e.list(q.tree, 0)
	e.root, e.payer, e.since, e.mark = e.nodes[0], &e.other, e.began, s.reads()
	return e
}

// list appends the nodes of a tree.
func (e *explainer) list(q query.Q, depth int) {
	n := &explained{ExplainedNode: ExplainedNode{Depth: depth}}
	var children []query.Q
	switch q := q.(type) {
	case *query.And:
		n.Query, children = "and", q.Children
	case *query.Or:
		if n.Query, children = "or", q.Children; q.Loose {
			n.Query = "any"
		}
	case *query.Not:
		n.Query, children = "not", []query.Q{q.Child}
	case *query.Type:
		n.Query, children = fmt.Sprintf("type:%s", q.Kind), []query.Q{q.Child}
	case *query.RepoSet:
		n.Query = "repos of a type:repo" // they may be very many
	default:
		n.Query = q.String()
	}
	e.nodes, e.of[q] = append(e.nodes, n), n
	for _, c := range children {
		e.list(c, depth+1)
	}
}

// reads returns everything that this search has read so far.
func (s *search) reads() Reads {
	return Reads{
		LexiconBlocks: s.counts.lexiconBlocks, Words: s.counts.words, Lists: s.stats.ListsRead, Postings: s.counts.postings,
		Bytes: s.reader.BytesDecoded, Units: s.reader.UnitsDecoded,
	}
}

// enter charges the reads until now, and charges the next ones to payer and phase.
func (e *explainer) enter(payer *Reads, phase Phase) (before *Reads, beforePhase Phase) {
	now, read := time.Now(), e.s.reads()
	spent := read
	spent.subtract(e.mark)
	spent.Time = now.Sub(e.since)
	e.payer.add(spent)
	e.phases[e.phase] += spent.Time
	before, beforePhase = e.payer, e.phase
	e.payer, e.phase, e.mark, e.since = payer, phase, read, now
	return before, beforePhase
}

func noExplainer() {}

// during charges a phase until the returned function is called.
func (e *explainer) during(phase Phase) (end func()) {
	if e == nil {
		return noExplainer
	}
	payer, before := e.enter(e.payer, phase)
	return func() { e.enter(payer, before) }
}

// charge charges the reads until now.
func (e *explainer) charge() {
	if e != nil {
		e.enter(e.payer, e.phase)
	}
}

// forNode charges a node of the query, in the current phase, until the returned function is called.
func (e *explainer) forNode(q query.Q) (end func()) {
	if e == nil || e.of[q] == nil {
		return noExplainer
	}
	payer, phase := e.enter(&e.of[q].Reads, e.phase)
	return func() { e.enter(payer, phase) }
}

// forNames charges the enumeration of an atom's paths until the returned function is called.
func (e *explainer) forNames(a *nameAtom) (end func()) {
	if e == nil {
		return noExplainer
	}
	payer := e.payer
	if n := e.of[a]; n != nil {
		payer = &n.Reads
	}
	payer, phase := e.enter(payer, PhaseNames)
	return func() { e.enter(payer, phase) }
}

// node makes a tree ready for this shard.
func (s *search) node(p *Query, q query.Q) (node, error) {
	if s.explain == nil {
		return s.compile(p, q)
	}
	defer s.explain.forNode(q)()
	n, err := s.compile(p, q)
	if n == nil || err != nil {
		return n, err
	}
	s.explain.made(q, n)
	return n, nil
}

// made records what a node of the query became.
func (e *explainer) made(q query.Q, n node) {
	x := e.of[q]
	x.node = n
	switch n := n.(type) {
	case constNode: // many nodes of the query can be one
	case *atomNode:
		e.of[n] = x
		if n.name != nil {
			e.of[n.name] = x
		}
	default:
		if e.of[n] == nil { // not if it is the node of a child
			e.of[n] = x
		}
	}
}

// scanning has every node of the search count what it is asked, until the returned function is
// called.
func (e *explainer) scanning() (end func()) {
	if e == nil {
		return noExplainer
	}
	switch root := e.watched(e.s.root, false).(type) {
	case *watchedNode:
		e.root, e.s.root = root.x, root
	default:
		e.s.root = &watchedNode{root, e, e.root}
	}
	e.led = e.s.plansCandidates()
	return e.during(PhaseScan)
}

// plansCandidates reports whether the plan of the query names candidates in the shard.
func (s *search) plansCandidates() bool {
	p, err := s.root.plan()
	return err == nil && p.narrow()
}

// watched returns a node that counts what it is asked. With ranges, paths and columns have decided
// the node, and it is asked nothing.
func (e *explainer) watched(n node, ranges bool) node {
	switch n := n.(type) {
	case constNode:
		return n
	case *andNode:
		for i, c := range n.children {
			at := slices.Index(n.rest, c)
			n.children[i] = e.watched(c, ranges || at < 0)
			if at >= 0 {
				n.rest[at] = n.children[i]
			}
		}
	case *orNode:
		for i, c := range n.children {
			n.children[i] = e.watched(c, ranges)
		}
	case *notNode:
		n.child = e.watched(n.child, ranges)
	case *fileNameNode:
		n.child = e.watched(n.child, ranges)
	}
	x := e.of[n]
	if x == nil {
		return n
	}
	x.ranges, x.Estimate = ranges, e.estimate(n, ranges)
	return &watchedNode{n, e, x}
}

func (e *explainer) estimate(n node, ranges bool) uint64 {
	if ranges {
		if found, ok, err := n.documents(anyCost); ok && err == nil {
			return found.count()
		}
	}
	if p, err := n.plan(); err == nil && p.narrow() {
		return p.estimate
	}
	return uint64(e.s.content.Blobs())
}

// watchedNode counts what a node is asked.
type watchedNode struct {
	node
	e *explainer
	x *explained
}

func (w *watchedNode) matches(d *document) (bool, error) {
	payer, phase := w.e.enter(&w.x.Reads, w.e.phase)
	ok, err := w.node.matches(d)
	w.e.enter(payer, phase)
	if w.e.collects {
		return ok, err
	}
	w.x.Checked++
	if ok {
		w.x.Matched++
	}
	return ok, err
}

func (w *watchedNode) collect(d *document, g *gathered) error {
	collects := w.e.collects
	w.e.collects = true
	payer, phase := w.e.enter(&w.x.Reads, w.e.phase)
	err := w.node.collect(d, g)
	w.e.enter(payer, phase)
	w.e.collects = collects
	return err
}

// leftOutBelow records why documents from doc on, whose score is at most a ceiling, are left out.
func (e *explainer) leftOutBelow(ceiling float64, doc uint32) {
	if e == nil {
		return
	}
	s := e.s
	if s.opts.After != nil {
		ceiling = min(ceiling, s.opts.After.Score)
	}
	if s.best.admits(ceiling, doc) && (s.workers == nil || s.workers.admits(ceiling, doc)) {
		e.stop = StoppedByFloor
	} else {
		e.stop = max(e.stop, StoppedByOwn)
	}
}

// forget drops what a helper read to make the query ready: the search has counted that already.
func (e *explainer) forget() {
	if e == nil {
		return
	}
	e.enter(e.payer, e.phase)
	e.other = e.other.content()
	for _, x := range e.nodes {
		x.Reads = x.content()
	}
	e.mark = e.s.reads()
}

// content returns only the reads of content, and the time.
func (r *Reads) content() Reads { return Reads{Bytes: r.Bytes, Units: r.Units, Time: r.Time} }

// join adds what a helper did.
func (e *explainer) join(part *explainer) {
	if e == nil {
		return
	}
	part.enter(&part.other, part.phase)
	for i, x := range part.nodes {
		e.nodes[i].Checked += x.Checked
		e.nodes[i].Matched += x.Matched
		e.nodes[i].add(x.Reads)
	}
	e.other.add(part.other)
	for i, took := range part.phases {
		e.phases[i] += took
	}
	e.stop = max(e.stop, part.stop)
	e.mark = e.s.reads() // these include the helper's
}

// explained returns the explanation of the search, which has ended; nil if the caller did not ask
// for one.
func (s *search) explained() *Explanation {
	e := s.explain
	if e == nil {
		return nil
	}
	e.enter(&e.other, PhasePlan)
	x := &Explanation{
		Other: e.other, Phases: e.phases, Elapsed: time.Since(e.began), Candidates: s.counts.candidates,
		Bulk: s.stats.FilesMatched - e.root.Matched, WholeWords: s.tier == wholeWords, Stopped: e.stop,
	}
	for _, n := range e.nodes {
		if is := e.of[n.node]; is != nil && is != n { // its child, whose results it passes on unchanged
			n.Checked, n.Matched, n.Estimate, n.ranges = is.Checked, is.Matched, is.Estimate, is.ranges
		}
		n.Methods = e.methods(n)
		x.Nodes = append(x.Nodes, n.ExplainedNode)
	}
	return x
}

// explainShow explains how files were shown. took is the time.
func (s *search) explainShow(took time.Duration) *Explanation {
	x := &Explanation{Other: s.reads(), Elapsed: took}
	x.Other.Time, x.Phases[PhaseShow] = took, took
	return x
}
