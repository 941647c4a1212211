package shard

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// Most documents that match a common word are only counted, because others are better. Suppose that the query is one atom,
// several that must all match, or several of which one must match, and that words answer all of them. Then a blob's number of
// matches and the highest score of its documents are known without looking at them. bulk counts the documents that cannot be
// among the best. It leaves the others, and those with a match in their path, to eachOf. The query may have other conditions that
// paths and columns decide: the documents that pass such a filter are known.

// namedBlob is a blob with a match in the path of a document. If it has one document and the query is one atom, how the path
// matches is known.
type namedBlob struct {
	blob uint32
	namePlace
	known bool
	// score is the most that the paths score, for all atoms together.
	score float64
}

// bulk passes over blobs whose documents are only counted.
type bulk struct {
	atoms []*wordAtom
	names []*nameIn   // of the atoms
	all   bool        // all atoms must match; otherwise one
	named []namedBlob // with a match in the path of a document, ascending
	// lists are what is left of each atom's blobs, as a heap by the next blob, if only one atom must match. merged was taken out
	// last.
	lists   [][]blobTally
	merged  blobTally
	matched int
	// docs are the documents that the filter lets through, and within their blobs, if there is a filter.
	docs     runs
	within   *blobRuns
	filtered bool
	// onPaths says that the filter has atoms that match in paths.
	onPaths bool
	// shared are the blobs with several documents.
	shared eliasfano.List
}

// planBulk returns how to pass over blobs; nil if their documents must be looked at.
func (s *search) planBulk() (*bulk, error) {
	if !s.counting.byWords || s.opts.After != nil {
		return nil, nil
	}
	b := &bulk{}
	if err := s.planFilter(b); err != nil {
		return nil, err
	}
	atoms, all := bulkAtoms(s.root)
	if len(atoms) == 0 {
		return nil, nil
	}
	visible, err := s.repos.allShown()
	if err != nil || !visible {
		return nil, err
	}
	b.all = all
	for _, a := range atoms {
		b.atoms = append(b.atoms, a.content.(*wordAtom)) //nolint:forcetypeassert // bulkAtoms has checked
		b.names = append(b.names, &a.word)
		if a.name == nil {
			continue
		}
		if (all || len(atoms) == 1) && !a.name.candidates.narrow && len(a.content.(*wordAtom).hits.blobs) < int(s.docs.Len()/2) { //nolint:forcetypeassert // as above
			return nil, nil // if one of several atoms is enough, all paths are looked at anyway
		}
		if err := b.addNamed(a.name, !all && len(atoms) == 1); err != nil {
			return nil, err
		}
	}
	b.sortNamed()
	b.leaveOutNamed()
	if all {
		slices.SortStableFunc(b.atoms, func(a, b *wordAtom) int { return len(a.hits.blobs) - len(b.hits.blobs) })
	}
	for _, a := range b.atoms {
		if len(a.hits.blobs) > 0 && !all {
			b.lists = push(b.lists, a.hits.blobs, compareLists)
		}
	}
	b.shared, err = s.docs.SharedBlobs()
	return b, err
}

// bulkAtoms returns the atoms of a tree that is one atom or a list of them; nil for other trees.
func bulkAtoms(root node) (atoms []*atomNode, all bool) {
	children := []node{root}
	switch n := root.(type) {
	case *andNode:
		children, all = n.rest, true
	case *orNode:
		children = n.children
	}
	for _, c := range children {
		a, ok := c.(*atomNode)
		if !ok {
			return nil, false
		}
		if _, ok := a.content.(*wordAtom); !ok {
			return nil, false
		}
		atoms = append(atoms, a)
	}
	return atoms, all
}

// addNamed adds the blobs of the documents whose path matches.
func (b *bulk) addNamed(a *nameAtom, known bool) error {
	if _, err := a.enumerate(anyCost); err != nil {
		return err
	}
	var docs []uint32
	for _, run := range a.hits.docs {
		for doc := run.From; doc < run.To; doc++ {
			docs = append(docs, doc)
		}
	}
	blobs, err := a.s.docs.AppendBlobs(nil, docs)
	for i, blob := range blobs {
		place := a.hits.places[i]
		b.named = append(b.named, namedBlob{blob, place, known, a.loose.Weigh(place.name.Score())})
	}
	return err
}

// sortNamed sorts the named blobs. It knows less about blobs with several documents, or that several atoms match.
func (b *bulk) sortNamed() {
	slices.SortFunc(b.named, func(a, b namedBlob) int { return cmp.Compare(a.blob, b.blob) })
	kept := b.named[:0]
	for _, n := range b.named {
		if last := len(kept) - 1; last >= 0 && kept[last].blob == n.blob {
			kept[last].known = false
			kept[last].score += n.score
			kept[last].name = max(kept[last].name, n.name)
		} else {
			kept = append(kept, n)
		}
	}
	b.named = kept
}

// bulkScan queues the blobs that a search with a bulk may have to look at; see scan.
func (s *search) bulkScan(from, to uint32, enough func() bool) (next uint32, err error) {
	b := s.bulk
	named, _ := slices.BinarySearchFunc(b.named, from, func(n namedBlob, from uint32) int { return cmp.Compare(n.blob, from) })
	shared := sharedBlobs{list: b.shared}
	shared.begin(from)
	for passed := 0; ; passed++ {
		t, matched := b.next(from)
		var name *namedBlob
		if named < len(b.named) && (matched == 0 || b.named[named].blob <= t.blob) {
			if name = &b.named[named]; matched == 0 || name.blob < t.blob {
				t, matched = blobTally{blob: name.blob}, 0
			}
			named++
		} else if matched == 0 {
			return to, nil
		}
		if t.blob >= to {
			return to, nil
		}
		if passed%256 == 0 {
			if err := s.tick(); err != nil {
				return t.blob, err
			}
			if enough() {
				return t.blob, nil
			}
		}
		from = t.blob + 1
		matches := t.counts.All()
		if matches > 0 {
			matches -= s.counting.twiceIn(t.blob)
		}
		all := shared.documents(t.blob)
		documents := all
		if all > 1 && b.filtered {
			if documents, err = s.letThrough(t.blob); documents == 0 && err == nil {
				continue
			}
		}
		if err != nil {
			return t.blob, err
		}
		if matches == 0 {
			matches = int(name.ranges)
		}
		c := candidate{number: t.blob, documents: documents, matches: matches, several: all > 1}
		s.boundOf(&c, &t, name, matched)
		if c.bound == unknown || s.mayBeShown(t.blob, c.bound) {
			s.queue = push(s.queue, c, compareCandidates)
		} else {
			s.countOnly(&c)
		}
	}
}

// boundOf bounds the score of a blob's documents. The bound is unknown if it is not certain how they match. If a blob has several
// documents, filtered or not, nothing says which one's path matches.
func (s *search) boundOf(c *candidate, t *blobTally, name *namedBlob, matched int) {
	b := s.bulk
	counted := b.all && matched == len(b.atoms)                     // whatever the path says
	onPath := name != nil && !counted && (!name.known || c.several) // may be
	// A blob certainly matches if one atom must match, or if all match in the content. Of several documents, nothing says whose
	// path matches.
	sure := (!b.all || counted) && !(onPath && c.several && matched == 0)
	if !sure || s.opts.Mode != TopK && (t.opaque || onPath) || !counted && c.matches == 0 {
		c.bound = unknown
		return
	}
	if c.inexact = t.opaque || onPath; c.inexact {
		c.matches = 0 // matches of two atoms may overlap
	}
	c.content = t.content + s.together.mostIn(t.blob)
	if s.mayDefine(t.blob) {
		c.content += s.mostDefined(t.blob, counted)
	}
	switch {
	case counted && (name != nil || b.onPaths):
		c.names, c.spelling = rank.Base.Score()*float64(s.terms), s.mostSpelling()
	case name != nil:
		if c.names = name.score; name.name > rank.Directory {
			c.spelling = s.mostSpelling()
		}
	}
	c.bound = s.total(c)
}

// mostDefined bounds what definitions and a compound add in a blob in which all terms match, or some.
func (s *search) mostDefined(blob uint32, all bool) (most float64) {
	each := rank.Defined(s.terms)
	if !all {
		each = rank.Defined(1) // for one term; several together get less
	}
	for _, name := range s.bulk.names {
		if name.mayDefine(blob) {
			most += each
		}
	}
	if holds(s.compound.blobs, blob) {
		defined := slices.ContainsFunc(s.compound.names, func(n nameIn) bool { return n.mayDefine(blob) })
		most += rank.CompoundScore(s.terms, defined)
	}
	return most
}

// boundByPath queues a blob again with a bound that includes the path of its one document.
func (s *search) boundByPath(c *candidate) error {
	doc, err := s.docs.FirstDoc(c.number)
	if err != nil {
		return err
	}
	s.doc.reset(doc, c.number, 0)
	path, err := s.doc.loadPath()
	if err != nil {
		return err
	}
	c.byPath, c.low = true, s.low(path)
	c.names, c.spelling = s.scoreOfPath(path)
	s.waitAgain(c)
	return nil
}

// bestPlace returns the best place that a text of the query has in a path.
func (s *search) bestPlace(path []byte) (best rank.Name) {
	for _, a := range s.nameAtoms {
		for start, end := range regex.Ranges(a.matcher, path) {
			best = max(best, rank.OfName(path, start, end))
		}
	}
	return best
}

// sharedBlobs walks the blobs that have several documents.
type sharedBlobs struct {
	list eliasfano.List
	it   eliasfano.Iterator
	next uint64
	some bool
}

func (c *sharedBlobs) begin(from uint32) {
	c.it = c.list.From(c.list.Search(uint64(from)))
	c.next, c.some = c.it.Next()
}

// documents returns how many documents a blob has. Callers pass ascending numbers.
func (c *sharedBlobs) documents(blob uint32) int {
	for c.some && c.next < uint64(blob) {
		c.next, c.some = c.it.Next()
	}
	n := 1
	for ; c.some && c.next == uint64(blob); n++ {
		c.next, c.some = c.it.Next()
	}
	return n
}

// mayBeShown reports whether a document of a blob may be among the best with this score.
func (s *search) mayBeShown(blob uint32, score float64) bool {
	// The documents of a blob have its number or a higher one.
	return s.opts.MaxFiles > 0 && s.admits(score, blob)
}

// next returns the first blob at or after from whose content matches, with its tallies added up, and how many atoms match there;
// 0 if there is none.
func (b *bulk) next(from uint32) (t blobTally, matched int) {
	for {
		if b.all {
			t, matched = b.nextOfAll(from)
		} else {
			t, matched = b.nextOfAny(from)
		}
		if matched == 0 || !b.filtered {
			return t, matched
		}
		blob, ok, _ := b.within.seek(t.blob)
		if !ok {
			return blobTally{}, 0
		}
		if blob == t.blob {
			return t, matched
		}
		from = blob
	}
}

// nextOfAny merges the lists through a heap, since there may be a thousand of them.
func (b *bulk) nextOfAny(from uint32) (t blobTally, matched int) {
	if b.matched == 0 || b.merged.blob < from { // otherwise the same blob is asked for again
		b.merged, b.matched = b.merge(from)
	}
	return b.merged, b.matched
}

// merge takes the first blob at or after from out of the lists, with its tallies added up.
func (b *bulk) merge(from uint32) (t blobTally, matched int) {
	for len(b.lists) > 0 {
		first := b.lists[0]
		blob := first[0].blob
		switch {
		case matched > 0 && blob > t.blob:
			return t, matched
		case blob < from:
			first = first[seekBlob(first, 0, from):]
		case matched == 0:
			t, matched, first = first[0], 1, first[1:]
		default:
			t.add(&first[0])
			matched, first = matched+1, first[1:]
		}
		if len(first) == 0 {
			b.lists = dropFirst(b.lists, compareLists)
		} else {
			b.lists[0] = first
			sink(b.lists, compareLists)
		}
	}
	return t, matched
}

func compareLists(a, b *[]blobTally) int { return cmp.Compare((*a)[0].blob, (*b)[0].blob) }

func (b *bulk) nextOfAll(from uint32) (t blobTally, matched int) {
	for agreed := 0; agreed < len(b.atoms); {
		a := b.atoms[agreed]
		blobs := a.hits.blobs
		a.next = seekBlob(blobs, a.next, from)
		if a.next == len(blobs) {
			return blobTally{}, 0
		}
		found := &blobs[a.next]
		switch {
		case found.blob > from || agreed == 0:
			from = found.blob
			t = *found
			if agreed > 0 {
				agreed, t = 0, blobTally{}
				continue
			}
		default:
			t.add(found)
		}
		agreed++
	}
	return t, len(b.atoms)
}

// add adds the tallies of another atom in the same blob.
func (t *blobTally) add(o *blobTally) {
	t.counts.Plus(o.counts)
	t.content += o.content
	t.opaque = t.opaque || o.opaque
}

// rate scores the matches in a content of that many superblocks, the unit of its length.
func (t *blobTally) rate(superblocks uint32) {
	quality, matches := t.counts.Best(int(superblocks))
	t.content = rank.Content(quality, matches, int(superblocks))
}

// A superblock is the unit of length in package rank.
var _ [rank.LengthUnit]struct{} = [docstore.SuperblockSize]struct{}{}

// allShown reports whether it is quickly known that every document of the shard may be read.
func (v *repoView) allShown() (bool, error) {
	if len(v.replaced) > 0 {
		return false, nil
	}
	if v.allowed == nil {
		return true, nil
	}
	if v.docs.Repos() > fewRepos {
		return false, nil
	}
	for repo := range v.docs.Repos() {
		if live, err := v.live(repo); !live || err != nil {
			return false, err
		}
	}
	return true, nil
}

// fewRepos is the most repos that are checked before any document is looked at.
const fewRepos = 64

// blobOfSuperblocks finds the blobs of ascending superblocks.
type blobOfSuperblocks struct {
	starts     eliasfano.List
	it         eliasfano.Iterator
	blob       int
	first      uint64 // its first superblock
	next       uint64 // first superblock of the next blob
	begun, end bool
}

// nearBlobs is how many blobs are stepped over before a lookup is cheaper.
const nearBlobs = 12

// of returns the blob of a superblock, -1 if it has none.
func (c *blobOfSuperblocks) of(superblock uint32) int {
	if c.begun {
		for range nearBlobs {
			if c.end || uint64(superblock) < c.next {
				return c.blob
			}
			c.blob++
			c.step()
		}
	}
	c.blob = c.starts.Last(uint64(superblock))
	if c.blob < 0 {
		return c.blob
	}
	c.it = c.starts.From(c.blob + 1)
	c.begun, c.next = true, c.starts.At(c.blob)
	c.step()
	return c.blob
}

// superblocks returns how many superblocks the blob found last has; all is the number in the shard.
func (c *blobOfSuperblocks) superblocks(all uint32) uint32 {
	if c.end {
		return all - uint32(c.first)
	}
	return uint32(c.next - c.first)
}

func (c *blobOfSuperblocks) step() {
	var ok bool
	c.first = c.next
	c.next, ok = c.it.Next()
	c.end = !ok
}
