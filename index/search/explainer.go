package search

import (
	"fmt"
	"slices"
	"time"

	"github.com/trawl-search/trawl/index/query"
)

// explainer watches a search, which stays on one goroutine. It charges each read to the current node and phase of the
// search. A nil explainer does nothing.
type explainer struct {
	*Explanation
	s     *search
	of    map[any]*ExplainedNode // by query.Q, node and *nameAtom
	root  *ExplainedNode         // asked about every document that is looked at
	led   bool                   // the root's plan names candidates
	began time.Time

	payer *Reads // receives the charges
	phase Phase
	mark  Reads // the reads when the current charge began, and the time since began
}

// watch starts to explain the search if the caller asked for it and may read the whole shard: the
// reads depend on other repos too.
func (s *search) watch() error {
	if !s.opts.Explain {
		return nil
	}
	if s.opts.Repos != nil {
		for repo := range s.docs.Repos() {
			if !s.repos.live(repo) {
				return nil
			}
		}
	}
	e := &explainer{Explanation: &Explanation{Repos: s.docs.Repos()}, s: s, of: map[any]*ExplainedNode{}, began: time.Now()}
	if e.Repos > 0 {
		var err error
		if e.Repo, err = s.docs.RepoName(0); err != nil {
			return err
		}
	}
	e.list(s.query.tree, 0)
	e.root, e.payer, e.mark = e.Nodes[0], &e.Other, s.allReads(e.began)
	s.explain = e
	return nil
}

// list appends the nodes of a tree.
func (e *explainer) list(q query.Q, depth int) {
	n := &ExplainedNode{Depth: depth}
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
	e.Nodes, e.of[q] = append(e.Nodes, n), n
	for _, c := range children {
		e.list(c, depth+1)
	}
}

// allReads returns what the search, which began at a time, has read so far.
func (s *search) allReads(began time.Time) Reads {
	r := s.reads
	r.Lists, r.Bytes, r.Units, r.Time = s.stats.ListsRead, s.reader.BytesDecoded, s.reader.UnitsDecoded, time.Since(began)
	return r
}

// enter charges the reads until now, and charges the next ones to payer and phase.
func (e *explainer) enter(payer *Reads, phase Phase) (before *Reads, beforePhase Phase) {
	now := e.s.allReads(e.began)
	e.payer.add(&now, 1)
	e.payer.add(&e.mark, -1)
	e.Phases[e.phase] += now.Time - e.mark.Time
	before, beforePhase = e.payer, e.phase
	e.payer, e.phase, e.mark = payer, phase, now
	return before, beforePhase
}

func noExplainer() {}

// during charges a phase until the returned function is called.
func (e *explainer) during(phase Phase) (end func()) { return e.charge(nil, phase) }

// charge charges a phase and a node, if the query has it, until the returned function is called.
func (e *explainer) charge(node any, phase Phase) (end func()) {
	if e == nil {
		return noExplainer
	}
	payer := e.payer
	if x := e.of[node]; x != nil {
		payer = &x.Reads
	}
	payer, phase = e.enter(payer, phase)
	return func() { e.enter(payer, phase) }
}

// leads records that places, unless they are nil, lead to the candidates of the current node.
func (e *explainer) leads(p *places) {
	if e == nil || p == nil {
		return
	}
	method := ByWordsAndText
	if p.byNgrams {
		method = ByNgramsAndText
	}
	for _, n := range e.Nodes {
		if &n.Reads == e.payer && !slices.Contains(n.Methods, method) {
			n.Methods = append(n.Methods, method)
		}
	}
}

// made records what a node of the query became.
func (e *explainer) made(q query.Q, n node) {
	if e == nil || n == nil || e.of[q] == nil {
		return
	}
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
	p, err := e.s.root.plan()
	e.led = err == nil && p.narrow()
	return e.during(PhaseScan)
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
	x *ExplainedNode
}

func (w *watchedNode) matches(d *document) (bool, error) {
	payer, phase := w.e.enter(&w.x.Reads, w.e.phase)
	ok, err := w.node.matches(d)
	w.e.enter(payer, phase)
	if phase != PhaseRank { // nodes are asked a second time there
		w.x.Checked++
		if ok {
			w.x.Matched++
		}
	}
	return ok, err
}

func (w *watchedNode) collect(d *document, g *gathered) error {
	defer w.e.charge(w.x.node, PhaseRank)()
	return w.node.collect(d, g)
}

// explained returns the explanation of the search, which has ended; nil if the caller did not ask
// for one.
func (s *search) explained() *Explanation {
	e := s.explain
	if e == nil {
		return nil
	}
	e.enter(&e.Other, PhasePlan)
	e.Elapsed, e.Candidates = e.mark.Time, s.looked
	e.Bulk, e.Inexact = s.stats.FilesMatched-e.root.Matched, s.stats.CountsInexact
	for _, n := range e.Nodes {
		if is := e.of[n.node]; is != nil && is != n { // its child, whose results it passes on unchanged
			n.Checked, n.Matched, n.Estimate, n.ranges = is.Checked, is.Matched, is.Estimate, is.ranges
		}
		n.Methods = e.methods(n)
		n.node = nil // the explanation outlives the search
	}
	return e.Explanation
}

// methods says how a node was answered.
func (e *explainer) methods(x *ExplainedNode) []string {
	if x.ranges {
		return []string{ByRanges}
	}
	switch n := x.node.(type) {
	case nil:
		return []string{NotAsked}
	case constNode:
		if n {
			return []string{ByShardAll}
		}
		return []string{ByShardNone}
	case *languageNode, *branchNode, *repoNode:
		return []string{ByColumn}
	case *atomNode:
		if e.of[n] == x {
			return append(e.contentMethods(x, n.content), nameMethods(n.name)...)
		}
	}
	return nil
}

func (e *explainer) contentMethods(x *ExplainedNode, n contentNode) []string {
	switch n := n.(type) {
	case *wordAtom:
		return []string{ByWords}
	case *referenceAtom:
		return []string{ByWordsAndText}
	case *contentAtom:
		switch {
		case n.planned.narrow():
			return x.Methods
		case n.verifies || e.led:
			return []string{ByCandidates}
		}
		return []string{ByEveryText}
	}
	return nil
}

func nameMethods(a *nameAtom) []string {
	switch {
	case a == nil:
		return nil
	case a.hits == nil:
		return []string{ByPaths}
	case a.candidates.narrow:
		return []string{ByNames}
	}
	return []string{ByEveryName}
}
