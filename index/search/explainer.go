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
	of    map[query.Q]*ExplainedNode
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
	e := &explainer{Explanation: &Explanation{Repos: s.docs.Repos()}, s: s, of: map[query.Q]*ExplainedNode{}, began: time.Now()}
	if e.Repos > 0 {
		var err error
		if e.Repo, err = s.docs.RepoName(0); err != nil {
			return err
		}
	}
	e.list(s.query.tree, 0)
	e.payer, e.mark = &e.Other, s.allReads(e.began)
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
		if n.Query, children = "or", q.Children; q.Words != nil {
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
func (e *explainer) during(phase Phase) (end func()) {
	if e == nil {
		return noExplainer
	}
	return e.charge(e.payer, phase)
}

// charge charges payer and phase until the returned function is called.
func (e *explainer) charge(payer *Reads, phase Phase) (end func()) {
	payer, phase = e.enter(payer, phase)
	return func() { e.enter(payer, phase) }
}

// planning charges a node of the query with its preparation until the returned function is called.
func (e *explainer) planning(q query.Q) (end func()) {
	if e == nil {
		return noExplainer
	}
	return e.charge(&e.of[q].Reads, PhasePlan)
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

// watched returns what a node of the query became, as a node that records what it is asked.
func (e *explainer) watched(q query.Q, n node) node {
	if e == nil {
		return n
	}
	x := e.of[q]
	x.node = n
	if c, ok := n.(constNode); ok && (!bool(c) || x != e.Nodes[0]) {
		return n // the search treats it apart
	}
	return &watchedNode{n, e, x}
}

// watchedNode records what a node is asked.
type watchedNode struct {
	node
	e *explainer
	x *ExplainedNode
}

func (w *watchedNode) documents(budget uint64) (runs, bool, error) {
	defer w.e.charge(&w.x.Reads, w.e.phase)()
	found, ok, err := w.node.documents(budget)
	if ok && err == nil {
		w.x.ranges, w.x.Estimate = true, found.count()
	}
	return found, ok, err
}

func (w *watchedNode) plan() (plan, error) {
	p, err := w.node.plan()
	if err != nil || !p.narrow() {
		return p, err
	}
	open := p.open
	p.open = func(budget uint64) (blobs, error) {
		defer w.e.charge(&w.x.Reads, w.e.phase)()
		return open(budget)
	}
	return p, nil
}

func (w *watchedNode) matches(d *document) (bool, error) {
	defer w.e.charge(&w.x.Reads, w.e.phase)()
	ok, err := w.node.matches(d)
	if w.e.phase != PhaseRank { // nodes are asked a second time there
		w.x.Checked++
		if ok {
			w.x.Matched++
		}
	}
	return ok, err
}

func (w *watchedNode) collect(d *document, g *gathered) error {
	defer w.e.charge(&w.x.Reads, PhaseRank)()
	return w.node.collect(d, g)
}

// explained returns the explanation of the search, which has ended; nil if the caller did not ask
// for one.
func (s *search) explained() *Explanation {
	e := s.explain
	if e == nil {
		return nil
	}
	for _, n := range e.Nodes {
		n.Methods, n.Estimate = e.methods(n), e.estimate(n)
		n.node = nil // the explanation outlives the search
	}
	e.enter(&e.Other, PhasePlan)
	e.Elapsed, e.Candidates = e.mark.Time, s.looked
	e.Bulk, e.Inexact = s.stats.FilesMatched-e.Nodes[0].Matched, s.stats.CountsInexact
	return e.Explanation
}

// byRanges reports whether ranges of documents decided a node.
func (x *ExplainedNode) byRanges() bool { return x.ranges && x.Checked == 0 }

// estimate returns the number of candidates of a node.
func (e *explainer) estimate(x *ExplainedNode) uint64 {
	if _, constant := x.node.(constNode); x.node == nil || constant || x.byRanges() {
		return x.Estimate
	}
	if p, err := x.node.plan(); err == nil && p.narrow() {
		return p.estimate
	}
	return uint64(e.s.content.Blobs())
}

// methods says how a node was answered.
func (e *explainer) methods(x *ExplainedNode) []string {
	if x.byRanges() {
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
		return append(e.contentMethods(x, n.content), nameMethods(n.name)...)
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
		case n.verifies:
			return []string{ByCandidates}
		}
		if _, all := e.s.candidates.(everyBlob); !all {
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
