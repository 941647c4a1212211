package shard

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/rank"
)

// Words of the query that stand together in a line make a document score more. The text of a superblock decides whether they do, and
// postings say before it is read where they may. So documents have a bound, and text is read of those that may be
// among the best by theirs: of some that wait together, the best first, since others are mostly worse then.

// together knows where the words of the query may stand in one line.
type together struct {
	s     *search
	line  *rank.Line
	terms int
	// places, ascending, are superblocks, and their blocks in which a line with all words may begin; blobs have one of these.
	places []tally
	blobs  []uint32
	// sequence is where the words may follow each other; nil if it may be anywhere.
	sequence *postings.Candidates
	passed   uint32 // by sequence, which does not go back
	// blob was looked at last. Its words stand together as in best, at best, and follow each other in some superblocks, if at all.
	blob    uint32
	valid   bool
	best    rank.Together
	follow  []uint32
	waiting []waitingHit
	room    int // for those that wait: little at first, when the best are soon known if many documents are as good
}

// waitingHit is a hit whose score is a bound.
type waitingHit struct {
	hit
	follow []uint32
}

// mostWaiting is how many documents wait for others to be better.
const mostWaiting = 256

// prepareTogether finds the superblocks that may have all words of the query in a line. A shard without an index of words
// has none. Opaque ones, whose words are not all known, do not count.
func (s *search) prepareTogether(q *Query) (err error) {
	t := &s.together
	*t = together{s: s, line: q.line, terms: q.terms, waiting: t.waiting[:0], room: min(s.opts.MaxFiles, mostWaiting)}
	if q.line == nil || s.words == nil || s.opts.MaxFiles == 0 {
		return nil
	}
	hits := s.bareHits(q)
	if t.places, err = s.commonPlaces(hits); err != nil {
		return err
	}
	for _, h := range hits {
		if err := t.meet(h); err != nil {
			return err
		}
	}
	if len(t.places) == 0 {
		return nil
	}
	if err := t.findBlobs(); err != nil {
		return err
	}
	typed, ok := q.line.Typed()
	if !ok {
		return nil
	}
	windows := slices.DeleteFunc(s.shardText.Windows(typed.Text, typed.CaseSensitive), func(w ngram.Window) bool { return w.OfWords })
	t.sequence, _, err = s.ngramPlaces(s.shardText, windows)
	return err
}

// bareHits are those of the words of the query that were looked up, those in the fewest superblocks first.
func (s *search) bareHits(q *Query) (hits []*wordHits) {
	for _, b := range q.bare {
		if known := s.known[q.texts[b]].hits; known != nil {
			hits = append(hits, known)
		}
	}
	slices.SortFunc(hits, func(a, b *wordHits) int { return len(a.tallies) - len(b.tallies) })
	return hits
}

// commonPlaces are the superblocks that are not opaque in which all have matches.
func (s *search) commonPlaces(hits []*wordHits) (places []tally, err error) {
	if len(hits) == 0 { // paths have excluded all
		return nil, nil
	}
	opaque, err := s.words.Opaque()
	if err != nil {
		return nil, err
	}
	at := make([]int, len(hits))
	for superblock, agreed, i := uint32(0), 0, 0; ; i = (i + 1) % len(hits) {
		tallies := hits[i].tallies
		if at[i] = seekTally(tallies, at[i], superblock); at[i] == len(tallies) {
			return places, nil
		}
		if found := tallies[at[i]].superblock; found > superblock {
			superblock, agreed = found, 0
		}
		if agreed++; agreed < len(hits) {
			continue
		}
		if _, hidden := opaque.Find(uint64(superblock)); !hidden {
			places = append(places, tally{superblock: superblock, blocks: 1<<ngram.BlocksPerSuperblock - 1})
		}
		superblock, agreed = superblock+1, 0
	}
}

// seekTally returns the index, not below at, of the first tally of a superblock from one on.
func seekTally(tallies []tally, at int, from uint32) int {
	return seek(tallies, at, from, func(t *tally) uint32 { return t.superblock })
}

// A line that counts is in the block in which it begins and the next one.
var _ [docstore.BlockSize]struct{} = [rank.LineBytes]struct{}{}

// maskPays is how many masks are looked at for a place that they may save. Of very many places few are read.
const maskPays = 32

// meet keeps the places in whose blocks the words of a text start, if looking at masks takes less than reading the places.
func (t *together) meet(h *wordHits) (err error) {
	left := uint64(len(t.places))
	seeks, postings := left*uint64(len(h.words))*seekPays, uint64(len(h.tallies))
	if min(seeks, postings) > maskPays*min(left, mostWaiting) {
		return nil
	}
	var found []tally
	if seeks < postings {
		found, err = t.s.talliesNear(h.words, t.places, 0, 0)
	} else {
		found, err = t.s.tallies(h.words, true)
	}
	kept, at := t.places[:0], 0
	for _, p := range t.places {
		if at = seekTally(found, at, p.superblock); at < len(found) && found[at].superblock == p.superblock {
			if p.blocks &= found[at].blocks | found[at].blocks>>1; p.blocks != 0 {
				kept = append(kept, p)
			}
		}
	}
	t.places = kept
	return err
}

// findBlobs finds the blobs of the places.
func (t *together) findBlobs() error {
	starts, err := t.s.content.SuperblockStarts()
	if err != nil {
		return err
	}
	cursor := blobOfSuperblocks{starts: starts}
	for i := range t.places {
		blob := cursor.of(t.places[i].superblock)
		if blob < 0 {
			return t.s.corrupt("a superblock belongs to no blob")
		}
		if n := len(t.blobs); n == 0 || t.blobs[n-1] != uint32(blob) {
			t.blobs = append(t.blobs, uint32(blob))
		}
	}
	return nil
}

// of returns the places in a blob, and its first superblock.
func (t *together) of(blob uint32) (places []tally, first uint32, err error) {
	first, length, err := t.s.content.Span(blob)
	from := seekTally(t.places, 0, first)
	to := seekTally(t.places, from, first+(length+docstore.SuperblockSize-1)/docstore.SuperblockSize)
	return t.places[from:to], first, err
}

// atBest is how the words stand together in a blob at best, as far as is known without its text.
func (t *together) atBest(blob uint32) (rank.Together, error) {
	if t.valid && t.blob == blob {
		return t.best, nil
	}
	t.blob, t.valid, t.best, t.follow = blob, true, rank.Scattered, t.follow[:0]
	if !holds(t.blobs, blob) {
		return t.best, nil
	}
	places, _, err := t.of(blob)
	t.best = rank.OneLine
	for i := 0; i < len(places) && t.line.Best() > rank.OneLine; i++ {
		if t.mayFollow(&places[i]) {
			t.best, t.follow = rank.InSequence, append(t.follow, places[i].superblock)
		}
	}
	return t.best, err
}

// mayFollow reports whether the words may follow each other in a place.
func (t *together) mayFollow(p *tally) bool {
	if t.sequence == nil || p.superblock < t.passed {
		return true
	}
	t.passed = p.superblock
	_, anchors, ok := t.sequence.SeekUpTo(p.superblock, p.superblock)
	return ok && p.blocks&(anchors|anchors>>1) != 0 // an anchor is in the line
}

// mostIn is the most that this adds to the score of a document.
func (t *together) mostIn(blob uint32) (float64, error) {
	best, err := t.atBest(blob)
	return rank.TogetherScore(best, t.terms), err
}

// readTogether scores a document whose score is a bound. It reads where the words may follow each other, and then others only until
// they stand in one line.
func (s *search) readTogether(h *hit, follow []uint32) error {
	places, first, err := s.together.of(h.blob)
	if err != nil {
		return err
	}
	found := rank.Scattered
	read := func(superblock uint32) error {
		from := (superblock - first) * docstore.SuperblockSize
		s.buf, err = s.reader.Append(s.buf[:0], h.blob, from, docstore.SuperblockSize)
		found = max(found, s.together.line.In(s.buf, from == 0))
		return cmp.Or(err, s.tick())
	}
	for i := 0; i < len(follow) && found < rank.InSequence; i++ {
		if err := read(follow[i]); err != nil {
			return err
		}
	}
	for i := 0; i < len(places) && found < rank.OneLine; i++ {
		if err := read(places[i].superblock); err != nil {
			return err
		}
	}
	h.features.Together = found
	h.score = h.features.Score()
	return nil
}

// wait has a document wait whose score is a bound.
func (s *search) wait(h *hit) error {
	t := &s.together
	h.spans, h.inWords, h.features.Terms = slices.Clone(h.spans), slices.Clone(h.inWords), slices.Clone(h.features.Terms)
	if t.waiting = append(t.waiting, waitingHit{*h, slices.Clone(t.follow)}); len(t.waiting) < t.room {
		return nil
	}
	t.room = min(2*t.room, mostWaiting)
	return s.settleWaiting()
}

// settleWaiting scores the documents that wait, those with the highest bounds first.
func (s *search) settleWaiting() (err error) {
	t := &s.together
	if len(t.waiting) == 0 {
		return nil
	}
	defer s.explain.during(PhaseScan)()
	slices.SortFunc(t.waiting, func(a, b waitingHit) int { return compareHits(a.hit, b.hit) })
	for i := range t.waiting {
		h := &t.waiting[i]
		if s.admits(h.score, h.doc) {
			if err = s.readTogether(&h.hit, h.follow); err != nil {
				break
			}
		}
		s.keep(&h.hit)
	}
	t.waiting = t.waiting[:0]
	return err
}

// keep keeps a hit if it is among the best.
func (s *search) keep(h *hit) {
	if s.admits(h.score, h.doc) {
		s.best.add(*h)
	} else {
		s.leaveOut()
	}
}
