package shard

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/rank"
)

// begin prepares the query for a scan from the first blob on.
func (s *search) begin(q *Query) (err error) {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.terms, s.loose, s.asksForLow, s.defined = q.terms, len(q.loose) > 0, q.asksForLow, nil
	s.inContent, s.onlyNamed, s.nameAtoms, s.wordAtoms, s.textAtoms, s.onlyText, s.among = q.inContent, false, nil, nil, 0, nil, nil
	if s.narrowed != nil {
		s.among = &s.narrowed.among
	}
	if err := s.prepareFloor(); err != nil {
		return err
	}
	if s.root, err = s.node(q, q.tree); err != nil {
		return err
	}
	if err := s.prepareCompound(q); err != nil {
		return err
	}
	slices.Sort(s.defined)
	if err := s.prepareTogether(q); err != nil {
		return err
	}
	if err := s.planCounting(q.tree); err != nil {
		return err
	}
	p, err := s.root.plan()
	if err != nil {
		return err
	}
	s.candidates = everyBlob(s.content.Blobs())
	if p.narrow() {
		s.candidates, err = p.iterator(anyCost)
	}
	if s.narrowed != nil {
		s.candidates = allOf{&blobRuns{rest: s.narrowed.blobs}, s.candidates}
	}
	return err
}

// scan calls found for every matching document with a blob in [from, to), blob by blob. It stops before a blob if enough returns
// true, and returns that blob; otherwise it returns to.
func (s *search) scan(from, to uint32, enough func() bool, found func() error) (next uint32, err error) {
	if s.bulk != nil {
		next, err = s.bulkScan(from, to, enough)
	} else {
		next, err = s.eachCandidate(from, to, enough, found)
	}
	return next, cmp.Or(err, s.settleQueue(found))
}

func (s *search) eachCandidate(from, to uint32, enough func() bool, found func() error) (next uint32, err error) {
	for {
		blob, ok, err := s.candidates.seek(from)
		if err != nil {
			return from, err
		}
		if ok && s.opts.Mode == TopK {
			blob, ok, err = s.nextCandidate(blob)
			if err != nil {
				return from, err
			}
		}
		if !ok || blob >= to {
			return to, nil
		}
		if err := s.tick(); err != nil {
			return blob, err
		}
		if enough() {
			return blob, nil
		}
		if err := s.eachOf(blob, found); err != nil {
			return blob, err
		}
		from = blob + 1
	}
}

func never() bool { return false }

// eachOf decides the documents of one blob.
func (s *search) eachOf(blob uint32, found func() error) error {
	s.counts.candidates++
	for doc, err := range s.docs.DocsOf(blob) {
		if err != nil {
			return err
		}
		repo, err := s.docs.RepoOf(doc)
		if err != nil {
			return err
		}
		if shown, err := s.repos.shows(doc, repo); err != nil {
			return err
		} else if !shown {
			continue
		}
		s.doc.reset(doc, blob, repo)
		if err := s.decide(found); err != nil {
			return err
		}
	}
	return nil
}

// decide calls found if the document matches.
func (s *search) decide(found func() error) error {
	if s.opts.Mode == TopK {
		if skip, err := s.canSkip(); err != nil || skip {
			return err
		}
	}
	s.stats.FilesConsidered++
	ok, err := s.root.matches(&s.doc)
	if err != nil || !ok {
		return err
	}
	return found()
}

// hit counts the document, and keeps it if it is among the best.
func (s *search) hit() (err error) {
	g := &s.gathered
	g.reset()
	g.counting = s.counting.byWords
	if err := s.root.collect(&s.doc, g); err != nil {
		return err
	}
	if g.opaque > 1 { // ranges of two atoms may overlap in words that were not counted
		if s.opts.Mode == TopK {
			if reaches, err := s.mayReachAsItIs(); err != nil || !reaches {
				return err
			}
		}
		g.reset()
		if err := s.root.collect(&s.doc, g); err != nil {
			return err
		}
	} else if g.more > 0 && g.counting {
		g.more -= s.counting.twiceIn(s.doc.blob)
	}
	shown, matches := g.settleContent(s.opts.MaxMatchesPerFile, s.goOn)
	if s.ended != nil {
		return s.ended
	}
	onPath := matches == 0
	if onPath {
		shown = settle(g.name)
		matches = len(shown)
	}
	s.stats.FilesMatched++
	s.stats.Matches += uint64(matches)
	if s.opts.MaxFiles == 0 {
		return nil
	}
	h := hit{doc: s.doc.id, blob: s.doc.blob, repo: s.doc.repo, matches: matches, onPath: onPath, atLeast: g.atLeast}
	if h.features, err = s.features(); err != nil {
		return err
	}
	// If its path does not match, the path can only lower the score.
	if len(g.name) == 0 && !s.admits(h.features.Score(), h.doc) {
		s.leaveOut()
		return nil
	}
	if err := s.rate(&h); err != nil {
		return err
	}
	if !s.admits(h.score, h.doc) {
		s.leaveOut()
		return nil
	}
	waits := !s.together.known(h.blob)
	// Only the score shows what is on an earlier page, and the text of a contender is at hand.
	if waits && (s.opts.After != nil || s.narrowed != nil && s.narrowed.read) {
		if err := s.readTogether(h.blob); err != nil {
			return err
		}
		h.features.Together, waits = s.together.atBest(h.blob), false
		h.score = h.features.Score()
	}
	if skip, err := s.beforePage(&h); err != nil || skip {
		return err
	}
	h.ranges = min(matches, s.opts.MaxMatchesPerFile)
	if h.spans = shown[:min(len(shown), s.opts.MaxMatchesPerFile)]; len(g.content) == 0 && g.more > 0 {
		h.inWords = g.inWords
	}
	if waits {
		return s.wait(&h)
	}
	s.keep(&h)
	return nil
}

// mayReachAsItIs reports whether the document may be among the best, judging by what was gathered. If not, it counts the document
// without its matches.
func (s *search) mayReachAsItIs() (bool, error) {
	h := hit{doc: s.doc.id}
	var err error
	if h.features, err = s.features(); err != nil {
		return false, err
	}
	if err := s.rate(&h); err != nil || s.mayScore(h.score, h.doc) {
		return true, err
	}
	s.stats.FilesMatched++
	s.stats.CountsInexact = true
	s.explain.leftOutBelow(h.score, h.doc)
	s.leaveOut()
	return false, nil
}

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

// units converts a length in bytes to the unit of scores.
func units(length uint32) int { return int((length + rank.LengthUnit - 1) / rank.LengthUnit) }

// rate completes the features by those of the path, and scores the document. The name counts even if the content is shown.
func (s *search) rate(h *hit) error {
	path, err := s.doc.loadPath()
	if err != nil {
		return err
	}
	h.features.LowPriority = s.low(path)
	h.features.Spelled = !s.loose && spells(path, s.gathered.name)
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
func (s *search) low(path []byte) bool { return !s.asksForLow && rank.LowPriority(path) }

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
