package mcptools

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

type readArgs struct {
	Files []fileRange `json:"files" jsonschema:"1 to 32 ranges of files; a file may be named several times"`
	Limit
}

type fileRange struct {
	Repo   string `json:"repo" jsonschema:"name of the repo"`
	Path   string `json:"path" jsonschema:"path in the repo"`
	Branch string `json:"branch,omitempty" jsonschema:"default the repo's first branch that has the file"`
	Start  int    `json:"start,omitempty" jsonschema:"first line, from 1; default 1"`
	End    int    `json:"end,omitempty" jsonschema:"last line; default as far as the budget goes"`
}

const (
	maxRanges = 32
	// readPage is how much of a file one call of the router returns.
	readPage = 1 << 20
)

// passage is a range of a file in an answer.
type passage struct {
	Repo   string `json:"repo"`
	Commit string `json:"commit,omitempty"`
	Path   string `json:"path"`
	Branch string `json:"branch,omitempty"`
	Start  int    `json:"start,omitempty"`
	End    int    `json:"end,omitempty"`
	// Total is the number of lines of the file, if its end was reached.
	Total int    `json:"total_lines,omitempty"`
	Text  string `json:"text,omitempty"`
	// Next is the line to continue from, if the requested range is longer.
	Next  int    `json:"next_start,omitempty"`
	Error string `json:"error,omitempty"`
}

// passages is the answer of read_file.
type passages struct {
	Files []passage `json:"files"`
	Notes []string  `json:"notes,omitempty"`
}

func (p *passages) answer() *answer {
	var b strings.Builder
	for _, f := range p.Files {
		f.write(&b)
	}
	return &answer{text: b.String() + noteText(p.Notes), data: p}
}

func (p *passage) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s", p.Repo)
	if p.Commit != "" {
		fmt.Fprintf(b, "@%s", short(p.Commit))
	}
	if p.Branch != "" {
		fmt.Fprintf(b, " (%s)", p.Branch)
	}
	fmt.Fprintf(b, " %s", p.Path)
	if p.Error != "" {
		fmt.Fprintf(b, ": %s\n", p.Error)
		return
	}
	if p.Start > 0 {
		fmt.Fprintf(b, " lines %d-%d", p.Start, p.End)
	}
	if p.Total > 0 {
		fmt.Fprintf(b, " of %d", p.Total)
	}
	if p.Next > 0 {
		fmt.Fprintf(b, "; go on with start=%d", p.Next)
	}
	b.WriteByte('\n')
	for i, l := range p.lines() {
		fmt.Fprintf(b, "%d: %s\n", p.Start+i, l)
	}
}

func (p *passage) lines() []string {
	if p.Start == 0 {
		return nil
	}
	return strings.Split(p.Text, "\n")
}

// reading is a range that is being read.
type reading struct {
	asked fileRange
	passage
	lines []string // as shown
	end   bool     // the end of the file was reached
	err   error
}

func (c *call) read(ctx context.Context, in readArgs) (*answer, error) {
	if len(in.Files) == 0 || len(in.Files) > maxRanges {
		return nil, plainError(fmt.Sprintf("files: %d given, want 1 to %d", len(in.Files), maxRanges))
	}
	all := make([]*reading, len(in.Files))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, r := range in.Files {
		all[i] = c.reading(r)
		group.Go(func() error {
			err := c.readRange(ctx, all[i])
			if whole := c.wholeName(ctx, meant(r.Repo), err); whole != "" {
				r.Repo = whole
				all[i] = c.reading(r)
				err = c.readRange(ctx, all[i])
			}
			all[i].err = c.orDirectory(ctx, all[i], err)
			return nil
		})
	}
	_ = group.Wait() // errors are those of single ranges
	for _, r := range all {
		if r.err != nil {
			r.Error = cut(missing(r.err).Error(), 400)
		}
	}
	if !slices.ContainsFunc(all, func(r *reading) bool { return r.err == nil }) {
		return nil, plainError(all[0].Error)
	}
	p := &passages{Notes: c.budget.notes}
	c.fitReadings(p, all)
	return p.answer(), nil
}

func (c *call) reading(r fileRange) *reading {
	r.Start = max(r.Start, 1)
	names := c.budget.names() / 2
	of := &reading{asked: r, passage: passage{Repo: shown(meant(r.Repo), names), Path: shown(string(searchapi.TreePath([]byte(meant(r.Path)))), names)}}
	if r.Branch != "" {
		of.Branch = shown(r.Branch, names)
	}
	return of
}

// readRange reads the lines of a range, as many as the whole budget could show.
func (c *call) readRange(ctx context.Context, r *reading) error {
	if r.asked.End != 0 && r.asked.End < r.asked.Start {
		return plainError(fmt.Sprintf("end %d is before start %d", r.asked.End, r.asked.Start))
	}
	req := &searchv1.GetFileRequest{Repo: meant(r.asked.Repo), Path: []byte(meant(r.asked.Path)), Branch: r.asked.Branch, MaxBytes: readPage}
	var blob, rest []byte
	number, room := 1, c.budget.bytes()
	dropped := 0 // bytes at the end of rest, which is one line
	for {
		resp, err := c.api.GetFile(ctx, req)
		if err != nil {
			return err
		}
		if resp.GetSkipReason() != searchv1.SkipReason_SKIP_REASON_UNSPECIFIED {
			return plainError(fmt.Sprintf("its content is not indexed: %s, %s", searchapi.SkipReason(resp.GetSkipReason()), searchapi.Bytes(resp.GetSizeBytes())))
		}
		if r.Commit = resp.GetCommit(); blob != nil && !bytes.Equal(blob, resp.GetBlob()) {
			return plainError("the file changed while it was read: try again")
		}
		blob = resp.GetBlob()
		rest = append(rest, resp.GetContent()...)
		req.Offset += uint64(len(resp.GetContent()))
		last := req.Offset >= resp.GetSizeBytes() || len(resp.GetContent()) == 0
		for len(rest) > 0 {
			text, after, whole := bytes.Cut(rest, []byte("\n"))
			if !whole && !last {
				break
			}
			if number >= r.asked.Start && (r.asked.End == 0 || number <= r.asked.End) && room > 0 {
				shownLine := part{text: string(bytes.TrimSuffix(text, []byte("\r"))), after: dropped}.around(0, min(maxLine, c.budget.bytes()/4)).String()
				r.lines = append(r.lines, shownLine)
				room -= len(shownLine) + 1
			}
			rest, number, dropped = after, number+1, 0
			if over := r.asked.End > 0 && number > r.asked.End; (over || room <= 0) && !(last && len(rest) == 0) {
				return nil // the caller did not ask for more
			}
		}
		if last {
			if r.end, r.Total = true, number-1; r.Total > 0 && r.asked.Start > r.Total {
				return plainError(fmt.Sprintf("it has %s: start %d is past its end", plural(r.Total, "line", "lines"), r.asked.Start))
			}
			return nil
		}
		if len(rest) > readPage {
			dropped += len(rest) - readPage
			rest = slices.Clone(rest[:readPage]) // a line that is longer than anything shown
		}
	}
}

// orDirectory is the error of a read, which says so if a directory was named.
func (c *call) orDirectory(ctx context.Context, r *reading, err error) error {
	dir := path.Clean("/" + meant(r.asked.Path))[1:]
	if err == nil || dir != "" && searchapi.NotFoundOf(err).GetField() != "path" {
		return err
	}
	list, listErr := c.api.ListTree(ctx, &searchv1.ListTreeRequest{Repo: meant(r.asked.Repo), Path: []byte(dir), Branch: r.asked.Branch, Depth: 1, MaxEntries: 10})
	if listErr != nil || len(list.GetEntries()) == 0 {
		return err
	}
	var names []string
	for _, e := range list.GetEntries() {
		names = append(names, shown(string(e.GetPath()), 100))
	}
	if len(list.GetNextPageToken()) > 0 {
		names = append(names, "…")
	}
	return plainError("it is a directory, with " + strings.Join(names, ", ") + "; list_tree lists more of it")
}

// fitReadings divides the budget among the ranges, short ones first.
func (c *call) fitReadings(p *passages, all []*reading) {
	ascending := slices.Clone(all)
	slices.SortStableFunc(ascending, func(a, b *reading) int { return cmp.Compare(a.bytes(), b.bytes()) })
	room := c.budget.bytes() - size(noteText(p.Notes), p) - 20
	for i, r := range ascending {
		share := room / (len(ascending) - i)
		r.fit(most(len(r.lines), func(n int) bool { r.fit(n); return r.size() <= share }))
		room -= r.size()
	}
	for _, r := range all {
		p.Files = append(p.Files, r.passage)
	}
}

func (r *reading) bytes() (n int) {
	for _, l := range r.lines {
		n += len(l) + 1
	}
	return n
}

// size is how much the passage adds to an answer.
func (r *reading) size() int {
	var b strings.Builder
	r.write(&b)
	return size(b.String(), r.passage) + 1
}

// fit shows the first n lines.
func (r *reading) fit(n int) {
	if r.Error != "" {
		return
	}
	p := &r.passage
	p.Start, p.End, p.Next, p.Text = 0, 0, 0, strings.Join(r.lines[:n], "\n")
	if n > 0 {
		p.Start, p.End = r.asked.Start, r.asked.Start+n-1
	}
	asked := r.asked.End == 0 || r.asked.Start+n-1 < r.asked.End
	if more := n < len(r.lines) || !r.end; more && asked {
		p.Next = r.asked.Start + n
	}
}
