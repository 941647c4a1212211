package mcptools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// find is one query, and how to show its answer.
type find struct {
	label string // what the caller asked for; empty if it asked for one thing
	query string
	// text is what the caller wrote. locate maps a place in query to the place in text.
	// literalHint is set if text is an expression that could have been meant literally.
	text        string
	locate      func(position int) int
	literalHint bool
	// pattern is the term that stands for text, if query begins with one.
	pattern string
	// anyCase is the query in any case; empty if the query is.
	anyCase string
	// ladder are the rungs in order. If fixed is set, the first rung is shown in pages.
	ladder []Detail
	fixed  bool
	// perFile bounds the lines with matches that are shown of a file, the best ones; 0: only the budget does.
	perFile uint32
	context uint32
	paths   bool
	// name is the name whose places are wanted, empty for other queries. symbols makes the
	// answer show the symbols around them.
	name    string
	symbols bool
	// place is where the name is used, if the likeliest of its definitions are wanted. Scope is then the query for their files.
	place *searchv1.Place
	scope string
}

// finding is a running find.
type finding struct {
	find
	from cursor
	// shared means that the budget is for other finds too.
	shared bool
	resp   *searchv1.SearchResponse
	err    error
}

// Limits of the answer to one query, before the budget applies.
const (
	maxFindBytes  = 1 << 20
	maxCountBytes = 16 << 20
	maxCountFiles = 10_000
	maxLine       = 2000
	shortLine     = 120
	// parallel is how many queries of one call run at once.
	parallel = 4
)

// cursor is the place at which the next answer continues. It is bound to the arguments of
// the call.
type cursor struct {
	Mark   string `json:"m"`
	Find   int    `json:"i,omitempty"`
	Detail Detail `json:"d,omitempty"`
	// Page is the token of the page, Skip how many of its files were shown, Line the
	// first line of the next one that was not.
	Page []byte `json:"p,omitempty"`
	Skip int    `json:"s,omitempty"`
	Line uint32 `json:"l,omitempty"`
	// Any is set if files with any of the words are shown.
	Any bool `json:"a,omitempty"`
	// Last is the last name that was shown, for answers that are not searches.
	Last string `json:"n,omitempty"`
}

func (c cursor) encode() string { return base64.RawURLEncoding.EncodeToString(encode(c)) }

var errCursor = errors.New("the cursor belongs to another call: pass it with the arguments of the call that gave it, only max_tokens may differ")

// decodeCursor reads a cursor of a call with these arguments.
func decodeCursor(text, mark string) (c cursor, err error) {
	if text == "" {
		return cursor{Mark: mark}, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &c) != nil || c.Mark != mark || c.Skip < 0 || c.Find < 0 {
		return cursor{}, errCursor
	}
	return c, nil
}

// markOf identifies arguments.
func markOf(args ...any) string {
	sum := sha256.Sum256(encode(args))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// search runs the queries of a call, and shows their results within the budget.
func (c *call) search(ctx context.Context, scope Scope, finds []find, from cursor, paged bool) (*answer, error) {
	if err := scope.check(); err != nil {
		return nil, err
	}
	list := make([]*finding, len(finds))
	for i, f := range finds {
		list[i] = &finding{find: f, shared: len(finds) > 1, from: cursor{Mark: from.Mark, Find: i, Any: from.Any}}
	}
	if paged {
		if from.Find >= len(list) {
			return nil, errCursor
		}
		one := list[from.Find]
		one.from, one.fixed, one.shared = from, true, false
		if from.Detail != "" {
			one.ladder = []Detail{from.Detail}
		}
		list = []*finding{one}
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, f := range list {
		group.Go(func() error { f.run(ctx, c); return nil })
	}
	_ = group.Wait() // errors are those of single finds
	if !slices.ContainsFunc(list, func(f *finding) bool { return f.err == nil }) {
		return nil, list[0].err
	}
	tail, err := c.account(ctx, scope, list)
	if err != nil {
		return nil, err
	}
	return c.compose(ctx, list, tail)
}

// run requests the first page: as much as the budget could show.
func (f *finding) run(ctx context.Context, c *call) {
	// The files that an earlier call showed of this page are in it again. That call may have had
	// another budget.
	files, matches := uint32(min(f.from.Skip, maxCountFiles)+c.budget.bytes()/24), uint32(c.budget.bytes())
	if f.fixed {
		matches = 100_000
	}
	options := &searchv1.SearchOptions{
		SyntaxVersion: syntaxVersion, MaxFiles: files, MaxMatchesPerFile: matches, MaxLinesPerFile: f.perFile, ContextLines: f.context, MaxBytes: maxFindBytes, Symbols: f.symbols,
		MaxLineBytes: maxLine,
	}
	if f.ladder[0] == Files || f.ladder[0] == Directories {
		options.MaxMatchesPerFile, options.ContextLines = 1, 0
	}
	if f.ladder[0] == Directories {
		options.MaxFiles, options.MaxBytes = maxCountFiles, maxCountBytes
	}
	if f.place != nil {
		f.resp, f.err = f.likeliest(ctx, c, options)
	} else {
		f.resp, f.err = c.api.Search(ctx, &searchv1.SearchRequest{Query: f.query, PageToken: f.from.Page, Options: options})
	}
	if f.err != nil {
		f.err = f.inPattern(f.err)
	}
}

// mostLikely is the most definitions that are shown from a place.
const mostLikely = 10

// likeliest asks for the definitions that the place means, the likeliest first.
func (f *finding) likeliest(ctx context.Context, c *call, options *searchv1.SearchOptions) (*searchv1.SearchResponse, error) {
	options.MaxFiles = mostLikely
	resp, err := c.api.Definitions(ctx, &searchv1.DefinitionsRequest{Name: f.name, Query: f.scope, From: f.place, Options: options})
	return &searchv1.SearchResponse{Files: searchapi.FilesOfRepos(resp.GetRepos()), Statistics: resp.GetStatistics(), Coverage: resp.GetCoverage(), Empty: resp.GetEmpty()}, err
}

// syntaxVersion is that of all queries.
const syntaxVersion = 2

// result is the answer of all tools that search.
type result struct {
	Results  []found   `json:"results"`
	Coverage *coverage `json:"coverage"`
	Notes    []string  `json:"notes,omitempty"`
}

func (r *result) answer() *answer {
	var b strings.Builder
	for i := range r.Results {
		b.WriteString(r.Results[i].text())
	}
	return &answer{text: b.String() + r.Coverage.text() + noteText(r.Notes), data: r}
}

func noteText(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return "Note: " + strings.Join(notes, "\nNote: ") + "\n"
}

// compose divides the budget among the finds. Finds that need little come first, and
// leave the rest of their shares to others.
func (c *call) compose(ctx context.Context, list []*finding, tail *result) (*answer, error) {
	ascending := slices.Clone(list)
	slices.SortStableFunc(ascending, func(a, b *finding) int { return cmp.Compare(a.bytes(), b.bytes()) })
	room := c.budget.bytes() - tailSize(tail)
	shownOf := make(map[*finding]found, len(list))
	for i, f := range ascending {
		s, err := f.fit(ctx, c, room/(len(ascending)-i))
		if err != nil {
			return nil, err
		}
		shownOf[f] = s
		room -= sectionSize(s)
	}
	for _, f := range list {
		tail.Results = append(tail.Results, shownOf[f])
	}
	return tail.answer(), nil
}

// tailSize is the size of an answer without results.
func tailSize(tail *result) int {
	a := (&result{Results: []found{}, Coverage: tail.Coverage, Notes: tail.Notes}).answer()
	return size(a.text, a.data)
}

// sectionSize is how much a result adds to the size of an answer.
func sectionSize(s found) int { return size(s.text(), s) + 1 }

// bytes is the approximate size of everything found.
func (f *finding) bytes() (n int) {
	for _, file := range f.resp.GetFiles() {
		for _, chunk := range file.GetChunks() {
			n += len(chunk.GetContent())
		}
	}
	return n
}

// fit shows the find within room bytes, on the first rung on which it fits.
func (f *finding) fit(ctx context.Context, c *call, room int) (found, error) {
	head := f.head()
	if head.Error != "" || head.Files == 0 {
		return head, nil
	}
	if f.place != nil {
		for n := len(f.resp.GetFiles()); n > 0; n /= 2 {
			if s, ok := f.rung(c, head, Lines, f.resp.GetFiles()[:n], room); ok {
				return s, nil
			}
		}
		return head, nil
	}
	if f.fixed && f.ladder[0] != Directories {
		return f.page(c, head, room), nil
	}
	whole := complete(f.resp.GetFiles(), f.resp.GetStatistics())
	for _, rung := range f.ladder {
		if rung == Files || rung == Directories {
			break
		}
		if s, ok := f.rung(c, head, rung, f.resp.GetFiles(), room); whole && ok {
			return s, nil
		}
	}
	files, err := f.counts(ctx, c)
	if err != nil {
		return found{}, err
	}
	head = f.head()
	if f.ladder[0] == Directories {
		return byDirectory(head, files, c.budget.names(), room), nil
	}
	start := cursor{Mark: f.from.Mark, Find: f.from.Find, Detail: f.ladder[0]}
	head.Cursor = start.encode()
	if slices.Contains(f.ladder, Files) && uint64(len(files)) == head.Files {
		if f.ladder[0] == Files {
			head.Cursor = ""
		}
		if s, ok := f.rung(c, head, Files, files, room); ok {
			return s, nil
		}
		head.Cursor = start.encode()
	}
	return byDirectory(head, files, c.budget.names(), room), nil
}

// head is the answer without anything shown.
func (f *finding) head() found {
	if f.err != nil {
		return found{Query: f.label, Error: cut(problem(f.err).Error(), 300)}
	}
	total := f.resp.GetStatistics()
	s := found{
		Query: f.label, Matches: total.GetMatches(), Files: total.GetFilesMatched(), paths: f.paths,
		LowerBounds: !total.GetCountsExact(),
	}
	if f.paths {
		s.Matches = 0
	}
	return s
}

// rung shows all of files on a rung, if that fits.
func (f *finding) rung(c *call, head found, rung Detail, files []*searchv1.FileMatch, room int) (found, bool) {
	rows := rowsOf(files, rung, lineLimit(rung, room))
	if len(rows)*2 > room {
		return found{}, false
	}
	s := show(head, rung, rows, c.budget.names())
	return s, sectionSize(s) <= room
}

// lineLimit is the most bytes of a line on a rung.
func lineLimit(rung Detail, room int) int {
	if rung == Lines {
		return min(maxLine, room/4)
	}
	return min(shortLine, room/4)
}

// page shows as many rows as fit, from the cursor on.
func (f *finding) page(c *call, head found, room int) found {
	rung := f.ladder[0]
	files := f.resp.GetFiles()
	skip := min(f.from.Skip, len(files))
	var rows []row
	for _, r := range rowsOf(files, rung, lineLimit(rung, room)) {
		if r.ordinal > skip || r.ordinal == skip && (r.line == nil || r.line.Number >= f.from.Line) {
			rows = append(rows, r)
		}
	}
	rows = rows[:min(len(rows), room)]
	build := func(n int) found {
		s := show(head, rung, rows[:n], c.budget.names())
		s.Cursor = ""
		if next, more := f.next(rung, rows, n); more {
			s.Cursor = next.encode()
		}
		return s
	}
	return build(most(len(rows), func(n int) bool { return sectionSize(build(n)) <= room }))
}

// next is the cursor after n rows, if there is more.
func (f *finding) next(rung Detail, rows []row, n int) (next cursor, more bool) {
	next = cursor{Mark: f.from.Mark, Find: f.from.Find, Any: f.from.Any, Detail: rung, Page: f.from.Page}
	switch {
	case n < len(rows):
		next.Skip = rows[n].ordinal
		if l := rows[n].line; l != nil && n > 0 && rows[n-1].ordinal == rows[n].ordinal {
			next.Line = l.Number
		}
		return next, n > 0 || f.shared // alone, the page after one without rows would be the same
	case len(f.resp.GetNextPageToken()) > 0:
		next.Page = f.resp.GetNextPageToken()
		return next, true
	}
	return cursor{}, false
}

// counts are all files with their counts, or as many as fit into one answer of the
// router.
func (f *finding) counts(ctx context.Context, c *call) ([]*searchv1.FileMatch, error) {
	if n := uint64(len(f.resp.GetFiles())); n == f.resp.GetStatistics().GetFilesMatched() || n >= maxCountFiles {
		return f.resp.GetFiles(), nil
	}
	resp, err := c.api.Search(ctx, &searchv1.SearchRequest{Query: f.query, Options: &searchv1.SearchOptions{
		SyntaxVersion: syntaxVersion, MaxFiles: maxCountFiles, MaxMatchesPerFile: 1, MaxBytes: maxCountBytes,
		Consistency: &searchv1.Consistency{Level: &searchv1.Consistency_AtLeast{AtLeast: f.resp.GetRevisionToken()}},
	}})
	if err != nil {
		return nil, fmt.Errorf("count by file: %w", err)
	}
	f.resp = resp // totals and counts come from the same answer
	return resp.GetFiles(), nil
}

// deepest is how many levels of directories are distinguished.
const deepest = 6

// byDirectory shows counts by repo and directory, of as many levels as fit, and then as many
// of the repos as fit.
func byDirectory(head found, files []*searchv1.FileMatch, names, room int) found {
	head.Detail, head.Repos = Directories, nil
	var repos []repoCount
	build := func(n int) found {
		s := head
		s.Counts = repos[:n]
		var matches, files uint64
		for _, r := range s.Counts {
			matches, files = matches+r.Matches, files+r.Files
		}
		s.setLeftOut(matches, files)
		return s
	}
	for depth := deepest; depth >= 0; depth-- {
		repos = countsOf(files, depth, names, head.paths)
		if s := build(len(repos)); sectionSize(s) <= room {
			return s
		}
	}
	s := build(most(len(repos), func(n int) bool { return sectionSize(build(n)) <= room }))
	if len(s.Counts) == 0 {
		s.Detail = ""
	}
	return s
}
