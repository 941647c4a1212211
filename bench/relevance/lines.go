package relevance

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// knownLine is a query, and the line of a file that is to be shown first.
type knownLine struct {
	kind       kind
	repo, path string
	line       int // from 1
	query      string
}

//go:embed lines.txt
var drawnLines string

// readLines reads the known lines as DrawLines wrote them.
func readLines(text string) (known []knownLine, err error) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 5 {
			return nil, fmt.Errorf("reading known lines: want five cells with tabs in between, got %q", line)
		}
		number, err := strconv.Atoi(cells[3])
		if err != nil {
			return nil, fmt.Errorf("reading known lines: %q: %w", line, err)
		}
		known = append(known, knownLine{kind(cells[0]), cells[1], cells[2], number, cells[4]})
	}
	return known, nil
}

// tuning says whether a line belongs to the half that may be tuned on: that of every second repo.
func (k *knownLine) tuning() bool {
	return slices.IndexFunc(linePins, func(p pinned) bool { return p.name == k.repo })%2 == 0
}

// text is the query, restricted to the file. With any, one of its words is enough.
func (k *knownLine) text(words string) string {
	return fmt.Sprintf("repo:^%s$ file:^%s$ %s", regexp.QuoteMeta(k.repo), regexp.QuoteMeta(k.path), words)
}

// shownFirst is how many lines are looked at: those that an engine shows first of a file.
const shownFirst = 3

// lineEngine is a server, and the lines that it shows first for each query, the best one first.
type lineEngine struct {
	name  string
	shown [][]int
}

// Lines measures how often the best line of a file is among the first that are shown of it, and writes a dated result.
func Lines(ctx context.Context, cfg Config) (err error) {
	started := time.Now()
	known, err := readLines(drawnLines)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "lines-")
	if err != nil {
		return fmt.Errorf("making a folder for the files: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := exportLines(ctx, cfg.Repos, filepath.Join(dir, "src"), known)
	if err != nil {
		return err
	}
	engines, webserver, err := askLines(ctx, &cfg, c, dir, known)
	if err != nil {
		return err
	}
	for i, k := range known { // of the half that is only reported, nothing but figures is seen
		if got := engines[0].shown[i]; k.tuning() && !slices.Contains(got, k.line) {
			fmt.Fprintf(cfg.Log, "%s: %s, %s:%d is not among %d\n", k.query, k.kind, filepath.Join(k.repo, k.path), k.line, got)
		}
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "The known lines of %d files among the first that are shown, %s\n\n", len(known), started.UTC().Format("2006-01-02 15:04"))
	report.Host(ctx, &text, cfg.Args)
	if webserver != "" {
		fmt.Fprintf(&text, "  zoekt     %s, with ctags\n", peer.ZoektVersion(ctx, webserver))
	}
	writeLines(&text, known, engines)
	stem, err := report.Save(cfg.Results, "lines", started, map[string][]byte{".txt": text.Bytes()})
	if err == nil {
		fmt.Fprintf(cfg.Log, "%s\nwritten to %s.txt\n", text.Bytes(), stem)
	}
	return err
}

// exportLines writes the files with known lines into folders, one for each repo: which lines are shown of a file depends on no other.
func exportLines(ctx context.Context, repos, dir string, known []knownLine) (c corpus.Corpus, err error) {
	c.Name = "lines"
	for _, p := range linePins {
		r := corpus.Repo{Name: p.name, Dir: filepath.Join(dir, p.name)}
		for _, k := range known {
			if k.repo != p.name {
				continue
			}
			text, err := git(ctx, filepath.Join(repos, p.name), nil, nil, "show", p.commit+":"+k.path)
			if err != nil {
				return c, fmt.Errorf("%w: clone %s into %s", err, p.url, repos)
			}
			file := filepath.Join(r.Dir, filepath.FromSlash(k.path))
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, text, 0o666)); err != nil {
				return c, fmt.Errorf("writing a file of %s: %w", p.name, err)
			}
		}
		c.Repos = append(c.Repos, r)
	}
	return c, nil
}

// askLines asks Trawl, and zoekt in both of its orders if that is installed; webserver is its program.
func askLines(ctx context.Context, cfg *Config, c corpus.Corpus, dir string, known []knownLine) (engines []lineEngine, webserver string, err error) {
	t, err := peer.IndexTrawl(ctx, cfg.Trawl, dir, c, func(string) {})
	if err != nil {
		return nil, "", err
	}
	search := searchv1.NewSearchServiceClient(t.Conn)
	own := lineEngine{name: "trawl"}
	for i := range known {
		lines, err := linesOfTrawl(ctx, search, &known[i])
		if err != nil {
			return nil, "", errors.Join(err, t.Close())
		}
		own.shown = append(own.shown, lines)
	}
	engines = append(engines, own)
	if err := t.Close(); err != nil {
		return nil, "", err
	}
	indexer, webserver, ok := peer.ZoektPrograms(cfg.ZoektBin)
	if !ok {
		fmt.Fprintln(cfg.Log, "zoekt-index and zoekt-webserver are neither on the PATH nor in ZOEKT_BIN: Trawl is measured alone")
		return engines, "", nil
	}
	s, err := serveZoekt(ctx, indexer, webserver, c, dir)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, bm25 := range []bool{false, true} {
		e := lineEngine{name: "zoekt, default"}
		opts := peer.Every(1)
		if opts.UseBM25Scoring = bm25; bm25 {
			e.name = "zoekt, BM25"
		}
		for i := range known {
			lines, err := linesOfZoekt(ctx, s, &known[i], opts)
			if err != nil {
				return nil, "", err
			}
			e.shown = append(e.shown, lines)
		}
		engines = append(engines, e)
	}
	return engines, webserver, nil
}

// mostMarks is how many matches are asked for at most. Some lines have many.
const mostMarks = 64

// linesOfTrawl returns the lines that Trawl shows first: those of answers with room for one match, for two and so on. A query whose words
// are not all in the file is asked for any of them.
func linesOfTrawl(ctx context.Context, search searchv1.SearchServiceClient, k *knownLine) (lines []int, err error) {
	for _, words := range []string{k.query, k.query + " match:any"} {
		for marks := uint32(1); marks <= mostMarks && len(lines) < shownFirst; marks++ {
			resp, err := search.Search(ctx, &searchv1.SearchRequest{
				Query: k.text(words), Options: &searchv1.SearchOptions{MaxFiles: 1, MaxMatchesPerFile: marks, SyntaxVersion: 2},
			})
			if err != nil {
				return nil, fmt.Errorf("asking for %s in %s: %w", k.query, k.path, err)
			}
			if len(resp.GetFiles()) == 0 {
				break
			}
			lines = appendLines(lines, resp.GetFiles()[0])
		}
	}
	return lines[:min(len(lines), shownFirst)], nil
}

// appendLines adds the lines with matches in the content of a file, each once.
func appendLines(lines []int, f *searchv1.FileMatch) []int {
	for _, chunk := range f.GetChunks() {
		for _, r := range chunk.GetRanges() {
			if n := int(r.GetStart().GetLineNumber()); !chunk.GetFileName() && !slices.Contains(lines, n) {
				lines = append(lines, n)
			}
		}
	}
	return lines
}

// linesOfZoekt returns the lines that zoekt rates best. A query whose words are not all in the file is asked for any of them.
func linesOfZoekt(ctx context.Context, s *peer.Server, k *knownLine, opts peer.Options) (lines []int, err error) {
	for _, words := range []string{k.query, "(" + strings.Join(strings.Fields(k.query), " or ") + ")"} {
		reply, err := s.Search(ctx, k.text(words), opts)
		if err != nil {
			return nil, fmt.Errorf("asking for %s in %s: %w", k.query, k.path, err)
		}
		if lines, err = reply.BestLines(); err != nil || len(lines) > 0 {
			return lines[:min(len(lines), shownFirst)], err
		}
	}
	return nil, nil
}

// writeLines writes a table for each half.
func writeLines(w *bytes.Buffer, known []knownLine, engines []lineEngine) {
	for _, tuning := range []bool{false, true} {
		title := "The half that is only reported"
		if tuning {
			title = "The half that was tuned on"
		}
		fmt.Fprintf(w, "\n%s: known lines among the first %d, and first, in percent\n\n", title, shownFirst)
		var t report.Table
		header := []string{"", "queries"}
		for _, e := range engines {
			header = append(header, e.name, "first")
		}
		t.Row(header...)
		for _, k := range []kind{"", changedKind, definedKind} {
			cells := []string{cmp.Or(string(k), "all"), ""}
			for _, e := range engines {
				n, among, first := shareOf(known, e.shown, k, tuning)
				cells[1] = strconv.Itoa(n)
				cells = append(cells, fmt.Sprintf("%.0f", among), fmt.Sprintf("%.0f", first))
			}
			t.Row(cells...)
		}
		t.Write(w)
	}
}

// shareOf are the percentages of the known lines of a half and kind, all without one, that are among those shown, and the first of them.
func shareOf(known []knownLine, shown [][]int, of kind, tuning bool) (n int, among, first float64) {
	for i, k := range known {
		if k.tuning() != tuning || of != "" && k.kind != of {
			continue
		}
		n++
		if at := slices.Index(shown[i], k.line); at >= 0 {
			among++
			if at == 0 {
				first++
			}
		}
	}
	return n, 100 * among / float64(max(n, 1)), 100 * first / float64(max(n, 1))
}
