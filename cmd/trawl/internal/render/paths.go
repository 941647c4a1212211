package render

import (
	"fmt"
	"io"
	"strings"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Paths prints REPO:PATH for each file, for other programs. It is for one goroutine.
type Paths struct {
	// Link of paths, set before the first file.
	Link Link
	// Raw prints names in their own bytes instead of the form of Name, and without colours and links. It is not for terminals.
	Raw bool
	// Branches adds the branch to the name of a file that was printed before with other content.
	Branches bool

	notes
	w     io.Writer
	color bool
	count bool
	end   string
	known contents
}

// NewPaths returns a printer to w that warns on warnings. With count it adds the number of matches of each
// file, and with null a NUL byte ends each path, before the number, as in ripgrep.
func NewPaths(w, warnings io.Writer, color, count, null bool) *Paths {
	p := &Paths{notes: notes{warnings}, w: w, color: color, count: count, end: "\n"}
	if null {
		p.end = "\x00"
	}
	return p
}

// File prints one file. The error is the writer's.
func (p *Paths) File(f *searchv1.FileMatch) error {
	var b strings.Builder
	branch := ""
	if p.Branches {
		branch = p.known.otherBranch(f)
	}
	if p.Raw {
		b.WriteString(f.GetRepo() + ":" + string(f.GetPath()))
	} else {
		place(&b, p.color, p.Link, f, branch)
	}
	switch {
	case p.count && p.end == "\n":
		fmt.Fprintf(&b, ":%d\n", f.GetMatchCount())
	case p.count:
		fmt.Fprintf(&b, "%s%d\n", p.end, f.GetMatchCount())
	default:
		b.WriteString(p.end)
	}
	if _, err := io.WriteString(p.w, b.String()); err != nil {
		return err
	}
	return p.score(f)
}
