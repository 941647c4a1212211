package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Paths prints REPO:PATH for each file, for other programs. It is for one goroutine.
type Paths struct {
	// Link of paths, set before the first file.
	Link Link
	// Raw prints names in their own bytes instead of the form of Name, and without colours and links. It is not for terminals.
	Raw bool

	w, notes io.Writer
	color    bool
	count    bool
	end      string
}

// NewPaths returns a printer to w that warns on notes. With count it adds the number of matches of each
// file, and with null a NUL byte ends each path, before the number, as in ripgrep.
func NewPaths(w, notes io.Writer, color, count, null bool) *Paths {
	p := &Paths{w: w, notes: notes, color: color, count: count, end: "\n"}
	if null {
		p.end = "\x00"
	}
	return p
}

// File prints one file. The error is the writer's.
func (p *Paths) File(f *searchv1.FileMatch) error {
	var b strings.Builder
	if p.Raw {
		b.WriteString(f.GetRepo() + ":" + string(f.GetPath()))
	} else {
		place(&b, p.color, p.Link, f)
	}
	switch {
	case p.count && p.end == "\n":
		fmt.Fprintf(&b, ":%d\n", f.GetMatchCount())
	case p.count:
		fmt.Fprintf(&b, "%s%d\n", p.end, f.GetMatchCount())
	default:
		b.WriteString(p.end)
	}
	_, err := io.WriteString(p.w, b.String())
	return err
}

// Explanation prints how the query was answered to the notes.
func (p *Paths) Explanation(e *searchv1.Explanation, searched uint64) error {
	return NewText(p.notes, false, false).Explanation(e, searched)
}

// Summary warns of what is missing, on the notes.
func (p *Paths) Summary(s *searchv1.Statistics, c *searchv1.Coverage, _ time.Duration, more bool) error {
	return warn(p.notes, s, c, more)
}
