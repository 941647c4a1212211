// Package served measures what callers see: a real `trawl up`, with router, searcher, etcd and
// NATS, and zoekt-webserver, on the same files, over loopback. Both get the same queries in turn,
// first one at a time and then from many clients at once.
package served

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
)

// Config says what to measure.
type Config struct {
	// Corpus lists corpora, as corpus.Named reads it. Each gets a result of its own.
	Corpus string
	// Seed of the queries, Queries of each bucket, each run Repeat times.
	Seed            uint64
	Queries, Repeat int
	// Timeout is the longest time of one query. A slower query is late, and counts as that long.
	Timeout time.Duration
	// Buckets are the ones that queries are sampled for; none means all.
	Buckets []corpus.Bucket
	// Load is the least time for each number of concurrent Clients; 0 skips this part.
	Load    time.Duration
	Clients []int
	// DefaultLimits also measures zoekt with the limits on files that it has by default.
	DefaultLimits bool
	// Keep is a folder in which zoekt's indexes are kept for the next run on the same files; empty: none.
	Keep string
	// Cold is the number of rounds of queries from a cold disk; 0 skips them.
	Cold int
	// Ranged is the number of rounds of queries on shards in S3; 0 skips them.
	Ranged int
	// RE2 also measures regular expressions with zoekt's other engine for them.
	RE2 bool
	// Modules and Packed are the most repos of the corpora of that name (0: all).
	Modules, Packed int
	// Trawl is the program. ZoektBin is the folder of zoekt's programs; empty means the PATH.
	Trawl, ZoektBin string
	// Results is the folder of the dated results.
	Results string
	// Log shows progress. Args are the flags as given, for the record.
	Log  io.Writer
	Args []string
}

// ErrNoZoekt is the error if there is nothing to compare with.
var ErrNoZoekt = errors.New("zoekt-index and zoekt-webserver are neither on the PATH nor in ZOEKT_BIN")

// measured has all results for one corpus.
type measured struct {
	corpus   corpus.Corpus
	files    int   // of the corpus
	bytes    int64 // of these files
	prepared []prepared
	sets     []sets
	buckets  [2][]bucket // by mode
	loads    []load
	memory   []memory
	cold     []cold
	ranged   []ranged
}

// Main measures one corpus after the other, and writes the results of each.
func Main(ctx context.Context, cfg Config) error {
	indexer, webserver, ok := peer.ZoektPrograms(cfg.ZoektBin)
	if !ok {
		return ErrNoZoekt
	}
	scratch, err := corpus.Scratch()
	if err != nil {
		return err
	}
	r := &runner{cfg: cfg, scratch: scratch, indexer: indexer, webserver: webserver}
	for _, name := range corpus.Named(cfg.Corpus) {
		started := time.Now()
		m, err := r.measure(ctx, name)
		if err == nil {
			err = r.write(ctx, started, m)
		}
		if err != nil {
			return fmt.Errorf("measuring %s: %w", name, err)
		}
	}
	return nil
}

func (r *runner) write(ctx context.Context, started time.Time, m *measured) error {
	var text, picture bytes.Buffer
	r.report(ctx, &text, started, m)
	if err := draw(&picture, started, m); err != nil {
		return err
	}
	stem, err := report.Save(r.cfg.Results, "served-"+m.corpus.Name, started, map[string][]byte{".txt": text.Bytes(), ".svg": picture.Bytes()})
	if err != nil {
		return err
	}
	r.logf("%s\nwritten to %s.txt and .svg", text.String(), stem)
	var figures report.Figures
	figures.Add(m.corpus.Label(), m.figures())
	return report.SaveRecord(ctx, stem, "served", started, figures)
}

type runner struct {
	cfg                Config
	scratch            string
	indexer, webserver string
}

func (r *runner) logf(format string, args ...any) { fmt.Fprintf(r.cfg.Log, format+"\n", args...) }

// measure measures one corpus.
func (r *runner) measure(ctx context.Context, name string) (m *measured, err error) {
	most := r.cfg.Modules
	if name == "packed" {
		most = r.cfg.Packed
	}
	r.logf("%s: finding the files", name)
	m = &measured{}
	if m.corpus, err = corpus.Find(ctx, name, r.scratch, most); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(r.scratch, "served-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for indexes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	queries, err := r.queries(ctx, m.corpus)
	if err != nil {
		return nil, err
	}
	if m.files, m.bytes, err = m.corpus.Bytes(ctx); err != nil {
		return nil, err
	}
	trawlLog, err := os.Create(filepath.Join(dir, "trawl.log"))
	if err != nil {
		return nil, fmt.Errorf("making a file for Trawl's log: %w", err)
	}
	defer func() { err = errors.Join(err, trawlLog.Close()) }()
	h := &host{runner: r, measured: m, dir: dir, trawlLog: trawlLog, queries: queries}
	defer func() { err = errors.Join(err, h.close()) }()
	for _, step := range []func(context.Context) error{
		h.prepare, h.start, h.warm, h.turns, h.load, h.remember, h.freeze, h.fetch,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// queries returns the queries of a corpus, in the order of their buckets.
func (r *runner) queries(ctx context.Context, c corpus.Corpus) ([]corpus.Query, error) {
	if len(c.Queries) > 0 {
		return c.Queries, nil
	}
	files, err := corpus.ReadFiles(ctx, c, r.cfg.Seed)
	if err != nil {
		return nil, err
	}
	queries := corpus.Sample(files, r.cfg.Seed, r.cfg.Queries)
	if len(r.cfg.Buckets) > 0 {
		queries = slices.DeleteFunc(queries, func(q corpus.Query) bool { return !slices.Contains(r.cfg.Buckets, q.Bucket) })
	}
	return queries, nil
}
