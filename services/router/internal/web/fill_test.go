package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestColoursTakeNoRoom: a page shows the same lines whether their colours came in time or not, also where there is no room for all.
func TestColoursTakeNoRoom(t *testing.T) {
	p := New(Config{})
	t.Cleanup(p.colour.close)
	line := "\tfor i := range values { if values[i] == nil { return fmt.Errorf(\"%d: %w\", i, err) } }\n"
	resp := &searchv1.SearchResponse{}
	for i := range pageFiles {
		f := &searchv1.FileMatch{Repo: "r", Path: fmt.Append(nil, i, ".go"), Branches: []string{"main"}, Language: "Go", MatchCount: 6}
		for j := range uint32(6) {
			f.Chunks = append(f.Chunks, &searchv1.ChunkMatch{
				Content: []byte(strings.Repeat(line, 3)), ContentStart: &searchv1.Location{LineNumber: 10*j + 1},
				Ranges: []*searchv1.Range{{Start: &searchv1.Location{ByteOffset: 1}, End: &searchv1.Location{ByteOffset: 4}}},
			})
		}
		resp.Files = append(resp.Files, f)
	}
	shown := func() (lines, code int) {
		page := results{frame: frame{Query: "for"}}
		page.fill(t.Context(), p, resp, false)
		for i := range page.Files {
			lines += page.Files[i].lines()
			for _, c := range page.Files[i].Chunks {
				for _, l := range c {
					code += len(l.Code)
				}
			}
		}
		return lines, code
	}
	for range maxColouring { // as while other pages are coloured
		p.colour.slots <- struct{}{}
	}
	plain, without := shown()
	for range maxColouring {
		<-p.colour.slots
	}
	testrun.Until(t, "colours that come in time", func() bool {
		coloured, withColours := shown()
		if coloured != plain || plain == 0 || plain >= pageFiles*fileLines {
			t.Errorf("%d lines with colours, %d without", coloured, plain)
		}
		return withColours > without
	})
}
