package search

import (
	"errors"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
)

// helping counts the goroutines in the process that help searches. There are at most as many as
// processors, less one, in addition to the goroutine of each search.
var helping atomic.Int32

// worked reports whether the search has worked long enough to ask for help. TopK often ends soon
// after, and helpers would work in vain.
func (s *search) worked() bool {
	enough := uint64(spreadAfter)
	if s.opts.Mode == TopK {
		enough *= 4
	}
	return s.opts.helpers > 0 || s.reader.BytesDecoded+s.stats.FilesConsidered*documentWork >= enough
}

// helpers takes the free processors until the caller calls release. A search that is explained stays alone, so that what it reads does not
// depend on the machine.
func (s *search) helpers() (n int, release func()) {
	if s.explain != nil {
		return 0, func() {}
	}
	if s.opts.helpers > 0 {
		return s.opts.helpers, func() {}
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

// team is searches that help another one, each in a goroutine of its own.
type team struct {
	helpers []*search
	errs    []error
	panics  []any
	working sync.WaitGroup
	release func() // of the processors
}

// team has the free processors help with a query. prepare makes a helper ready, which then works.
func (s *search) team(q *Query, prepare func(helper *search), work func(helper *search) error) *team {
	n, release := s.helpers()
	t := &team{errs: make([]error, n), panics: make([]any, n), release: release}
	defer func() {
		if len(t.helpers) < n { // preparing one has panicked
			release()
		}
	}()
	helpers := make([]*search, n)
	for i := range helpers {
		helpers[i] = s.shard.begin(s.ctx, q, s.opts)
		helpers[i].repos = s.repos
		prepare(helpers[i])
	}
	t.helpers = helpers
	for i, helper := range helpers {
		t.working.Go(func() {
			defer func() { t.panics[i] = recover() }()
			t.errs[i] = s.shard.Guard(func() error { return work(helper) })
		})
	}
	return t
}

// end waits for the helpers and has join take what they found. Only the first call does anything.
func (t *team) end(join func(helper *search)) {
	t.working.Wait()
	t.release()
	helpers := t.helpers
	t.helpers, t.release = nil, func() {}
	for i, helper := range helpers {
		if t.panics[i] != nil {
			panic(t.panics[i]) //nolint:forbidigo // a helper's panic is that of the search
		}
		helper.countReads()
		join(helper)
		helper.release()
	}
}

// workers are the goroutines of one search. They share its queue and a floor.
type workers struct {
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

// spread settles the queue together with the free processors, if there are any.
func (s *search) spread() error {
	c := &workers{}
	s.workers = c
	t := s.team(s.query, func(helper *search) {
		helper.workers, helper.queue, helper.places = c, s.queue, maps.Clone(s.places)
		for m, known := range s.known {
			*helper.knownOf(m) = *known
		}
	}, (*search).help)
	apart := func(helper *search) { helper.queue = &queue{} } // what it had belongs to this search
	defer t.end(apart)                                        // even if a fault unwinds the stack: helpers use memory of this search
	if len(t.helpers) == 0 {
		s.workers = nil
		return nil
	}
	err := s.work()
	t.end(func(helper *search) {
		s.join(helper)
		apart(helper)
	})
	s.workers = nil // what its floor excluded, the best exclude now
	return firstFailure(append(t.errs, err))
}

// help runs a helper.
func (s *search) help() error {
	if err := s.prepare(); err != nil {
		s.workers.failed.Store(true)
		return err
	}
	s.stats = Stats{} // the search has counted these lists already
	return s.work()
}

// work settles candidates until none may be among the best. An error or a fault ends the work of all.
func (s *search) work() error {
	done := false
	defer func() {
		if !done {
			s.workers.failed.Store(true)
		}
	}()
	for {
		more, err := s.step()
		if err != nil {
			return err
		}
		if done = !more; done {
			return nil
		}
	}
}

// join adds what a helper found.
func (s *search) join(part *search) {
	s.looked += part.looked
	scanned := max(s.stats.ShardsScanned, part.stats.ShardsScanned)
	s.stats.Add(part.stats)
	s.stats.ShardsScanned = scanned
	s.best.cut = s.best.cut || part.best.cut
	for _, h := range part.best.hits {
		if s.best.admits(h.score, h.doc) {
			s.best.add(h)
		} else {
			s.notBest()
		}
	}
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
