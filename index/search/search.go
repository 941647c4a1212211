package search

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/snippet"
)

// search is the state of one search of a shard, or of a part of it.
type search struct {
	shard       *Shard
	ctx         context.Context
	deadline    time.Time
	hasDeadline bool
	ticks       uint32
	lookNext    uint64 // bytes decoded at which to look at the clock next
	goOn        func() bool
	ended       error // error that goOn saw
	turnBegan   time.Time

	docs      *docstore.Docs
	content   *docstore.Content
	shardText *inverted.Index
	names     *inverted.Index
	words     *inverted.Words // nil if the shard has none

	query *Query // nil while files are shown
	opts  Options

	root      node
	nameAtoms []*nameAtom    // with ranges that are shown
	reading   []*contentAtom // the texts for which the search reads contents
	known     map[*matching]*knownWords
	places    map[regex.Literal]*places // see contentPlaces
	spelled   map[regex.Literal]spelled
	among     *among // bounds the texts that are being prepared and must match together with others
	// defined are the blobs, ascending, that may define a literal of the query, or have a name that the literals make up: compound.
	// defining says which literal.
	defined  []uint32
	defining []*nameIn
	compound compound
	together together

	candidates blobs // for root
	queue      *queue
	workers    *workers // that share this search; nil while it has no helpers
	losesTies  bool     // to Options.Floor, in the order of repos and paths
	// mostOfRepo is the most that the rank of a repo adds to a score.
	mostOfRepo float64
	firstPath  []byte // of the shard's first document, once read

	repos      *repoView
	record     *docstore.Repo // of the last repo
	recordOf   int
	named      *branchView // of the last repo
	namedOf    int
	stats      Stats
	reads      Reads      // of words and lists; see allReads
	looked     uint64     // contents whose documents were looked at
	explain    *explainer // nil unless the search is explained
	best       best
	shelf      snippet.Arena[byte]
	ranges     snippet.Arena[snippet.Range]
	shown      namedBranches
	showing    []spanList             // ranges of the file being shown
	tallyShelf snippet.Arena[tally]   // of hits that were counted
	walks      []*inverted.Candidates // to be released

	*scratch
}

// scratch is memory that searches of a shard reuse.
type scratch struct {
	view      repoView
	reader    docstore.Reader
	text      blobText
	buf, edge []byte
	doc       document
	gathered  gathered
	symbols   knownSymbols
	overlap   []span
	waiting   []candidate // of the queue
	rated     rated
	wordScratch
}

func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

var scratches sync.Pool

// keptText is the most content for which each part of a scratch keeps room.
const keptText = 4 << 20

// keptCandidates is the most candidates for which a scratch keeps room.
const keptCandidates = 1 << 15

// with runs f on a fresh search for a query, if there is one, and turns a fault of the mapping into an error.
func (s *Shard) with(ctx context.Context, q *Query, opts Options, f func(*search) error) error {
	run := s.begin(ctx, q, opts)
	defer run.release()
	return s.Guard(func() error {
		if err := run.repos.reset(s.Docs, &opts); err != nil {
			return err
		}
		return f(run)
	})
}

// begin creates a search in pooled memory, which release gives back.
func (s *Shard) begin(ctx context.Context, q *Query, opts Options) *search {
	mem, ok := scratches.Get().(*scratch)
	if !ok {
		mem = new(scratch)
	}
	run := &search{
		shard: s, ctx: ctx, docs: s.Docs, content: s.Content, shardText: s.Text, names: s.Names, words: s.Words,
		known: map[*matching]*knownWords{}, queue: &queue{waiting: mem.waiting[:0]},
		query: q, opts: opts, best: best{limit: opts.MaxFiles, maxBytes: opts.MaxBytes}, repos: &mem.view, scratch: mem,
	}
	_, most := s.Docs.Ranks()
	run.mostOfRepo = rank.Repo(most)
	run.goOn = run.mayGoOn
	run.deadline, run.hasDeadline = ctx.Deadline()
	run.turnBegan = time.Now()
	mem.reader.Reset(s.Content)
	mem.text.valid, mem.symbols.valid = false, false
	mem.doc.s = run
	return run
}

// release releases the shard and the memory.
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
	if cap(s.queue.waiting) > cap(s.waiting) && cap(s.queue.waiting) <= keptCandidates {
		s.waiting = s.queue.waiting[:0]
	}
	if cap(s.rated.lines) > keptCandidates || cap(s.rated.scores) > keptCandidates {
		s.rated = rated{}
	}
	scratches.Put(s.scratch)
}

// tick is called in every long loop and returns the context's error once it has ended. It looks at the
// clock now and then, and after as much content as may have taken milliseconds to search.
func (s *search) tick() error {
	if s.ticks++; s.ticks&15 != 0 && s.reader.BytesDecoded < s.lookNext {
		return nil
	}
	return s.look()
}

// longestTurn is how long a search may keep a processor from goroutines that wait for one, above all
// from the one that must answer in time. Go itself would let it continue for ten milliseconds.
const longestTurn = 200 * time.Microsecond

// look does the checks of tick immediately.
func (s *search) look() error {
	s.lookNext = s.reader.BytesDecoded + pieceBytes
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

// mayGoOn is look for a search within a text, which calls it as goOn. It keeps the error in ended.
func (s *search) mayGoOn() bool {
	if s.ended == nil {
		s.ended = s.look()
	}
	return s.ended == nil
}

// readStep is how much content is decoded between two looks at the clock.
const readStep = 64 << 10

// read appends bytes of a blob to dst, as Reader.Append does. It stops when the context ends.
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

// countReads adds what the reader counted.
func (s *search) countReads() {
	s.stats.UnitsDecoded += s.reader.UnitsDecoded
	s.stats.BytesDecoded += s.reader.BytesDecoded
}
