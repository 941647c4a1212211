package shard

import (
	"errors"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	// spreadAfter is how much work one goroutine does alone, in bytes decoded: about a millisecond.
	// Most searches end earlier.
	spreadAfter = 1 << 20
	// documentWork is the work of looking at a document, in addition to its bytes.
	documentWork = 2 << 10
	// pieceSuperblocks is the least work to give to a helper.
	pieceSuperblocks = 128
	// piecesEach is the number of pieces for each goroutine. With several, none waits long for the
	// last one.
	piecesEach = 16
)

// helping counts the goroutines in the process that help searches. There are at most as many as
// processors, less one, in addition to the goroutine of each search.
var helping atomic.Int32

// all finds the documents that the query matches, or the best of them.
func (s *search) all(q *Query) error {
	s.announceTables(q)
	if done, err := s.amongWholeWords(q); done || err != nil {
		return err
	}
	if done, err := s.amongContenders(q); done || err != nil {
		return err
	}
	return s.passes(q)
}

// passes finds the documents that the query matches, in one pass or with a second one for the
// documents of low priority that the first has left out.
func (s *search) passes(q *Query) error {
	if err := s.beginHits(q); err != nil {
		return err
	}
	if err := s.from(q, 0); err != nil || !s.needsSecondPass() {
		return err
	}
	s.pass = lowPriority
	if err := s.begin(q); err != nil {
		return err
	}
	return s.from(q, s.deferredFrom)
}

// beginHits prepares the query for a scan for hits.
func (s *search) beginHits(q *Query) (err error) {
	if err = s.begin(q); err == nil {
		s.bulk, err = s.planBulk()
	}
	return err
}

// from scans the blobs from the first on, alone at first. If there is more to do, it continues with
// the free processors.
func (s *search) from(q *Query, first uint32) error {
	defer s.explain.scanning()()
	if s.wholeWords != nil { // the work is bounded
		return s.scanByPlace()
	}
	if s.bulk == nil && first == 0 && s.knowsBounds() {
		return s.scanByBound()
	}
	if s.narrowed != nil && s.narrowed.read {
		s.narrowed.budget += s.reader.BytesDecoded
		return s.scanContenders()
	}
	next, err := s.scan(first, s.content.Blobs(), s.worked, s.hit)
	if err != nil || next == s.content.Blobs() {
		return err
	}
	n, release := s.helpers()
	defer release()
	if n == 0 {
		_, err = s.scan(next, s.content.Blobs(), never, s.hit)
		return err
	}
	return s.spread(q, next, n)
}

// worked reports whether the search has worked long enough to ask for help. TopK often ends soon
// after, and helpers would work in vain.
func (s *search) worked() bool {
	enough := uint64(spreadAfter)
	if s.opts.Mode == TopK {
		enough *= 4
	}
	return s.opts.pieces > 0 || s.reader.BytesDecoded+s.stats.FilesConsidered*documentWork >= enough
}

// helpers takes the free processors until the caller calls release.
func (s *search) helpers() (n int, release func()) {
	if s.opts.pieces > 0 {
		return s.opts.pieces, func() {}
	}
	most := int32(runtime.GOMAXPROCS(0) - 1)
	for int32(n) < most {
		if helping.Add(1) > most {
			helping.Add(-1)
			break
		}
		n++
	}
	return n, func() { helping.Add(-int32(n)) }
}

// workers are the goroutines of one search. They take pieces of the shard in ascending order and
// share a floor.
type workers struct {
	bounds []uint32 // piece i has the blobs from bounds[i] to bounds[i+1]
	taken  atomic.Int64
	failed atomic.Bool
	floor  atomic.Pointer[floor]
	// stuffed is set when the limit of bytes, not of documents, may have set the floor.
	stuffed atomic.Bool
}

// floor is the last of the wanted number of documents: later ones are not among the best.
type floor struct {
	score float64
	doc   uint32
}

// errWorkerFailed stops the other workers of a search.
var errWorkerFailed = errors.New("another part of the search failed")

// spread searches the blobs from next on together with n helpers.
func (s *search) spread(q *Query, next uint32, n int) error {
	bounds, err := s.pieces(next, n+1)
	if err != nil {
		return err
	}
	c := &workers{bounds: bounds}
	s.workers = c
	parts, errs := make([]*search, n), make([]error, n+1)
	panics := make([]any, n)
	var wg sync.WaitGroup
	for i := range parts {
		parts[i] = s.shard.begin(s.ctx, s.opts)
		parts[i].repos, parts[i].workers, parts[i].pass, parts[i].narrowed = s.repos, c, s.pass, s.narrowed
		parts[i].known, parts[i].places = maps.Clone(s.known), maps.Clone(s.places)
		if s.explain != nil {
			parts[i].explain = newExplainer(parts[i], q)
		}
		wg.Go(func() {
			defer func() { panics[i] = recover() }()
			errs[i] = parts[i].help(q)
		})
	}
	errs[n] = s.work()
	wg.Wait()
	for i, part := range parts {
		if panics[i] != nil {
			panic(panics[i]) //nolint:forbidigo // a helper's panic is that of the search
		}
		s.join(part)
		part.release()
	}
	s.workers = nil // what its floor excluded, the best exclude now
	return firstFailure(errs)
}

// pieces cuts the blobs from next on into pieces with about as much content each.
func (s *search) pieces(next uint32, workers int) (bounds []uint32, err error) {
	least := uint32(pieceSuperblocks)
	if s.opts.pieces > 0 {
		least = 1
	}
	first, err := s.content.FirstSuperblock(next)
	if err != nil {
		return nil, err
	}
	end := s.content.Superblocks()
	step := max(least, (end-min(first, end))/uint32(workers*piecesEach))
	bounds = append(bounds, next)
	for at := uint64(first) + uint64(step); at < uint64(end); at += uint64(step) {
		blob, err := s.content.BlobOf(uint32(at))
		if err != nil {
			return nil, err
		}
		bounds = append(bounds, max(blob, bounds[len(bounds)-1]))
	}
	return append(bounds, s.content.Blobs()), nil
}

// help runs a helper.
func (s *search) help(q *Query) error {
	return s.shard.file.Guard(func() error {
		err := s.beginHits(q)
		if err == nil {
			s.stats = Stats{} // the search has counted these lists already
			s.explain.forget()
			defer s.explain.scanning()()
			err = s.work()
		} else {
			s.workers.failed.Store(true)
		}
		return err
	})
}

// work searches pieces until none is left. An error ends the work of all.
func (s *search) work() error {
	for {
		i := s.workers.taken.Add(1) - 1
		if i >= int64(len(s.workers.bounds)-1) {
			return nil
		}
		if _, err := s.scan(s.workers.bounds[i], s.workers.bounds[i+1], never, s.hit); err != nil {
			s.workers.failed.Store(true)
			return err
		}
	}
}

// join adds what a helper found.
func (s *search) join(part *search) {
	part.countReads()
	s.counts.candidates += part.counts.candidates
	scanned := max(s.stats.ShardsScanned, part.stats.ShardsScanned)
	s.stats.Add(part.stats)
	s.stats.ShardsScanned = scanned
	s.deferred = s.deferred || part.deferred
	s.best.cut = s.best.cut || part.best.cut
	for _, h := range part.best.hits {
		if s.best.admits(h.score, h.doc) {
			s.best.add(h)
		} else {
			s.leaveOut()
		}
	}
	s.explain.join(part.explain)
}

// publish raises the floor to that of the best so far. It fails if another worker has failed.
func (c *workers) publish(b *best) error {
	if c.failed.Load() {
		return errWorkerFailed
	}
	if b.limit == 0 || !b.full() {
		return nil
	}
	if b.stuffed() {
		c.stuffed.Store(true)
	}
	last := &b.hits[0]
	for {
		old := c.floor.Load()
		if old != nil && compareScored(last.score, last.doc, old.score, old.doc) >= 0 {
			return nil
		}
		if c.floor.CompareAndSwap(old, &floor{last.score, last.doc}) {
			return nil
		}
	}
}

// admits reports whether a document may be among the best of all workers.
func (c *workers) admits(score float64, doc uint32) bool {
	f := c.floor.Load()
	return f == nil || compareScored(score, doc, f.score, f.doc) <= 0
}

// firstFailure returns why the search failed: the cause, rather than that another worker failed or
// that the time is over.
func firstFailure(errs []error) error {
	var ended error
	for _, err := range errs {
		switch {
		case err == nil || errors.Is(err, errWorkerFailed):
		case isContextError(err):
			ended = err
		default:
			return err
		}
	}
	return ended
}
