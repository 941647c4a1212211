package search

import (
	"math"
	"slices"
	"sync"

	"github.com/trawl-search/trawl/index/heap"
	"github.com/trawl-search/trawl/index/rank"
)

// The documents of a blob wait in a queue, ordered by the highest score that they may have. The search takes the first, lowers its
// bound by its path, puts it back if it is no longer the first, and looks at its documents otherwise. It ends when no bound in the queue
// reaches the threshold: the score of the last of the wanted number of documents. This is the threshold algorithm (Fagin, Lotem and Naor,
// Optimal aggregation algorithms for middleware, 2001).

// candidate is a blob in the queue.
type candidate struct {
	bound float64
	blob  uint32 // its documents have this number or a higher one
	// several says that several documents have the blob, counted that they were counted as matches.
	several, counted bool
	// byPath says that names, spelling and low are those of the blob's one document.
	byPath bool
	// The bound is the rank.Total of these parts, and the most for a repo.
	// They are whole numbers.
	low                  bool
	spelling             uint16 // terms that spell the file's name
	content, line, names float32
}

// unknown is the bound of a blob that must be looked at.
var unknown = math.Inf(1)

// compareCandidates is compareScored, which takes twice as long.
func compareCandidates(a, b *candidate) int {
	switch {
	case a.bound > b.bound:
		return -1
	case a.bound < b.bound:
		return 1
	}
	return int(a.blob) - int(b.blob)
}

// queue is shared by the goroutines of a search.
type queue struct {
	mu sync.Mutex
	// waiting is a heap.
	waiting []candidate
	taken   int
	// announceAt is how many candidates are taken before more of them are announced.
	announceAt int
}

// next takes the first candidate. It returns false once none may be among the best.
func (s *search) next() (c candidate, ok bool, err error) {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return c, false, nil
	}
	c = q.waiting[0]
	if c.bound < unknown && !s.admits(c.bound, c.blob) {
		return c, false, nil
	}
	if err := s.announceQueue(); err != nil {
		return c, false, err
	}
	q.waiting, q.taken = heap.Pop(q.waiting, compareCandidates), q.taken+1
	return c, true, nil
}

// again puts a candidate back, unless it is still the first.
func (s *search) again(c *candidate) (first bool) {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || compareCandidates(c, &q.waiting[0]) < 0 {
		return true
	}
	q.waiting = heap.Push(q.waiting, *c, compareCandidates)
	return false
}

// leaveOut records that documents of a candidate are not among the best, which may be for lack of room.
func (s *search) leaveOut(c *candidate) {
	s.best.cut = s.best.cut || s.best.stuffed() || s.workers != nil && s.workers.stuffed.Load()
	if !c.counted {
		s.stats.CountsInexact = true
	}
}

// total bounds the score. It assumes that the document has no terms other than those that spell its name, and that its repo has the
// highest rank, which gives the most.
func (s *search) total(c *candidate) float64 {
	spelling := int(c.spelling)
	bound := rank.Total(float64(c.content)+float64(c.line), float64(c.names), spelling, spelling, c.low) + s.mostOfRepo
	if after := s.opts.After; after != nil {
		bound = min(bound, after.Score) // a higher score was on an earlier page
	}
	return bound
}

// admits reports whether a document with this score may be among the best.
func (s *search) admits(score float64, doc uint32) bool {
	if floor := s.opts.Floor; floor != nil && (score < floor.Score || score == floor.Score && s.losesTies) {
		return false
	}
	return s.best.admits(score, doc) && (s.workers == nil || s.workers.admits(score, doc))
}

// settle looks at the documents of a candidate, once its path does not exclude them.
func (s *search) settle(c *candidate) error {
	if c.bound < unknown && !c.several && !c.byPath {
		if err := s.boundByPath(c); err != nil {
			return err
		}
		c.bound = s.total(c)
		if !s.admits(c.bound, c.blob) {
			s.leaveOut(c)
			return nil
		}
		if !s.again(c) {
			return nil
		}
	}
	return s.lookAt(c)
}

// boundByPath takes the path of the blob's one document into account.
func (s *search) boundByPath(c *candidate) error {
	doc, err := s.docs.FirstDoc(c.blob)
	if err != nil {
		return err
	}
	s.doc.reset(doc, c.blob, 0)
	c.byPath = true
	return s.boundByPathOf(c)
}

// boundByPathOf is boundByPath for the current document.
func (s *search) boundByPathOf(c *candidate) error {
	path, err := s.doc.loadPath()
	if err != nil {
		return err
	}
	c.low = s.low(path)
	names, spelling, ranges := 0.0, 0, s.overlap[:0] // of each text's best place in the path
	for _, a := range s.nameAtoms {
		var best rank.Name
		ranges, best = a.appendRanges(ranges, path)
		if names += a.loose.Weigh(best.Score()); best > rank.Directory {
			spelling++
		}
	}
	if s.overlap = ranges; len(s.query.loose) > 0 || !spells(path, ranges) {
		spelling = 0
	}
	c.names, c.spelling = float32(names), uint16(spelling)
	return nil
}

// lookAt decides the documents of a candidate.
func (s *search) lookAt(c *candidate) error {
	return s.eachOf(c.blob, func() (bool, error) {
		if c.bound == unknown || !c.several {
			return true, nil
		}
		one := *c
		if err := s.boundByPathOf(&one); err != nil {
			return false, err
		}
		one.bound = s.total(&one)
		if s.admits(one.bound, s.doc.id) {
			return true, nil
		}
		s.leaveOut(&one)
		return false, nil
	}, func() error { return s.hit(c) })
}

// fill queues the candidates, with what is known of them, and counts the documents that certainly match.
func (s *search) fill() error {
	shared, err := newSharedBlobs(s.docs)
	if err != nil {
		return err
	}
	visible := s.repos.allShown()
	named, others, err := s.listNames()
	if err != nil {
		return err
	}
	waiting := s.queue.waiting[:0]
	for blob := uint32(0); ; blob++ {
		var ok bool
		if blob, ok, err = s.candidates.seek(blob); !ok || err != nil {
			break
		}
		if err = s.tick(); err != nil {
			break
		}
		for len(named) > 0 && named[0].blob < blob {
			named = named[1:]
		}
		path := others
		if len(named) > 0 && named[0].blob == blob {
			path = path.plus(named[0].pathEvidence)
		}
		found := s.candidates.evidence()
		documents := shared.documents(blob)
		c := candidate{blob: blob, several: documents > 1}
		if found.matches == 0 && found.counted {
			found.matches, found.counted = path.ranges, !c.several && others.names == 0 && s.query.showsAll
		}
		if visible && found.sure && found.counted && !(found.single && c.several) {
			c.counted = true
			s.stats.FilesMatched += uint64(documents)
			s.stats.Matches += uint64(documents * found.matches)
		}
		if c.bound = unknown; c.counted || s.opts.Mode == TopK {
			if err = s.bound(&c, &found, &path); err != nil {
				break
			}
			if !s.admits(c.bound, blob) {
				s.leaveOut(&c)
				continue
			}
		}
		waiting = append(waiting, c)
	}
	heap.Init(waiting, compareCandidates)
	s.queue.waiting = waiting
	return err
}

// pathEvidence is what is known of the paths of a blob's documents.
type pathEvidence struct {
	names  float64 // the most that they score
	inBase bool    // a text may be in the base name
	ranges int     // how many matches they have together
}

// plus adds what is known of another text.
func (p pathEvidence) plus(o pathEvidence) pathEvidence {
	return pathEvidence{p.names + o.names, p.inBase || o.inBase, p.ranges + o.ranges}
}

// namedBlob is a blob with a document whose path matches.
type namedBlob struct {
	blob uint32
	pathEvidence
}

// bound bounds the score of a blob's documents.
func (s *search) bound(c *candidate, found *evidence, path *pathEvidence) error {
	content := found.content
	if found.unknown > 0 {
		length, err := s.content.Len(c.blob)
		if err != nil {
			return err
		}
		n := min(units(length), rank.CountedUnits)
		content += float64(found.unknown) * rank.Content(rank.Word, rank.Enough, n)
	}
	c.content, c.line = float32(content+s.mostDefined(c.blob)), float32(s.together.mostIn(c.blob))
	if c.names = float32(path.names); path.inBase && len(s.query.loose) == 0 {
		c.spelling = uint16(s.query.terms) // each may spell the file's name
	}
	if !c.several && s.content.Announces() { // so that no text is announced which the path excludes
		if err := s.boundByPath(c); err != nil {
			return err
		}
	}
	c.bound = s.total(c)
	return nil
}

// mostDefined bounds what definitions and a compound add.
func (s *search) mostDefined(blob uint32) (most float64) {
	if !holds(s.defined, blob) {
		return 0
	}
	each := rank.Defined(1) // for one term; several together get less
	if s.query.allMatch {
		each = rank.Defined(s.query.terms)
	}
	for _, name := range s.defining {
		if name.mayDefine(blob) {
			most += each
		}
	}
	if holds(s.compound.blobs, blob) {
		defined := slices.ContainsFunc(s.compound.names, func(n nameIn) bool { return n.mayDefine(blob) })
		most += rank.CompoundScore(s.query.terms, defined)
	}
	return most
}
