package shard

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/words"
)

// search is the state of one search of one shard, or of pieces of one.
type search struct {
	shard       *Shard
	fileName    string
	ctx         context.Context
	deadline    time.Time
	hasDeadline bool
	ticks       uint32
	lookAt      uint64 // bytes decoded at which the clock is looked at
	goOn        func() bool
	ended       error // which goOn saw
	turnBegan   time.Time

	docs      *docstore.Docs
	content   *docstore.Content
	shardText *postings.Index
	names     *postings.Index
	words     *words.Index // nil if the shard has none

	opts      Options
	inContent bool // documents can have ranges in their content
	terms     int  // most of a document's score
	loose     bool // some are words of a match:any
	// defined are the blobs, ascending, in which a literal of the query may be defined, or that have a
	// name that the literals make up: compound.
	defined  []uint32
	compound compound
	together together
	queue    []candidate
	// asksForLow says that no document has low priority.
	asksForLow bool
	root       node
	nameAtoms  []*nameAtom  // whose ranges are shown
	wordAtoms  []*wordAtom  // whose ranges are shown
	textAtoms  int          // contentAtoms whose ranges are shown
	onlyText   *contentAtom // if the query has no other text
	known      map[*matching]knownWords
	places     map[regex.Literal]*wordPlaces // see contentPlaces
	spelled    map[regex.Literal]spelled
	among      *among // of what must match together, while that is made ready
	counting   counting
	bulk       *bulk // nil if each document is looked at
	// wholeWords is not nil while only documents with a whole word are looked at
	wholeWords *wholeWords
	// narrowed, if not nil, is the only contents that may be among the best
	narrowed *contenders
	// candidates for root; once onlyNamed those with a match in their path
	candidates   blobs
	onlyNamed    bool
	pass         pass
	losesTies    bool         // to Options.Floor, by the order of repos and paths
	firstPath    []byte       // of the shard's first document, once it is known
	deferredFrom uint32       // blob from which on documents were left to the second pass
	deferred     bool         // documents were left to the second pass
	lowFolder    docstore.Run // documents of the folder of low priority found last
	workers      *workers     // that share this search; nil while it runs alone

	repos      *repoView
	record     *docstore.Repo // of the repo looked at last
	recordOf   int
	named      *branchView // of the repo looked at last
	namedOf    int
	stats      Stats
	counts     indexReads
	explain    *explainer // nil unless the search is explained
	best       best
	room       int64 // bytes for chunks of the file that is made ready to be shown
	noRoom     bool  // a chunk was left out, and the file with it
	shelf      shelf
	shown      namedBranches
	showing    []spanList             // ranges of the file that is made ready to be shown
	tallyShelf []tally                // of hits that were counted
	walks      []*postings.Candidates // to be released

	*scratch
}

// indexReads count what an Explanation has and Stats do not.
type indexReads struct {
	lexiconBlocks, words, postings uint64
	candidates                     uint64 // contents whose documents were looked at
}

// scratch is memory that searches of a shard reuse.
type scratch struct {
	view      repoView
	reader    docstore.Reader
	text      blobText
	buf, edge []byte
	first     []span // of the document that is made ready to be shown
	doc       document
	gathered  gathered
	symbols   knownSymbols
	wordScratch
}

func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

var scratches sync.Pool

// keptText is the most content that each part of a scratch keeps room for.
const keptText = 4 << 20

// with runs f on a fresh search, and turns a fault of the mapping into an error.
func (s *Shard) with(ctx context.Context, opts Options, f func(*search) error) error {
	run := s.begin(ctx, opts)
	defer run.release()
	return s.file.Guard(func() error {
		if err := run.repos.reset(s.docs, &opts); err != nil {
			return err
		}
		return f(run)
	})
}

// begin makes a search in memory that release gives back.
func (s *Shard) begin(ctx context.Context, opts Options) *search {
	mem, ok := scratches.Get().(*scratch)
	if !ok {
		mem = new(scratch)
	}
	run := &search{
		shard: s, fileName: s.Name(), ctx: ctx, docs: s.docs, content: s.content, shardText: s.text, names: s.names, words: s.words,
		known: map[*matching]knownWords{},
		opts:  opts, best: best{limit: opts.MaxFiles, maxBytes: opts.MaxBytes}, repos: &mem.view, scratch: mem,
	}
	run.goOn, run.room = run.mayGoOn, math.MaxInt64
	run.deadline, run.hasDeadline = ctx.Deadline()
	run.turnBegan = time.Now()
	mem.reader.Reset(s.content)
	mem.text.valid, mem.symbols.valid = false, false
	mem.doc.s = run
	return run
}

// release lets go of the shard, and of the memory.
func (s *search) release() {
	for _, w := range s.walks {
		w.Release()
	}
	s.doc.s = nil
	s.reader.Reset(nil)
	s.view.docs, s.view.allowed = nil, nil
	s.gathered.release()
	for _, memory := range []*[]byte{&s.text.text, &s.buf, &s.edge} {
		if cap(*memory) > keptText {
			*memory = nil
		}
	}
	scratches.Put(s.scratch)
}

// tick is called in every long loop: it returns the context's error once it
// ended, looking at the clock now and then, and after so much content that
// searching it may have taken milliseconds.
func (s *search) tick() error {
	if s.ticks++; s.ticks&15 != 0 && s.reader.BytesDecoded < s.lookAt {
		return nil
	}
	return s.look()
}

// longestTurn is how long a search keeps a processor from those who wait for one,
// above all from the goroutine that is to answer in time. Go itself would let it
// go on for ten milliseconds.
const longestTurn = 200 * time.Microsecond

// look is tick at once.
func (s *search) look() error {
	s.lookAt = s.reader.BytesDecoded + pieceBytes
	if s.workers != nil {
		if err := s.workers.publish(&s.best); err != nil {
			return err
		}
	}
	now := time.Now()
	if s.hasDeadline && !now.Before(s.deadline) {
		return context.DeadlineExceeded
	}
	if now.Sub(s.turnBegan) >= longestTurn {
		runtime.Gosched()
		s.turnBegan = now
	}
	return cmp.Or(s.raiseFloor(), s.ctx.Err())
}

// mayGoOn is look for a search within a text, which asks goOn.
func (s *search) mayGoOn() bool {
	if s.ended == nil {
		s.ended = s.look()
	}
	return s.ended == nil
}

// readStep is how much content is decoded between two looks at the clock.
const readStep = 64 << 10

// read appends bytes of a blob to dst, as Reader.Append does; it ends when the
// context does.
func (s *search) read(dst []byte, blob, off, n uint32) (_ []byte, err error) {
	for dst = slices.Grow(dst, int(n)); n > 0; {
		step := min(n, readStep)
		if dst, err = s.reader.Append(dst, blob, off, step); err != nil {
			return dst, err
		}
		off, n = off+step, n-step
		if err := s.tick(); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// countReads takes over what the reader counted.
func (s *search) countReads() {
	s.stats.UnitsDecoded += s.reader.UnitsDecoded
	s.stats.BytesDecoded += s.reader.BytesDecoded
}
