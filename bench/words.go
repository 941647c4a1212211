package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/engine"
	"github.com/trawl-search/trawl/bench/report"
)

// wordsConfig configures measureWords.
type wordsConfig struct {
	Corpus string
	Seed   uint64
	// Queries of each number of words, each run Repeat times: the fastest run counts.
	Queries, Repeat int
	// Results is the folder of the dated table and plot.
	Results string
	Out     io.Writer
	// Args are the arguments of the run, for the table.
	Args []string
}

// mostWords is the most words of a query.
const mostWords = 8

// bestCounts are the numbers of best files that are requested.
var bestCounts = []int{10, 100}

// asked is a way in which each query is asked.
type asked struct {
	// any is whether a file matches that has any of the words. Otherwise it must have all of them.
	any bool
	// best is the number of best files that are requested.
	best int
}

func (a asked) String() string {
	if a.any {
		return fmt.Sprintf("any word, top %d", a.best)
	}
	return fmt.Sprintf("all words, top %d", a.best)
}

// ways are the ways in which each query is asked.
func ways() (all []asked) {
	for _, anyWord := range []bool{false, true} {
		for _, best := range bestCounts {
			all = append(all, asked{anyWord, best})
		}
	}
	return all
}

// wordTimes are the least times of the queries, in their order, for each way of asking.
type wordTimes map[asked][]time.Duration

// mostOfLucene is the aim: how many times as long as Lucene the best ten may take at the median, whatever the number of words.
const mostOfLucene = 3

// measureWords measures how long it takes to find the best files, by the number of words in a query, in one thread, and
// compares with Lucene if that is installed. It writes the table and the plot.
func measureWords(ctx context.Context, cfg wordsConfig) (err error) {
	scratch, err := corpus.Scratch()
	if err != nil {
		return err
	}
	c, err := corpus.Find(ctx, cfg.Corpus, scratch, 128)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-words")
	if err != nil {
		return fmt.Errorf("making a folder for indexes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	indexed, err := engine.Index(ctx, c.Repos, dir, false)
	if err != nil {
		return err
	}
	e, err := engine.OpenEngine(indexed.Shards)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	files, err := corpus.ReadFiles(ctx, c, cfg.Seed)
	if err != nil {
		return err
	}
	queries := sampleWords(files, cfg.Seed, cfg.Queries)
	started := time.Now()
	ours, err := askWords(ctx, e, queries, cfg.Repeat)
	if err != nil {
		return err
	}
	documents, err := searchable(ctx, e, c)
	if err != nil {
		return err
	}
	lucene, err := askLucene(ctx, dir, documents, queries, cfg.Repeat)
	if err != nil {
		return err
	}
	var text, picture bytes.Buffer
	fmt.Fprintf(&text, "Latency by words, corpus %s, %s\n", c.Name, started.UTC().Format(time.RFC3339))
	report.Host(ctx, &text, cfg.Args)
	fmt.Fprintf(&text, "  documents %d searchable, %s MB\n\n%s\n", len(documents), report.Megabytes(indexed.ContentBytes), wordsNotes)
	figures := besideLucene(c.Name, cfg.Queries, ours, lucene)
	figures.Write(&text)
	fmt.Fprintln(&text)
	if err := writeWords(&text, &picture, c.Name, cfg.Queries, ours, lucene); err != nil {
		return err
	}
	stem, err := report.Save(cfg.Results, "words-"+c.Name, started, map[string][]byte{".txt": text.Bytes(), ".svg": picture.Bytes()})
	if err != nil {
		return err
	}
	if err := report.SaveRecord(ctx, stem, "ranked words", started, figures); err != nil {
		return err
	}
	_, err = cfg.Out.Write(text.Bytes())
	return err //nolint:wrapcheck // of the caller's writer
}

const wordsNotes = `Each query is words that one file has. Files match that have all of them, or any (match:any). One thread; of each query the fastest time counts, over all of them p50 and p95 in
milliseconds of wall time, and how many queries one thread answers in a second (other work on the machine counts). Both search the same documents in memory, and show none.
What does not compare: Lucene matches whole words, and ranks by BM25 alone. Trawl matches parts of words too, in contents and
paths, and ranks definitions, lines with all words and names made of them ahead; it searches as many shards as the corpus has, Lucene one segment.
`

var queryWord = regexp.MustCompile(`[A-Za-z_]\w{2,30}`)

// sampleWords draws queries of one word, of two words and so on, equally many of each.
func sampleWords(files []corpus.File, seed uint64, n int) (queries []string) {
	rng := rand.New(rand.NewPCG(seed, 17))
	for words := 1; words <= mostWords; words++ {
		for drawn := 0; drawn < n; {
			found := map[string]bool{}
			for _, w := range queryWord.FindAllString(string(files[rng.IntN(len(files))].Content), -1) {
				found[strings.ToLower(w)] = true
			}
			delete(found, "or")
			if len(found) < words {
				continue
			}
			some := slices.Sorted(maps.Keys(found))
			rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			queries = append(queries, strings.Join(some[:words], " "))
			drawn++
		}
	}
	return queries
}

// askWords asks each query in each way.
func askWords(ctx context.Context, e *engine.Engine, queries []string, repeat int) (wordTimes, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	times := wordTimes{}
	for _, way := range ways() {
		for _, q := range queries {
			text := q
			if way.any {
				text += " match:any"
			}
			least := time.Hour
			for range repeat {
				took, err := e.Rank(ctx, text, way.best)
				if err != nil {
					return nil, fmt.Errorf("query %s: %w", text, err)
				}
				least = min(least, took)
			}
			times[way] = append(times[way], least)
		}
	}
	return times, nil
}

// besideLucene returns how many times as long as Lucene the best ten take at the median, of the number of words for which that is most.
func besideLucene(corpus string, queries int, ours, lucene wordTimes) (all report.Figures) {
	if lucene == nil {
		return nil
	}
	for _, way := range ways() {
		if way.best != bestCounts[0] {
			continue
		}
		most := 0.0
		for some := 0; some < len(ours[way]); some += queries {
			most = max(most, float64(report.Percentile(ours[way][some:some+queries], 50))/float64(report.Percentile(lucene[way][some:some+queries], 50)))
		}
		all.Add(corpus, []report.Figure{report.AtMost(way.String()+", p50 by Lucene's, the worst number of words", most, mostOfLucene, "x")})
	}
	return all
}

// searchable returns the paths of the documents with searchable content.
func searchable(ctx context.Context, e *engine.Engine, c corpus.Corpus) (paths []string, err error) {
	all, err := e.Paths(ctx)
	if err != nil {
		return nil, err
	}
	skipped, err := e.Skipped(ctx)
	if err != nil {
		return nil, err
	}
	for name := range all {
		if _, skip := skipped[name]; skip {
			continue
		}
		for _, r := range c.Repos {
			path, ok := strings.CutPrefix(name, r.Name+"/")
			if !ok || strings.Contains(path, "\n") {
				continue
			}
			// The content of a symbolic link is its target, for Trawl alone.
			path = filepath.Join(r.Dir, path)
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// writeWords writes the table and the plot.
func writeWords(text, picture io.Writer, name string, queries int, ours, lucene wordTimes) error {
	page := report.Page{Title: "Latency by words: " + name, Series: []string{"trawl"}}
	if lucene != nil {
		page.Series = append(page.Series, "Lucene 8")
	}
	for _, way := range ways() {
		table := report.Table{}
		table.Row(way.String(), "trawl p50", "p95", "queries/s", "Lucene p50", "p95", "queries/s")
		panel := &report.Latency{Caption: "Milliseconds to find the best: " + way.String()}
		for words := range mostWords {
			cells, row := []string{strconv.Itoa(words+1) + " words"}, report.Row{Label: strconv.Itoa(words+1) + " words"}
			for i, times := range [][]time.Duration{ours[way], lucene[way]} {
				if times == nil {
					cells = append(cells, "", "", "")
					continue
				}
				some, sum := times[words*queries:(words+1)*queries], time.Duration(0)
				for _, t := range some {
					sum += t
				}
				p50, p95 := report.Percentile(some, 50), report.Percentile(some, 95)
				cells = append(cells, report.Milliseconds(p50), report.Milliseconds(p95), fmt.Sprintf("%.0f", float64(len(some))/sum.Seconds()))
				row.Spans = append(row.Spans, report.Span{Series: i, P50: p50.Seconds() * 1000, P99: p95.Seconds() * 1000})
			}
			table.Row(cells...)
			panel.Rows = append(panel.Rows, row)
		}
		table.Write(text)
		fmt.Fprintln(text)
		page.Panels = append(page.Panels, panel)
	}
	return page.Write(picture)
}
