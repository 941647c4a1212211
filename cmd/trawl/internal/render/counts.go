package render

import (
	"fmt"
	"io"
	"time"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Counts prints an answer without files for other programs: its facets, as Lines prints them, or
// how much matches. It is for one goroutine.
type Counts struct {
	*Lines

	facets bool
}

// NewCounts returns a printer to w that warns on notes. With facets it prints these alone.
func NewCounts(w, notes io.Writer, color, facets bool) Counts {
	return Counts{NewLines(w, notes, LineStyle{Color: color}), facets}
}

// Summary prints how much matches where there are no facets, and warns of what is missing.
func (c Counts) Summary(s *searchv1.Statistics, cover *searchv1.Coverage, took time.Duration, more string) error {
	if !c.facets {
		if _, err := fmt.Fprintf(c.w, "%s%s in %s\n", atLeast(s), Count(s.GetMatches(), "match", "matches"), Count(s.GetFilesMatched(), "file", "files")); err != nil {
			return err
		}
	}
	return c.Lines.Summary(s, cover, took, more)
}
