package zoekt

import (
	"fmt"
	"strings"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// scored is a file with a line for each score, and a match at the start of each.
func scored(scores ...float32) *searchv1.FileMatch {
	f := file("r", "a.go", strings.Repeat("line\n", len(scores)))
	for i, s := range scores {
		f.Chunks[0].Ranges[i].LineScore = new(s)
	}
	return f
}

// TestBestFirst: chunks and lines have the scores of their best lines, and come best first, in the order of the file where scores are the same. A
// limit of matches keeps the best.
func TestBestFirst(t *testing.T) {
	for _, c := range []struct {
		scores         []float32
		context, limit int
		chunks, lines  string
	}{
		{[]float32{1, 2}, 0, 0, "2-2 best 2:2, 1-1 best 1:1", "2:2 1:1"},
		{[]float32{1, 0, 3, 0, 3, 0, 2}, 0, 0, "3-3 best 3:3, 5-5 best 5:3, 7-7 best 7:2, 1-1 best 1:1", "3:3 5:3 7:2 1:1"},
		{[]float32{1, 0, 3, 0, 3, 0, 2}, 0, 2, "3-3 best 3:3, 5-5 best 5:3", "3:3 5:3"},
		{[]float32{1, 0, 0, 0, 0, 0, 2, 3, 1, 0}, 1, 0, "6-10 best 8:3, 1-2 best 1:1", "8:3 7:2 1:1 9:1"},
		{[]float32{1, 0, 0, 0, 0, 0, 2, 3, 1, 0}, 1, 2, "6-9 best 8:3", "8:3 7:2"},
		{[]float32{1, 0, 0, 0, 0, 0, 0, 2, 3, 1}, 1, 1, "7-9 best 8:3", "9:3"},
		{[]float32{.123456, 0, 0, 0, 0, .9999}, 1, 0, "5-6 best 6:1, 1-2 best 1:0.12", "6:1 1:0.12"},
	} {
		f := scored(c.scores...)
		var ranges []*searchv1.Range
		for i, r := range f.Chunks[0].Ranges {
			if c.scores[i] != 0 {
				ranges = append(ranges, r)
			}
		}
		f.Chunks[0].Ranges = ranges
		o := searchOptions{NumContextLines: c.context}
		var chunks, lines []string
		shown, _ := o.chunks(f, c.limit)
		for _, m := range shown {
			from := int(m.ContentStart.LineNumber)
			chunks = append(chunks, fmt.Sprintf("%d-%d best %d:%v", from, from+strings.Count(string(m.Content), "\n")-1, m.BestLineMatch, m.Score))
		}
		if got := strings.Join(chunks, ", "); got != c.chunks {
			t.Errorf("%v, context %d, limit %d: chunks %s, want %s", c.scores, c.context, c.limit, got, c.chunks)
		}
		all, _ := o.lines(f, c.limit)
		for _, m := range all {
			lines = append(lines, fmt.Sprintf("%d:%v", m.LineNumber, m.Score))
		}
		if got := strings.Join(lines, " "); got != c.lines {
			t.Errorf("%v, context %d, limit %d: lines %s, want %s", c.scores, c.context, c.limit, got, c.lines)
		}
	}
}

// TestScoresAreAskedFor: searchers are asked for the scores of lines.
func TestScoresAreAskedFor(t *testing.T) {
	for _, body := range []string{`{"Q":"x"}`, `{"Q":"x","Opts":{"ChunkMatches":true,"MaxDocDisplayCount":5}}`} {
		f := found(scored(1))
		f.result(t, body)
		if asked := f.searched[0].Options; !asked.LineScores {
			t.Errorf("%s: asked %v", body, asked)
		}
	}
}
