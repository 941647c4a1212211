package shard

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
)

// A TopK search keeps MaxFiles documents and leaves out every document that cannot replace one of them, by the
// highest score that it may still have. If its path does not match, that is at most rank.Ceiling for its content.
// Common words reach it in short documents, and long ones score less. Among equals the document with the lower
// number wins, and numbers ascend with blobs. Once such documents cannot be among the best, the search looks only at
// those with a match in their path, which the n-grams of the names enumerate, and at those that define a literal.

// Files of low priority have half the ceiling. If there are many matches, they are left to a second pass, which is
// mostly not needed.

// pass says which documents are looked at.
type pass uint8

const (
	everyPriority pass = iota
	usualPriority
	lowPriority
)

// deferLow leaves documents of low priority, from this blob on, to the second pass. It waits until the wanted number
// of documents has matched. If fewer match, the search does not find candidates twice.
func (s *search) deferLow(blob uint32) {
	if s.pass == everyPriority && s.workers == nil && s.inContent && s.stats.FilesMatched >= uint64(s.opts.MaxFiles) {
		s.pass, s.deferredFrom = usualPriority, blob
	}
}

// needsSecondPass reports whether a document of low priority may be among the best.
func (s *search) needsSecondPass() bool {
	if !s.deferred || len(s.defined)+len(s.together.blobs)+len(s.nameAtoms) > 0 || s.mayReach(s.ceiling(rank.NoName, true), 0) {
		return s.deferred
	}
	s.stats.CountsInexact = true
	s.explain.leftOut(true, 0)
	s.leaveOut()
	return false
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

func (s *search) ceiling(name rank.Name, low bool) float64 {
	return rank.Ceiling(s.inContent, s.terms, name, low)
}

// mostSpelling returns the most terms that may spell a file's name.
func (s *search) mostSpelling() int {
	if s.loose {
		return 0
	}
	return s.terms
}

// admits reports whether a document may be among the best.
func (s *search) admits(score float64, doc uint32) bool {
	if floor := s.opts.Floor; floor != nil && (score < floor.Score || score == floor.Score && s.losesTies) {
		return false
	}
	return s.best.admits(score, doc) && (s.workers == nil || s.workers.admits(score, doc))
}

// leaveOut records that a document is not among the best, which may be for lack of room.
func (s *search) leaveOut() {
	s.best.cut = s.best.cut || s.best.stuffed() || s.workers != nil && s.workers.stuffed.Load()
}

// leaveOutFrom records that documents of this pass are not among the best, from doc on.
func (s *search) leaveOutFrom(doc uint32) {
	s.stats.CountsInexact = true
	s.explain.leftOut(s.pass == lowPriority, doc)
	s.leaveOut()
}

// mayReach is admits for a document whose score is unknown, but at most ceiling without the rank of its repo.
func (s *search) mayReach(ceiling float64, doc uint32) bool {
	return s.mayScore(ceiling+s.mostOfRepo, doc)
}

// mayScore is admits for a document whose score is not known, but at most ceiling.
func (s *search) mayScore(ceiling float64, doc uint32) bool {
	if after := s.opts.After; after != nil {
		ceiling = min(ceiling, after.Score) // a higher score was on an earlier page
	}
	return s.admits(ceiling, doc)
}

// nextCandidate returns the first candidate at or after blob that has documents that may be among the best.
func (s *search) nextCandidate(blob uint32) (uint32, bool, error) {
	s.deferLow(blob)
	if s.onlyNamed {
		return blob, true, nil
	}
	first, err := s.docs.FirstDoc(blob)
	if err != nil || s.mayReach(s.ceiling(rank.NoName, s.pass == lowPriority), first) {
		return blob, true, err
	}
	if slices.ContainsFunc(s.nameAtoms, func(a *nameAtom) bool { return !a.candidates.narrow && a.hits == nil }) {
		return blob, true, nil // any path may match, so canSkip looks at each
	}
	named := anyOf{&blobList{rest: s.defined}, &blobList{rest: s.together.blobs}}
	for _, a := range s.nameAtoms {
		it, err := s.reachable(a)
		if err != nil {
			return 0, false, err
		}
		named = append(named, it)
	}
	return s.onlyOf(blob, first, named)
}

// onlyOf leaves out the candidates, from first on, that are not among some.
func (s *search) onlyOf(blob, first uint32, some blobs) (uint32, bool, error) {
	s.onlyNamed = true
	s.leaveOutFrom(first)
	s.candidates = allOf{some, s.candidates}
	return s.candidates.seek(blob)
}

// reachableBlobs has as candidates the blobs of documents that may be among the best by how their path matches.
// Their number shrinks during the search.
type reachableBlobs struct {
	s     *search
	named []namedBlob // ascending
}

// reachable enumerates the documents with a match in their path.
func (s *search) reachable(a *nameAtom) (blobs, error) {
	it, err := a.open(anyCost)
	if err != nil || uint64(len(a.hits.places)) != a.hits.docs.count() {
		return it, err
	}
	b := &bulk{}
	if err := b.addNamed(a, true); err != nil {
		return nil, err
	}
	slices.SortFunc(b.named, func(a, b namedBlob) int { return cmp.Compare(a.blob, b.blob) })
	return &reachableBlobs{s, b.named}, nil
}

func (r *reachableBlobs) seek(from uint32) (uint32, bool, error) {
	for ; len(r.named) > 0; r.named = r.named[1:] {
		n := &r.named[0]
		if n.blob < from {
			continue
		}
		// The documents of a blob have its number or a higher one.
		if r.s.mayReach(r.s.ceiling(n.name, r.s.pass == lowPriority), n.blob) {
			return n.blob, true, nil
		}
		r.s.leaveOut()
	}
	return 0, false, nil
}

// inLowFolder reports whether a blob's first document is in a folder of low priority. The documents of a folder are
// adjacent, so it reads the path of one of them.
func (s *search) inLowFolder(blob uint32) (bool, error) {
	doc, err := s.docs.FirstDoc(blob)
	if err != nil || s.lowFolder.From <= doc && doc < s.lowFolder.To {
		return true, err
	}
	s.doc.reset(doc, blob, 0)
	path, err := s.doc.loadPath()
	if err != nil {
		return false, err
	}
	n := rank.LowFolder(path)
	if n == 0 || s.asksForLow {
		return false, nil
	}
	end, _, err := s.prefixEnd(doc, path[:n])
	s.lowFolder = docstore.Run{From: doc, To: end}
	return true, err
}

// mostInContent returns the highest score for the content that a document can have, by its length and by words that
// may stand together. Among whole words it uses how often the document has them and what it defines.
func (s *search) mostInContent() (float64, error) {
	if !s.inContent {
		return 0, nil
	}
	if s.wholeWords != nil {
		return s.wholeWords.atom.most(s.doc.blob)
	}
	if s.narrowed != nil && s.narrowed.read {
		return s.narrowed.bound, nil
	}
	length, err := s.content.Len(s.doc.blob)
	if err != nil {
		return 0, err
	}
	matches := rank.Enough
	if s.onlyText != nil {
		if matches, err = s.onlyText.mostMatches(s.doc.blob); err != nil {
			return 0, err
		}
	}
	return rank.Content(rank.Word, matches, units(length))*float64(s.terms) + s.together.mostIn(s.doc.blob), nil
}

// mayBeNamed reports whether the path of a document may match.
func (s *search) mayBeNamed(doc uint32) (bool, error) {
	for _, a := range s.nameAtoms {
		if !a.candidates.narrow && a.hits == nil {
			return true, nil
		}
		if _, err := a.enumerate(anyCost); err != nil || a.hits.docs.has(doc) {
			return err == nil, err
		}
	}
	return false, nil
}

// canSkip reports whether the document need not be looked at: it belongs to another pass, or its path shows that it
// cannot be among the best. It reads the path only if that can decide.
func (s *search) canSkip() (bool, error) {
	if s.wholeWords != nil && s.wholeWords.order.later(s.doc.id) {
		return true, nil
	}
	best, err := s.mostInContent()
	if err != nil || s.pass == everyPriority && s.mayReach(rank.Bound(best, s.terms, rank.NoName, true), s.doc.id) {
		return false, err
	}
	if !s.mayDefine(s.doc.blob) && !s.mayReach(rank.Bound(best, s.terms, rank.NoName, false), s.doc.id) {
		if named, err := s.mayBeNamed(s.doc.id); err != nil {
			return false, err
		} else if !named { // whatever its priority
			s.leaveOutFrom(s.doc.id)
			return true, nil
		}
	}
	path, err := s.doc.loadPath()
	if err != nil {
		return false, err
	}
	low := s.low(path)
	if s.pass != everyPriority && low != (s.pass == lowPriority) {
		s.deferred = s.deferred || low
		return true, nil
	}
	if s.wholeWords == nil && s.mayDefine(s.doc.blob) || s.mayReach(rank.Bound(best, s.terms, rank.NoName, low), s.doc.id) {
		return false, nil
	}
	if name := s.bestPlace(path); name > rank.NoName && s.mayReach(rank.Bound(best, s.terms, name, low), s.doc.id) {
		return false, nil
	}
	s.stats.CountsInexact = true
	s.explain.leftOut(low, s.doc.id)
	s.leaveOut()
	return true, nil
}
