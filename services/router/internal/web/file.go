package web

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/symbols"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// fileBytes bounds the bytes of one page of a file, searchapi.PageLines its lines.
	fileBytes = 1 << 20
	// fileHTML bounds the lines of a page as HTML: strange characters take more room there.
	fileHTML = 4 << 20
	// longLine bounds what is shown of one line.
	longLine = 2000
	// readBytes is how much of a file one call brings.
	readBytes = 1 << 20
	// fileColourTime bounds how long a file waits for its colours.
	fileColourTime = 300 * time.Millisecond
	// maxOutline bounds the definitions that are listed.
	maxOutline = 500
)

// filePage is the page of a file.
type filePage struct {
	head

	Lines    []fileLine
	Outline  []definition
	Siblings listing
	Language string
	Facts    []string
	// Note says why there is no content.
	Note string
	// Previous and Next are the addresses of other parts of a long file.
	Previous, Next string
	Shown          string
	FolderURL      string
	// RawURL is the address of the file as it is.
	RawURL string
	// Found says what matches the query that led here.
	Found *foundHere
}

// foundHere is what a query matches in a file.
type foundHere struct {
	Query, URL string
	// Count is the number of matches in words; empty if Problem says why they are not marked.
	Count, Problem string
	// Earlier and Later are the addresses of the nearest matches before and after the part that is shown.
	Earlier, Later string
	marks          []span // in the file
	lines          []int  // of the marks
}

// fileLine is a line of a file.
type fileLine struct {
	Number int
	Code   template.HTML
}

// definition is a name that the file defines.
type definition struct {
	Name template.HTML
	Kind string
	Line int
	URL  string
}

// content is a part of a file.
type content struct {
	resp *searchv1.GetFileResponse
	// text is whole lines from line first on, cut off at fileBytes.
	text  []byte
	first int
	start int // of the text in the file
	// more: there are lines after the text.
	more bool
	// whole is the whole file, nil if it is large.
	whole []byte
}

func (p *Pages) file(ctx context.Context, r *http.Request, answers Answers, l located) reply {
	raw := strings.HasPrefix(r.URL.Path, rawPrefix)
	from := 1
	if n, err := strconv.Atoi(param(r, searchapi.PageFromParam)); err == nil && n > 0 {
		from = n
	}
	c, err := read(ctx, answers, l, from)
	if status.Code(err) == codes.NotFound {
		if l.rev == "" { // another branch may have it
			elsewhere, err := answers.GetFile(ctx, &searchv1.GetFileRequest{Repo: l.repo, Path: []byte(l.path), MaxBytes: readBytes})
			if on := elsewhere.GetBranches(); err == nil && len(on) > 0 {
				l.rev = on[0]
				if raw {
					return reply{redirect: l.raw()}
				}
				to := url.URL{RawQuery: r.URL.RawQuery}
				return reply{redirect: l.address() + to.String()}
			}
		}
		if below, _ := list(ctx, answers, l, l.path+"/"); len(below.Entries) > 0 {
			return reply{redirect: l.at(l.path + "/").address()}
		}
	}
	if err != nil {
		return p.failed(r, l.noFile(ctx, answers, err))
	}
	if commit := c.resp.GetCommit(); commit != "" {
		l.commit = commit
	}
	skip := skipped(c.resp.GetSkipReason())
	switch {
	case raw && skip != "":
		return p.failed(r, &problem{Status: http.StatusNotFound, Text: "The content is not kept: " + skip + "."})
	case raw:
		return reply{raw: func(w http.ResponseWriter) { p.raw(ctx, w, r, answers, l, c.resp) }}
	}
	page := filePage{head: p.head(r, l), Language: plain(cut(c.resp.GetLanguage(), 40)), FolderURL: l.at(folder(l.path)).address()}
	page.Facts = []string{searchapi.Bytes(c.resp.GetSizeBytes())}
	if page.Language != "" {
		page.Facts = append(page.Facts, page.Language)
	}
	// The file is there without the list of its folder.
	page.Siblings, _ = list(ctx, answers, l, folder(l.path))
	if skip != "" {
		page.Note = "The content is not shown: " + skip + "."
		return reply{status: http.StatusOK, template: "file", data: page}
	}
	if query := param(r, queryParam); query != "" {
		page.Found = l.found(ctx, answers, query, c.resp.GetBlob())
	}
	page.RawURL = l.raw()
	page.Lines = p.fileLines(ctx, &c, page.Found.in(&c))
	page.Outline = outline(c, l, len(page.Lines))
	page.paginate(c, l)
	return reply{status: http.StatusOK, template: "file", data: page}
}

// read reads the part of a file that begins with a line.
func read(ctx context.Context, answers Answers, l located, first int) (c content, err error) {
	c.first = first
	req := &searchv1.GetFileRequest{Repo: l.repo, Path: []byte(l.path), Branch: l.branch, MaxBytes: readBytes}
	line := 1
	for {
		resp, err := answers.GetFile(ctx, req)
		if err != nil {
			return c, err
		}
		part := resp.GetContent()
		if req.Offset == 0 {
			c.resp = resp
			if uint64(len(part)) == resp.GetSizeBytes() {
				c.whole = part
			}
		} else if !bytes.Equal(resp.GetBlob(), c.resp.GetBlob()) {
			return c, status.Error(codes.Unavailable, "the file changed while it was read")
		}
		req.Offset += uint64(len(part))
		last := len(part) == 0 || req.Offset >= resp.GetSizeBytes()
		for len(part) > 0 && line < first {
			end := lineEnd(part, 0)
			if part[end-1] == '\n' {
				line++
			}
			part, c.start = part[end:], c.start+end
		}
		c.text = append(c.text, part...)
		if full := c.trim(); full || last {
			c.more = full || c.more
			return c, nil
		}
	}
}

// trim cuts the text to what a page shows, and reports whether that is all it can show.
func (c *content) trim() (full bool) {
	end := 0
	for range searchapi.PageLines {
		if end < len(c.text) {
			end = lineEnd(c.text, end)
		}
	}
	end = min(end, fileBytes)
	full = end < len(c.text)
	c.text = c.text[:min(end, len(c.text))]
	return full
}

// fileLines are the lines of the part that is shown.
func (p *Pages) fileLines(ctx context.Context, c *content, marks []span) (lines []fileLine) {
	colours, size := p.colour.spans(ctx, c.resp.GetLanguage(), c.text, fileColourTime), 0
	for start, number := 0, c.first; start < len(c.text); number++ {
		if size > fileHTML {
			c.more = true
			return lines
		}
		end := lineEnd(c.text, start)
		colours, marks = after(colours, start), after(marks, start)
		lines = append(lines, fileLine{number, shownLine(trimEnd(c.text[start:end]), until(colours, start, end), until(marks, start, end), longLine)})
		size += len(lines[len(lines)-1].Code)
		start = end
	}
	return lines
}

// Bounds of the matches that are marked in a file.
const (
	fileMarks     = 10_000
	fileMarksTime = time.Second
)

// found is what a query matches in the file, which has a blob.
func (l located) found(ctx context.Context, answers Answers, query string, blob []byte) *foundHere {
	ctx, cancel := context.WithTimeout(ctx, fileMarksTime)
	defer cancel()
	f := &foundHere{Query: query, URL: searchURL(query)}
	if _, err := searchapi.Parse(query, syntaxVersion); err != nil { // by itself: its parentheses must not end those around it
		f.Problem = problemOf(query, err).Text
		return f
	}
	resp, err := answers.Search(ctx, &searchv1.SearchRequest{Query: inFile(withoutSelect(query), l.here(), l.path), Options: &searchv1.SearchOptions{
		MaxFiles: 10, MaxMatchesPerFile: fileMarks, MaxBytes: answerBytes, SyntaxVersion: syntaxVersion,
	}})
	if err != nil {
		f.Problem = problemOf(query, err).Text
		return f
	}
	atLeast := !resp.GetCoverage().GetComplete()
	for _, file := range resp.GetFiles() {
		if string(file.GetPath()) != l.path || !bytes.Equal(file.GetBlob(), blob) {
			continue
		}
		for _, c := range file.GetChunks() {
			for _, r := range c.GetRanges() {
				if !c.GetFileName() {
					f.marks = append(f.marks, span{start: int(r.GetStart().GetByteOffset()), end: int(r.GetEnd().GetByteOffset())})
					f.lines = append(f.lines, int(r.GetStart().GetLineNumber()))
				}
			}
		}
		atLeast = atLeast || len(f.marks) == fileMarks
	}
	if f.Count = plural(len(f.marks), "match", "matches"); atLeast {
		f.Count = "At least " + f.Count
	}
	return f
}

// in are the marks of the matches in the text of a part.
func (f *foundHere) in(c *content) []span {
	if f == nil {
		return nil
	}
	return within(f.marks, c.start, c.start+len(c.text))
}

// around notes the matches that are nearest to the lines that are shown.
func (f *foundHere) around(l located, first, last int) {
	if f == nil {
		return
	}
	for _, line := range f.lines {
		if line < first {
			f.Earlier = marked(l.line(line), f.Query)
		} else if line > last {
			f.Later = marked(l.line(line), f.Query)
			return
		}
	}
}

// until is within for spans whose first one ends after start.
func until(spans []span, start, end int) []span {
	n := 0
	for n < len(spans) && spans[n].start < end {
		n++
	}
	return within(spans[:n], start, end)
}

// outline lists what a file defines.
func outline(c content, l located, lines int) (list []definition) {
	found := symbols.For(c.resp.GetLanguage()).Append(nil, c.whole)
	line, counted := 1, 0
	for _, s := range found[:min(len(found), maxOutline)] {
		line += bytes.Count(c.whole[counted:s.Start], []byte("\n"))
		counted = int(s.Start)
		d := definition{Name: name(cut(string(c.whole[s.Start:s.End]), 80)), Kind: s.Kind.String(), Line: line, URL: "#L" + strconv.Itoa(line)}
		if line >= c.first+lines || line < c.first {
			d.URL = l.line(line)
		}
		list = append(list, d)
	}
	return list
}

// paginate says which part of a long file the page shows.
func (page *filePage) paginate(c content, l located) {
	query := ""
	if page.Found != nil {
		query = page.Found.Query
	}
	from := func(line int) string {
		return marked(l.address()+"?"+searchapi.PageFromParam+"="+strconv.Itoa(line), query)
	}
	last := c.first + len(page.Lines) - 1
	page.Found.around(l, c.first, last)
	if c.first > 1 {
		page.Previous = from(max(c.first-searchapi.PageLines, 1))
	}
	if c.more {
		page.Next = from(last + 1)
	}
	switch {
	case last < c.first && c.first == 1:
		page.Note = "The file is empty."
	case last < c.first:
		page.Note = "The file has no line " + grouped(uint64(c.first)) + "."
	case c.first == 1 && !c.more:
		page.Facts = append(page.Facts, plural(last, "line", "lines"))
	default:
		page.Shown = "Lines " + grouped(uint64(c.first)) + " to " + grouped(uint64(last))
	}
}
