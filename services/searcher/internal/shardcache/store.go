// Package shardcache keeps the shards that are placed on a searcher. They lie on local
// disk, are verified when they arrive, stay open while queries use them, and are fetched
// again if they turn out to be damaged. Shards beyond the disk budget are served by ranged
// reads of the bucket (package ranged).
//
//	             want             fetched, verified, opened
//	(unknown) ─────────▶ loading ────────────────────────▶ ready
//	                      ▲   │ failed: again after a pause   │
//	                      │   ▼                               │ damage found
//	                     waiting ◀──────────────────────────────┘
//
// A ready shard is either a whole copy or read by ranges. How often a shard is searched
// and how large it is decide which shards are whole: see room.go.
//
// A shard that is no longer wanted stays for a grace time, because queries that were
// planned earlier may still ask for it. It is removed when its last query has ended.
package shardcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/wait"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
	"github.com/trawl-search/trawl/services/searcher/internal/ranged"
)

// Errors of Acquire, for errors.Is.
var (
	// ErrNotCovered: the shard is not placed here, or not loaded yet.
	ErrNotCovered = errors.New("shard is not served here")
	// ErrCorrupt: the shard was found damaged and is being fetched anew.
	ErrCorrupt = errors.New("shard is damaged")
	// ErrUnavailable: the shard cannot be fetched or opened at the moment.
	ErrUnavailable = errors.New("shard cannot be loaded")
)

// Shard is an open shard; *search.Shard implements it.
type Shard interface {
	search.Finder
	Count(ctx context.Context, q *search.Query, opts search.Options, by []search.Facet) (*search.Counted, error)
	List(ctx context.Context, q *search.Query, opts search.ListOptions) (*search.ListResult, error)
	File(ctx context.Context, repo string, path []byte, branch string, opts search.Options, part search.Part) (*search.File, error)
	Tree(ctx context.Context, repo string, of search.Options, opts search.TreeOptions) (*search.Tree, error)
	Close() error
}

// Ref names a shard object.
type Ref struct {
	Digest searchapi.Digest
	Key    string
	Size   int64
}

// Config configures a Store.
type Config struct {
	// Dir is the cache folder. One store at a time.
	Dir string
	// Budget bounds what the store has on disk, in bytes; 0 means no limit.
	Budget int64
	// Loads bounds the shards that are fetched at once.
	Loads int
	// Grace is how long the store keeps a shard that is no longer wanted.
	Grace time.Duration
	// Retry is the first pause after a failed load; it doubles up to a minute.
	Retry time.Duration
}

// Store keeps shards. It is safe for concurrent use.
type Store struct {
	cfg     Config
	bucket  bucket.Bucket
	open    func(path string) (Shard, error)
	log     *slog.Logger
	metrics *Metrics
	budget  *disk.Budget
	ranges  *ranged.Cache

	mu      sync.Mutex
	entries map[searchapi.Digest]*entry
	// whole is what whole files take of the budget, in bytes: those that are
	// open or being written, left ones of an earlier process, by digest, and
	// those in quarantine, by name.
	whole int64
	// wholeLimit is what they may take.
	wholeLimit int64
	left       map[searchapi.Digest]int64
	aside      map[string]int64
	// wanted is the revision of the newest Want. dropping has the shards that are not
	// wanted and may be on disk, with the revision of the last Want that named them.
	// purged is the highest revision that PurgedThrough has returned.
	wanted   int64
	dropping map[searchapi.Digest]int64
	purged   int64
	// lingering are open shards that no entry refers to, but that are still in use.
	lingering map[*opened]searchapi.Digest
	// pruned is set once Prune was called: unwanted files of an earlier process are removed.
	pruned bool
	// removeAt is when files that could not be removed are tried again.
	removeAt time.Time
	// asked counts the requests for shards since the counts were last halved.
	asked int
	// changed reports that an entry changed.
	changed wait.Change
	// wakeups wakes Run. It holds at most one wake-up.
	wakeups chan struct{}
}

// New makes a store over a cache folder, which it creates if it is missing. It removes
// files that an earlier process left half-written, and uses complete ones when their
// shards are wanted. Nothing is fetched before Run.
func New(cfg Config, b bucket.Bucket, open func(path string) (Shard, error), log *slog.Logger, m *Metrics) (*Store, error) {
	for _, dir := range []string{cfg.Dir, filepath.Join(cfg.Dir, quarantineDir)} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("make the shard cache: %w", err)
		}
	}
	s := &Store{
		cfg: cfg, bucket: b, open: open, log: log, metrics: m,
		budget: disk.NewBudget(cfg.Budget), left: make(map[searchapi.Digest]int64), aside: make(map[string]int64),
		dropping: make(map[searchapi.Digest]int64), lingering: make(map[*opened]searchapi.Digest),
		entries: make(map[searchapi.Digest]*entry), wakeups: make(chan struct{}, 1),
	}
	s.resize()
	s.ranges = ranged.New(cfg.Dir, b, s.budget, log, m.ranges)
	m.budget.Store(s.budget)
	if err := s.sweep(); err != nil {
		return nil, err
	}
	if err := disk.Holes(cfg.Dir); err != nil && cfg.Budget > 0 {
		log.Warn("the cache folder's file system frees no parts of files: shards that do not fit will soon have no room", "error", err)
	}
	return s, nil
}

// Want replaces the set of shards to hold by that of a revision of the roots.
func (s *Store) Want(revision int64, refs []Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	wanted := make(map[searchapi.Digest]bool, len(refs))
	for _, ref := range refs {
		wanted[ref.Digest] = true
		e := s.entries[ref.Digest]
		if e == nil {
			e = &entry{ref: ref, state: waiting}
			s.entries[ref.Digest] = e
		}
		e.unwanted = time.Time{}
	}
	for d, e := range s.entries {
		if !wanted[d] && e.unwanted.IsZero() {
			e.unwanted = now
		}
	}
	s.drop(revision, wanted)
	s.resize()
	s.notify()
}

// notify wakes Run and all goroutines that wait for a change. Callers hold mu.
func (s *Store) notify() {
	s.changed.Notify()
	s.wake()
}

// Counts are the numbers of shards by state.
type Counts struct {
	// Ready shards are open. Pending shards have not finished their first try. Failed shards wait
	// for the next try.
	Ready, Pending, Failed int
	// Bytes is the size of the ready shards.
	Bytes int64
	// Reason is why one of the failed shards failed.
	Reason string
}

// Settled reports whether every shard was loaded, or failed to load, at least once.
func (c Counts) Settled() bool { return c.Pending == 0 }

// Counts counts the wanted shards.
func (s *Store) Counts() (c Counts, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		switch {
		case !e.unwanted.IsZero():
		case e.state == ready:
			c.Ready++
			c.Bytes += e.ref.Size
		case e.failure != nil:
			c.Failed++
			c.Reason = e.failure.Error()
		default:
			c.Pending++
		}
	}
	return c, s.changed.Next()
}
