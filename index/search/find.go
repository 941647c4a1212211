package search

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// find finds the documents that the query matches, or the best of them.
func (s *search) find() error {
	if err := s.start(); err != nil || s.root == constNode(false) {
		return err
	}
	if err := s.fill(); err != nil {
		return err
	}
	return s.drain()
}

// drain takes candidates from the queue until none may be among the best, alone at first. If there is more to do, it continues with the free
// processors.
func (s *search) drain() error {
	defer s.explain.during(PhaseScan)()
	for asked, more := false, true; more; {
		var err error
		if more, err = s.step(); err != nil {
			return err
		}
		if more && !asked && s.worked() {
			asked = true
			if err := s.spread(); err != nil {
				return err
			}
		}
	}
	for i := range s.queue.waiting { // none of these may be among the best
		s.leaveOut(&s.queue.waiting[i])
	}
	s.queue.waiting = s.queue.waiting[:0]
	return nil
}

// step settles the next candidate. It returns false once none may be among the best.
func (s *search) step() (more bool, err error) {
	c, more, err := s.next()
	if !more || err != nil {
		return false, err
	}
	return true, cmp.Or(s.tick(), s.settle(&c))
}

// start announces what the search will read, and prepares the query.
func (s *search) start() error {
	if err := s.announceQuery(); err != nil {
		return err
	}
	return s.prepare()
}

// prepare prepares the query for this shard.
func (s *search) prepare() (err error) {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if err := s.prepareFloor(); err != nil {
		return err
	}
	if s.root, err = s.node(s.query.tree); err != nil {
		return err
	}
	if err := s.prepareCompound(); err != nil {
		return err
	}
	slices.Sort(s.defined)
	if err := s.prepareTogether(); err != nil {
		return err
	}
	p, err := s.root.plan()
	if err != nil {
		return err
	}
	s.candidates = everyBlob{s.content.Blobs(), s.query.terms}
	if p.narrow() {
		s.candidates, err = p.open(anyCost)
	}
	return err
}

// scan calls found for every matching document, blob by blob.
func (s *search) scan(found func() error) error {
	if err := s.start(); err != nil {
		return err
	}
	always := func() (bool, error) { return true, nil }
	var next []candidate
	for from, most := uint32(0), mostCandidatesAhead; ; most = min(2*most, longQueueAhead) {
		next = next[:0]
		for len(next) < most {
			blob, ok, err := s.candidates.seek(from)
			if err := cmp.Or(err, s.tick()); err != nil {
				return err
			}
			if !ok {
				break
			}
			next, from = append(next, candidate{blob: blob}), blob+1
		}
		if len(next) == 0 {
			return nil
		}
		if s.content.Announces() {
			if err := s.announceCandidates(next); err != nil {
				return err
			}
		}
		for i := range next {
			if err := cmp.Or(s.tick(), s.eachOf(next[i].blob, always, found)); err != nil {
				return err
			}
		}
	}
}

// eachOf calls found for the documents of one blob that match, if they are wanted.
func (s *search) eachOf(blob uint32, wanted func() (bool, error), found func() error) error {
	s.looked++
	for doc, err := range s.docs.DocsOf(blob) {
		if err != nil {
			return err
		}
		repo, err := s.docs.RepoOf(doc)
		if err != nil {
			return err
		}
		if !s.repos.shows(doc, repo) {
			continue
		}
		s.doc.reset(doc, blob, repo)
		if ok, err := wanted(); err != nil {
			return err
		} else if !ok {
			continue
		}
		s.stats.FilesConsidered++
		ok, err := s.root.matches(&s.doc)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := found(); err != nil {
			return err
		}
	}
	return nil
}

// hit counts the document of a candidate, and keeps it if it is among the best.
func (s *search) hit(c *candidate) (err error) {
	g := &s.gathered
	g.reset()
	if err := s.root.collect(&s.doc, g); err != nil {
		return err
	}
	matches, onPath := g.matches, g.matches == 0
	if onPath {
		matches = len(g.name)
	}
	if !c.counted {
		s.stats.FilesMatched++
		s.stats.Matches += uint64(matches)
	}
	if s.opts.MaxFiles == 0 {
		return nil
	}
	h := hit{doc: s.doc.id, blob: s.doc.blob, repo: s.doc.repo, matches: matches, onPath: onPath}
	if h.features, err = s.features(); err != nil {
		return err
	}
	// If its path does not match, the path can only lower the score.
	if len(g.name) == 0 && !s.admits(h.features.Score(), h.doc) {
		s.notBest()
		return nil
	}
	if err := s.rate(&h); err != nil {
		return err
	}
	if !s.together.known(h.blob) && s.admits(h.score, h.doc) {
		if err := s.readTogether(h.blob); err != nil {
			return err
		}
		h.features.Together = s.together.atBest(h.blob)
		h.score = h.features.Score()
	}
	if skip, err := s.beforePage(&h); err != nil || skip {
		return err
	}
	if !s.admits(h.score, h.doc) {
		s.notBest()
		return nil
	}
	if err := s.placeRanges(&h); err != nil {
		return err
	}
	s.best.add(h)
	return nil
}

// placeRanges takes over where the ranges of a hit are, which is among the best.
func (s *search) placeRanges(h *hit) error {
	g, most := &s.gathered, s.opts.mostUnchosen()
	texts := len(g.content) + len(g.inWords)
	var marks []mark
	switch {
	case h.onPath:
		for _, sp := range settle(g.name) {
			g.shown = append(g.shown, mark{span: sp})
		}
		marks = g.shown
	case len(g.content) == 0:
		h.inWords = g.inWords
	default:
		if err := s.readInWords(h.blob, g.inWords, allUnits); err != nil {
			return err
		}
		marks = s.beginning(g.settleContent(s.mostConsidered(), s.goOn), math.MaxUint32)
		if s.ended != nil {
			return s.ended
		}
	}
	g.packed = packMarks(g.packed[:0], marks)
	h.marks = g.packed
	switch {
	case texts > 1 && !h.onPath: // they may overlap; whether that is known by now depends on documents that a caller may not see
		h.ranges = min(1, most)
	case len(h.inWords) > 0:
		h.ranges = min(h.matches, most)
	default:
		h.ranges = min(len(marks), most)
	}
	return nil
}

// notBest records that a document is not among the best, which may be for lack of room.
func (s *search) notBest() { s.leaveOut(&candidate{counted: true}) }

// features rates the gathered ranges, without the priority and whether they spell the file's name. For words that stand together it
// takes the best case.
func (s *search) features() (rank.Document, error) {
	d := rank.Document{Terms: s.gathered.terms}
	length, err := s.content.Len(s.doc.blob)
	if err != nil {
		return d, err
	}
	d.Length = units(length)
	if d.RepoRank, err = s.docs.RepoRank(s.doc.repo); err != nil {
		return d, err
	}
	d.Together = s.together.atBest(s.doc.blob)
	d.Compound, d.CompoundDefined, err = s.compound.in(&s.doc)
	return d, err
}

// rate completes the features by those of the path, and scores the document. The name counts even if the content is shown.
func (s *search) rate(h *hit) error {
	path, err := s.doc.loadPath()
	if err != nil {
		return err
	}
	h.features.LowPriority = s.low(path)
	h.features.Spelled = len(s.query.loose) == 0 && spells(path, s.gathered.name)
	h.score = h.features.Score()
	return nil
}

// spells reports whether ranges of the path spell its base name. Ranges that begin before it do not count.
func spells(path []byte, ranges []span) bool {
	if len(ranges) == 0 {
		return false
	}
	base := uint32(bytes.LastIndexByte(path, '/') + 1)
	return rank.Spells(path, func(at int) bool {
		return slices.ContainsFunc(ranges, func(sp span) bool { return sp.start >= base && int(sp.start) <= at && at < int(sp.end) })
	})
}

// low reports whether a document has low priority. None has if the query asks for such documents.
func (s *search) low(path []byte) bool { return !s.query.asksForLow && rank.LowPriority(path) }

// beforePage reports whether the document belongs to an earlier page.
func (s *search) beforePage(h *hit) (bool, error) {
	after := s.opts.After
	if after == nil || h.score < after.Score {
		return false, nil
	}
	if h.score > after.Score {
		return true, nil
	}
	repo, err := s.repo(h.repo)
	if err != nil {
		return false, err
	}
	if c := strings.Compare(repo.Name, after.Repo); c != 0 {
		return c < 0, nil
	}
	if c := bytes.Compare(s.doc.path, after.Path); c != 0 {
		return c < 0, nil
	}
	oid, err := s.docs.OID(h.doc)
	return bytes.Compare(oid, after.Blob) <= 0, err
}

// prepareFloor finds out whether all documents of the shard come after the floor in the order of repos and paths.
func (s *search) prepareFloor() error {
	floor := s.opts.Floor
	if floor == nil || s.docs.Repos() == 0 || s.docs.Len() == 0 {
		return nil
	}
	first, err := s.docs.RepoName(0)
	s.losesTies = first > floor.Repo
	if err != nil || first != floor.Repo {
		return err
	}
	if s.firstPath == nil { // a buffer of another goroutine may be in use
		if s.firstPath, err = s.docs.AppendPath(nil, 0); err != nil {
			return err
		}
	}
	s.losesTies = bytes.Compare(s.firstPath, floor.Path) > 0
	return nil
}

// raiseFloor takes over the current floor of concurrent searches of other shards.
func (s *search) raiseFloor() error {
	if s.opts.FloorNow == nil {
		return nil
	}
	now := s.opts.FloorNow()
	if now == nil || s.opts.Floor != nil && Compare(*now, *s.opts.Floor) >= 0 {
		return nil
	}
	s.opts.Floor = now
	return s.prepareFloor()
}

// listNames lists the blobs with a match in the path of a document, ascending, and says what is known of the paths of all blobs beyond that.
func (s *search) listNames() (named []namedBlob, others pathEvidence, err error) {
	for _, a := range s.nameAtoms {
		if a.hits == nil || uint64(len(a.hits.places)) != a.hits.docs.count() {
			others = others.plus(pathEvidence{names: a.loose.Weigh(rank.Base.Score()), inBase: true})
			continue
		}
		docs := a.hits.docs.numbers()
		blobs, err := s.docs.AppendBlobs(nil, docs)
		if err != nil {
			return nil, others, err
		}
		for i, blob := range blobs {
			place := a.hits.places[i]
			named = append(named, namedBlob{blob, pathEvidence{a.loose.Weigh(place.name.Score()), place.name > rank.Directory, int(place.ranges)}})
		}
	}
	slices.SortFunc(named, func(a, b namedBlob) int { return cmp.Compare(a.blob, b.blob) })
	kept := named[:0]
	for _, n := range named {
		if last := len(kept) - 1; last >= 0 && kept[last].blob == n.blob {
			kept[last].pathEvidence = kept[last].plus(n.pathEvidence)
		} else {
			kept = append(kept, n)
		}
	}
	return kept, others, nil
}

// fewRepos is the most repos that are checked before any document is looked at.
const fewRepos = 64

// allShown reports whether it is quickly known that every document of the shard may be read.
func (v *repoView) allShown() bool {
	if len(v.replaced) > 0 {
		return false
	}
	if v.allowed == nil {
		return true
	}
	if v.docs.Repos() > fewRepos {
		return false
	}
	for repo := range v.docs.Repos() {
		if !v.live(repo) {
			return false
		}
	}
	return true
}

// showsAll reports whether the ranges of all atoms that match in a document are shown whenever it matches. They are not if some of the atoms
// that must match together, in one of several alternatives, may be missing.
func showsAll(q query.Q) bool {
	switch q := q.(type) {
	case *query.And:
		return !slices.ContainsFunc(q.Children, func(c query.Q) bool { return !showsAll(c) })
	case *query.Or:
		return !slices.ContainsFunc(q.Children, func(c query.Q) bool { return isAnd(c) || !showsAll(c) })
	case *query.Type:
		return showsAll(q.Child)
	}
	return true
}

func isAnd(q query.Q) bool {
	if t, ok := q.(*query.Type); ok {
		return isAnd(t.Child)
	}
	_, ok := q.(*query.And)
	return ok
}

// allMatch reports whether all texts of a query have a range in each document: an expression that matches empty has none where it finds nothing else.
func allMatch(q query.Q) (all bool) {
	all = true
	query.WalkShown(q, func(q query.Q) {
		switch n := q.(type) {
		case *query.Symbol:
			q = n.Child
		case *query.Reference:
			q = n.Child
		}
		switch n := q.(type) {
		case *query.Or:
			all = false
		case *query.Regexp:
			all = all && regex.MinLen(n.Tree, n.CaseSensitive) > 0
		}
	})
	return all
}
