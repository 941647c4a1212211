package served

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// sets compares what both servers find for the queries of one bucket.
type sets struct {
	bucket corpus.Bucket
	// same counts queries with the same files; counted those with too many files to list, but equal
	// numbers of files and matches.
	same, counted, different, unanswered int
	onlyTrawl, onlyZoekt                 int
	// reasons counts why files are in only one set, by their content.
	reasons map[string]int
	// matches counts the queries with the same files but different matches.
	matches  int
	examples []string
}

// maxListed is the most files in one JSON answer from Trawl.
const maxListed = 10_000

// maxExamples bounds the examples of one bucket.
const maxExamples = 3

// warm sends every query to every server once, and compares the results.
func (h *host) warm(ctx context.Context) error {
	list := h.contestants(exhaustive)
	bar := report.NewProgress(h.cfg.Log, h.corpus.Name+": result sets", len(h.queries))
	for _, b := range corpus.BucketsOf(h.queries) {
		s := sets{bucket: b, reasons: map[string]int{}}
		for _, q := range h.queries {
			if q.Bucket != b {
				continue
			}
			runs := make([]run, len(list))
			for i, c := range list {
				if !c.takesPart(b) {
					continue
				}
				var err error
				if runs[i], err = h.once(ctx, &c, q.Text()); err != nil {
					return err
				}
			}
			if err := h.compare(ctx, &s, q, runs[0], runs[1]); err != nil {
				return fmt.Errorf("comparing %s: %w", q.Text(), err)
			}
			bar.Step(string(b))
		}
		h.sets = append(h.sets, s)
	}
	return nil
}

// compare lists the files if that is worth it: always if both servers can list them in one answer,
// and otherwise if the numbers differ.
func (h *host) compare(ctx context.Context, s *sets, q corpus.Query, own, other run) error {
	if own.late || other.late || own.failed+other.failed != "" {
		s.unanswered++
		return nil
	}
	a, b := own.counts, other.counts
	if a.FileCount > maxListed && a.FileCount == b.FileCount && a.MatchCount == b.MatchCount {
		s.counted++
		return nil
	}
	here, err := h.files(ctx, q)
	if err != nil {
		return err
	}
	reply, err := h.servers[zoekt].Search(ctx, "type:file "+q.Text(), peer.Every(0))
	if err != nil {
		return err
	}
	there, err := reply.Files()
	if err != nil {
		return err
	}
	s.add(h, q, here, there)
	if maps.Equal(here, there) && a.MatchCount != b.MatchCount {
		s.matches++
		s.examplef("%s: %d matches in Trawl, %d in zoekt, in the same %d files", q.Text(), a.MatchCount, b.MatchCount, a.FileCount)
	}
	return nil
}

// files returns all files that Trawl finds, page by page, because the JSON interface has no pages.
func (h *host) files(ctx context.Context, q corpus.Query) (map[string]bool, error) {
	files := map[string]bool{}
	client := searchv1.NewSearchServiceClient(h.conn)
	req := &searchv1.SearchRequest{Query: q.Text(), Options: &searchv1.SearchOptions{MaxFiles: maxListed, MaxMatchesPerFile: 1, RequireComplete: true}}
	for {
		page, err := client.Search(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("listing files: %w", err)
		}
		for _, f := range page.GetFiles() {
			files[f.GetRepo()+"/"+string(f.GetPath())] = true
		}
		if req.PageToken = page.GetNextPageToken(); len(req.PageToken) == 0 {
			return files, nil
		}
	}
}

// add compares two sets of files.
func (s *sets) add(h *host, q corpus.Query, here, there map[string]bool) {
	if maps.Equal(here, there) {
		s.same++
		return
	}
	s.different++
	for f := range here {
		if !there[f] {
			s.onlyTrawl++
			s.reason(h, q, f, trawl)
		}
	}
	for f := range there {
		if !here[f] {
			s.onlyZoekt++
			s.reason(h, q, f, zoekt)
		}
	}
}

// reason counts why only one of them finds a file.
func (s *sets) reason(h *host, q corpus.Query, file, by string) {
	why := h.oddity(file)
	if why == "" {
		why = "unexplained"
		s.examplef("%s: only %s finds %s", q.Text(), by, file)
	}
	s.reasons[why]++
}

func (s *sets) examplef(format string, args ...any) {
	if len(s.examples) < maxExamples {
		s.examples = append(s.examples, fmt.Sprintf(format, args...))
	}
}

// why returns the reasons for the files that only one server finds.
func (s *sets) why() string {
	parts := make([]string, 0, len(s.reasons))
	for _, reason := range slices.Sorted(maps.Keys(s.reasons)) {
		parts = append(parts, fmt.Sprintf("%d %s", s.reasons[reason], reason))
	}
	return strings.Join(parts, ", ")
}

// oddity returns the property of a file for which a server does not treat it as text.
func (h *host) oddity(file string) string {
	for _, r := range h.corpus.Repos {
		path, ok := strings.CutPrefix(file, r.Name+"/")
		if !ok {
			continue
		}
		if text, err := os.ReadFile(filepath.Join(r.Dir, path)); err == nil {
			return oddity(text)
		}
	}
	return "not found on the disk"
}

// Limits that both have; zoekt's are raised.
const (
	largestFile  = 32 << 20
	smallestFile = 3
)

func oddity(text []byte) string {
	switch {
	case len(text) > largestFile:
		return "over 32 MiB"
	case len(text) < smallestFile:
		return "under 3 bytes"
	case bytes.IndexByte(text, 0) >= 0:
		return "binary"
	case !utf8.Valid(text):
		return "not UTF-8"
	}
	return ""
}
