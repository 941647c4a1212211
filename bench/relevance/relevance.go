// Package relevance measures how high servers rank the file that somebody looks for. The queries are
// made by rule from repos at fixed commits: names and what their comments and commits say. Trawl is
// asked as `trawl up`, beside zoekt-webserver in both of its orders.
package relevance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
)

// Config says what to measure.
type Config struct {
	// Repos is the folder of the Git repositories, each by its name; see README.md.
	Repos string
	// Trawl is the program. ZoektBin is the folder of zoekt's; empty means the PATH.
	Trawl, ZoektBin string
	// Results is the folder of the dated results.
	Results string
	// Log shows progress. Args are the flags as given, for the record.
	Log  io.Writer
	Args []string
}

// engine is a server, and how it is asked.
type engine struct {
	name  string
	opts  peer.Options
	ranks []int // of the best of each query's targets, from 1; 0 if none is among the files shown
}

// shown is how many files are asked for. A query without a target among them counts as not found.
const shown = 50

// Main measures, and writes a dated result.
func Main(ctx context.Context, cfg Config) (err error) {
	started := time.Now()
	dir, err := os.MkdirTemp("", "relevance-")
	if err != nil {
		return fmt.Errorf("making a folder for the repos: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Fprintln(cfg.Log, "making the queries")
	repos, queries, err := prepare(ctx, cfg.Repos, filepath.Join(dir, "src"))
	if err != nil {
		return err
	}
	engines, webserver, err := askAll(ctx, &cfg, repos, dir, queries)
	if err != nil {
		return err
	}
	for i, q := range queries { // of the half that is only reported, nothing but figures is seen
		if rank := engines[0].ranks[i]; q.tuning && rank != 1 {
			fmt.Fprintf(cfg.Log, "%-14s %3d  %s  (%s)\n", q.kind, rank, q.query, strings.Join(q.targets, ", "))
		}
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "Relevance of %d known items in %d repos, %s\n\n", len(queries), len(repos.Repos), started.UTC().Format("2006-01-02 15:04"))
	report.Host(ctx, &text, cfg.Args)
	if webserver != "" {
		fmt.Fprintf(&text, "  zoekt     %s, with ctags\n", peer.ZoektVersion(ctx, webserver))
	}
	fmt.Fprintf(&text, "  queries   SHA-256 %.16s\n", digest(queries))
	for _, p := range pins {
		fmt.Fprintf(&text, "  %-9s %.12s\n", p.name, p.commit)
	}
	write(&text, queries, engines)
	return save(ctx, &cfg, "relevance", started, text.Bytes(), ahead(queries, engines))
}

// save writes a result as text, and its figures beside it.
func save(ctx context.Context, cfg *Config, name string, started time.Time, text []byte, figures report.Figures) error {
	stem, err := report.Save(cfg.Results, name, started, map[string][]byte{".txt": text})
	if err != nil {
		return err
	}
	fmt.Fprintf(cfg.Log, "%s\nwritten to %s.txt\n", text, stem)
	return report.SaveRecord(ctx, stem, "relevance", started, figures)
}

// askAll asks Trawl, and zoekt in both of its orders if that is installed; webserver is its program.
func askAll(ctx context.Context, cfg *Config, repos corpus.Corpus, dir string, queries []known) (engines []*engine, webserver string, err error) {
	engines = []*engine{{name: "trawl", opts: peer.Early(shown)}}
	if err := askTrawl(ctx, cfg, repos, dir, queries, engines); err != nil {
		return nil, "", err
	}
	indexer, webserver, ok := peer.ZoektPrograms(cfg.ZoektBin)
	if !ok {
		fmt.Fprintln(cfg.Log, "zoekt-index and zoekt-webserver are neither on the PATH nor in ZOEKT_BIN: Trawl is measured alone")
		return engines, "", nil
	}
	bm25 := peer.Every(shown)
	bm25.UseBM25Scoring = true
	zoekt := []*engine{{name: "zoekt, default", opts: peer.Every(shown)}, {name: "zoekt, BM25", opts: bm25}}
	err = askZoekt(ctx, cfg, indexer, webserver, repos, dir, queries, zoekt)
	return append(engines, zoekt...), webserver, err
}

// prepare writes the files of the repos into a folder, and makes the queries.
func prepare(ctx context.Context, repos, dir string) (c corpus.Corpus, queries []known, err error) {
	t := &tree{files: map[string][]*file{}, commits: map[string][]commit{}, tagged: map[string][]*file{}}
	c.Name = "relevance"
	for _, p := range pins {
		from := filepath.Join(repos, p.name)
		if _, err := os.Stat(from); err != nil {
			return c, nil, fmt.Errorf("%s is not in %s: %w: git clone %s", p.name, from, errMissing, p.url)
		}
		r := corpus.Repo{Name: p.name, Dir: filepath.Join(dir, p.name)}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return c, nil, fmt.Errorf("making a folder for the repos: %w", err)
		}
		if err := p.export(ctx, from, r.Dir); err != nil {
			return c, nil, err
		}
		c.Repos = append(c.Repos, r)
		t.repos = append(t.repos, p.name)
		if t.files[p.name], err = readFiles(r, isSource); err != nil {
			return c, nil, err
		}
		if t.commits[p.name], err = p.readCommits(ctx, from, t.files[p.name]); err != nil {
			return c, nil, err
		}
		tagged, err := defining(ctx, r.Dir, t.files[p.name])
		if err != nil {
			return c, nil, err
		}
		for name, files := range tagged {
			t.tagged[name] = append(t.tagged[name], files...)
		}
	}
	return c, generate(t), nil
}

// askTrawl indexes the repos with `trawl up` and asks it.
func askTrawl(ctx context.Context, cfg *Config, c corpus.Corpus, dir string, queries []known, engines []*engine) (err error) {
	bar := report.NewProgress(cfg.Log, "indexing with Trawl", len(c.Repos))
	t, err := peer.IndexTrawl(ctx, cfg.Trawl, dir, c, bar.Step)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return ask(ctx, cfg, t.Server, queries, engines)
}

// askZoekt has zoekt serve the repos and asks it.
func askZoekt(ctx context.Context, cfg *Config, indexer, webserver string, c corpus.Corpus, dir string, queries []known, engines []*engine) (err error) {
	fmt.Fprintln(cfg.Log, "indexing with zoekt")
	s, err := serveZoekt(ctx, indexer, webserver, c, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return ask(ctx, cfg, s, queries, engines)
}

// serveZoekt indexes the repos with zoekt-index and ctags, and starts zoekt-webserver.
func serveZoekt(ctx context.Context, indexer, webserver string, c corpus.Corpus, dir string) (*peer.Server, error) {
	index := filepath.Join(dir, "zoekt")
	if err := os.Mkdir(index, 0o777); err != nil {
		return nil, fmt.Errorf("making a folder for zoekt's index: %w", err)
	}
	if _, err := peer.IndexZoekt(ctx, indexer, c, index, peer.WithCtags); err != nil {
		return nil, err
	}
	s, err := peer.Zoekt(ctx, webserver, index)
	if err != nil {
		return nil, err
	}
	if err := s.AwaitRepos(ctx, len(c.Repos)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ask asks a server every query in each of its ways.
func ask(ctx context.Context, cfg *Config, s *peer.Server, queries []known, engines []*engine) error {
	for _, e := range engines {
		bar := report.NewProgress(cfg.Log, e.name, len(queries))
		for _, q := range queries {
			reply, err := s.Search(ctx, q.query, e.opts)
			if err != nil {
				return fmt.Errorf("asking %s for %q: %w", e.name, q.query, err)
			}
			files, err := reply.Ranked()
			if err != nil {
				return err
			}
			e.ranks = append(e.ranks, 1+slices.IndexFunc(files, func(f string) bool { return slices.Contains(q.targets, f) }))
			bar.Step(string(q.kind))
		}
	}
	return nil
}

// write writes a table for each half.
func write(w io.Writer, queries []known, engines []*engine) {
	for _, tuning := range []bool{false, true} {
		title := "The half that is only reported"
		if tuning {
			title = "The half that was tuned on"
		}
		fmt.Fprintf(w, "\n%s: mean reciprocal rank, and targets among the first 1, 5 and 10 files in percent\n\n", title)
		var t report.Table
		header := []string{"", "queries"}
		for _, e := range engines {
			header = append(header, e.name, "1", "5", "10")
		}
		t.Row(header...)
		for _, k := range append([]kind{""}, kinds...) {
			t.Row(row(queries, engines, k, tuning)...)
		}
		t.Write(w)
	}
}

// row is that of a kind; none means all.
func row(queries []known, engines []*engine, k kind, tuning bool) []string {
	cells := []string{string(k), ""}
	if k == "" {
		cells[0] = "all"
	}
	for _, e := range engines {
		ranks := ranksOf(queries, e, k, tuning)
		m := measure(ranks)
		cells[1] = strconv.Itoa(len(ranks))
		cells = append(cells, fmt.Sprintf("%.3f", m.mrr), fmt.Sprintf("%.0f", m.first[0]), fmt.Sprintf("%.0f", m.first[1]), fmt.Sprintf("%.0f", m.first[2]))
	}
	return cells
}

// ahead are the figures of the half that is only reported: by how much Trawl is ahead of the better
// one of zoekt's orders, for each kind. There are none without zoekt.
func ahead(queries []known, engines []*engine) (figures report.Figures) {
	for _, k := range kinds {
		rate := func(e *engine) float64 { return measure(ranksOf(queries, e, k, false)).mrr }
		best := 0.0
		for _, e := range engines[1:] {
			best = max(best, rate(e))
		}
		if len(engines) > 1 {
			figures = append(figures, report.AtLeast("mean reciprocal rank of "+string(k)+", beyond zoekt's better order", rate(engines[0])-best, neededAhead, ""))
		}
	}
	for i := range figures {
		figures[i].Corpus = "known items"
	}
	return figures
}

// Figures to reach, of mean reciprocal ranks.
const (
	neededAhead = .10
	neededCases = .85
)

// ranksOf are an engine's of the queries of one half and kind; none means all.
func ranksOf(queries []known, e *engine, k kind, tuning bool) (ranks []int) {
	for i, q := range queries {
		if q.tuning == tuning && (k == "" || q.kind == k) {
			ranks = append(ranks, e.ranks[i])
		}
	}
	return ranks
}

// figures of some queries: the mean reciprocal rank, and how many percent of the targets are among the
// first 1, 5 and 10 files.
type figures struct {
	mrr   float64
	first [3]float64
}

func measure(ranks []int) (f figures) {
	for _, rank := range ranks {
		if rank == 0 {
			continue
		}
		f.mrr += 1 / float64(rank) / float64(len(ranks))
		for i, most := range []int{1, 5, 10} {
			if rank <= most {
				f.first[i] += 100 / float64(len(ranks))
			}
		}
	}
	return f
}
