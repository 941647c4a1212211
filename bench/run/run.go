// Package run measures the corpora, one after the other, and writes the results as one dated text.
package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/engine"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
)

// DefaultTimeout is the longest time of one query. A slower query counts as failed. Most
// expressions without a literal in zoekt on Linux do, and each costs a run this much time.
const DefaultTimeout = 10 * time.Second

// leastOpen is the least number of open shards for heap and open time: a shard is opened again until
// there are that many.
const leastOpen = 128

// Config says what to measure.
type Config struct {
	// Corpus is a name of package corpus, or "all".
	Corpus string
	// Seed of the queries, Queries of each bucket, each run Repeat times. Indexes are built equally
	// often.
	Seed            uint64
	Queries, Repeat int
	Timeout         time.Duration
	// Modules is the most repos of the corpus modules, and Packed those of the corpus packed (0: all).
	Modules, Packed int
	// Results is the folder of the dated results.
	Results string
	Peers   bool
	// ZoektBin is the folder of zoekt's programs; empty means the PATH.
	ZoektBin string
	// Profile is "", "index" or "search"; ProfileFile is its output file.
	Profile, ProfileFile string
	// Log shows progress. Args are the flags as given, for the record.
	Log  io.Writer
	Args []string
}

// measured has all results for one corpus.
type measured struct {
	corpus  corpus.Corpus
	indexed engine.Indexed
	// cost is that of the cheapest build, cold that of the first build, with no file in the page
	// cache.
	cost, cold peer.Cost
	single     *single   // nil for a single repo
	ctags      peer.Cost // of zoekt with ctags; zero without
	opened     []opening
	packs      *packing // nil for a single repo
	section    []engine.SectionSize
	peers      []*opponent
	absent     []string // peers that take no part, with the reasons
	buckets    []bucket
}

// opening is one way of keeping shards open.
type opening struct {
	what string
	engine.Opened
}

// single is the cost of building one shard per repo.
type single struct {
	engine.Indexed

	cost peer.Cost
}

// opponent is a peer with its costs: of the cheapest build, and of the first.
type opponent struct {
	peer.Peer
	version    string
	cost, cold peer.Cost
	indexes    bool
}

// Main measures, and writes the results even if a later corpus fails.
func Main(ctx context.Context, cfg Config) error {
	scratch, err := corpus.Scratch()
	if err != nil {
		return err
	}
	r := &runner{cfg: cfg, scratch: scratch}
	if cfg.Profile != "" {
		return r.profile(ctx, corpus.Named(cfg.Corpus)[0])
	}
	started := time.Now()
	all, err := corpus.Each(cfg.Corpus, func(name string) (*measured, error) { return r.corpus(ctx, name) })
	if len(all) == 0 {
		return err
	}
	return errors.Join(err, r.write(ctx, started, all))
}

// write writes the results as text and, under the same name, as a picture and as machine-readable
// figures.
func (r *runner) write(ctx context.Context, started time.Time, all []*measured) error {
	var text, picture bytes.Buffer
	r.report(ctx, &text, started, all)
	if err := r.plot(&picture, started, all); err != nil {
		return err
	}
	stem, err := report.Save(r.cfg.Results, r.cfg.Corpus, started, map[string][]byte{".txt": text.Bytes(), ".svg": picture.Bytes()})
	if err != nil {
		return err
	}
	r.logf("%s\nwritten to %s.txt and .svg", text.String(), stem)
	return report.SaveRecord(ctx, stem, "in process", started, figuresOf(all))
}

type runner struct {
	cfg     Config
	scratch string
}

func (r *runner) logf(format string, args ...any) { fmt.Fprintf(r.cfg.Log, format+"\n", args...) }

func (r *runner) find(ctx context.Context, name string) (corpus.Corpus, error) {
	most := r.cfg.Modules
	if name == "packed" {
		most = r.cfg.Packed
	}
	return corpus.Find(ctx, name, r.scratch, most)
}

// corpus measures one corpus. Indexing comes first, while this process is small, because the peak
// memory of a child is never below its parent's.
func (r *runner) corpus(ctx context.Context, name string) (m *measured, err error) {
	r.logf("%s: finding the files", name)
	m = &measured{}
	if m.corpus, err = r.find(ctx, name); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(r.scratch, "index-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for indexes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := r.index(ctx, m, dir); err != nil {
		return nil, err
	}
	defer func() {
		for _, p := range m.peers {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := r.indexPeers(ctx, m, dir); err != nil {
		return nil, err
	}
	if err := r.indexAgain(ctx, m, dir); err != nil {
		return nil, err
	}
	if err := r.indexCtags(ctx, m, dir); err != nil {
		return nil, err
	}
	files, err := corpus.ReadFiles(ctx, m.corpus, r.cfg.Seed)
	if err != nil {
		return nil, err
	}
	queries := corpus.Sample(files, r.cfg.Seed, r.cfg.Queries)
	if err := r.search(ctx, m, queries); err != nil {
		return m, err
	}
	return m, r.searchPacks(ctx, m, queries)
}

func (r *runner) index(ctx context.Context, m *measured, dir string) error {
	r.logf("%s: indexing %d repos", m.corpus.Name, len(m.corpus.Repos))
	if err := forget(m.corpus); err != nil {
		return err
	}
	a, cost, err := r.build(ctx, m, filepath.Join(dir, "packed"), false)
	if err != nil {
		return err
	}
	m.indexed, m.cost, m.cold = a.Indexed, cost, cost
	if m.section, err = engine.Sections(m.indexed.Shards); err != nil {
		return err
	}
	if err := r.open(ctx, m, "as indexed", m.indexed.Shards, 0); err != nil {
		return err
	}
	if len(m.corpus.Repos) == 1 {
		return r.open(ctx, m, "the same shards over again", m.indexed.Shards, leastOpen)
	}
	if a, cost, err = r.build(ctx, m, filepath.Join(dir, "single"), true); err != nil {
		return err
	}
	m.single = &single{a.Indexed, cost}
	if err := r.open(ctx, m, "a shard for each repo", m.single.Shards, leastOpen); err != nil {
		return err
	}
	return r.pack(ctx, m, dir, m.single.Shards)
}

// forget drops the files of a corpus from the page cache.
func forget(c corpus.Corpus) error {
	for _, repo := range c.Repos {
		if err := peer.DropCache(repo.Dir); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) build(ctx context.Context, m *measured, out string, perRepo bool) (answer, peer.Cost, error) {
	if err := os.Mkdir(out, 0o777); err != nil {
		return answer{}, peer.Cost{}, fmt.Errorf("making a folder for shards: %w", err)
	}
	a, cost, err := delegate(ctx, order{Repos: m.corpus.Repos, Out: out, PerRepo: perRepo})
	if err != nil {
		return a, cost, fmt.Errorf("indexing: %w", err)
	}
	return a, cost, nil
}

func (r *runner) open(ctx context.Context, m *measured, what string, shards []string, count int) error {
	a, _, err := delegate(ctx, order{Shards: shards, Opens: count})
	if err != nil {
		return fmt.Errorf("opening shards: %w", err)
	}
	m.opened = append(m.opened, opening{what, a.Opened})
	return nil
}

func (r *runner) indexPeers(ctx context.Context, m *measured, dir string) error {
	if !r.cfg.Peers {
		return nil
	}
	for _, p := range peer.Installed(r.cfg.ZoektBin) {
		r.logf("%s: preparing %s", m.corpus.Name, p.Name())
		o := &opponent{Peer: p, version: p.Version(ctx)}
		folder := filepath.Join(dir, p.Name())
		if err := os.Mkdir(folder, 0o777); err != nil {
			return fmt.Errorf("making a folder for an index: %w", err)
		}
		if err := forget(m.corpus); err != nil {
			return err
		}
		var err error
		o.cost, o.indexes, err = p.Index(ctx, m.corpus, folder)
		o.cold = o.cost
		switch {
		case errors.Is(err, peer.ErrTooManyRepos):
			m.absent = append(m.absent, fmt.Sprintf("%s takes no part: %v", p.Name(), err))
		case err != nil:
			return errors.Join(fmt.Errorf("indexing with %s: %w", p.Name(), err), p.Close())
		default:
			m.peers = append(m.peers, o)
		}
	}
	return nil
}
