package web

import (
	"bytes"
	"context"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/trawl-search/trawl/index/snippet"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	queryParam = "q"
	pageParam  = "page"
	// liveParam marks a search while somebody types: it has less time, and counts less.
	liveParam = "live"
	// wholeParam asks for all matches of one file.
	wholeParam = "whole"
)

const (
	// pageFiles is how many files a page has.
	pageFiles = 20
	// fileLines bounds the lines that are shown of one file, matchLines those with matches, the best ones, and fileMatches the matches.
	fileLines   = 18
	matchLines  = 6
	fileMatches = 100
	// wholeLines and wholeBytes bound what is shown of a file that is asked for alone.
	wholeLines = 1000
	wholeBytes = 256 << 10
	// contextLines are shown around each match.
	contextLines = 1
	// lineBytes bounds what is shown of one line, nameBytes of one name.
	lineBytes = 240
	nameBytes = 200
	// oddNameBytes bounds what is shown of names that take more HTML than headBytes together.
	oddNameBytes = 30
	// pageBytes bounds the HTML of all results of a page without colours, headBytes that of the names and links of
	// one. All files are shown, since the next page begins behind them; lines take what room is left. Colours do not
	// count: which lines are shown must not depend on whether the colours came in time.
	pageBytes = 64 << 10
	headBytes = pageBytes / pageFiles
	// answerBytes bounds the answer that a page is made of.
	answerBytes = 2 << 20
	// liveTime bounds a search while somebody types, and countTime how long all that matches is counted after it.
	liveTime  = time.Second
	countTime = 250 * time.Millisecond
	// colourTime bounds how long results wait for their colours.
	colourTime = 40 * time.Millisecond
	// syntaxVersion is that of queries of this package.
	syntaxVersion = 2
)

// results is the page of a search.
type results struct {
	frame

	Problem *problem
	// Asked: there is a query.
	Asked   bool
	Account *account
	Files   []resultFile
	Facets  []facet
	// Uncounted: the time was over before the facets were counted.
	Uncounted bool
	Toggles   []toggle
	// Selected is what the query lists in place of files.
	Selected *facet
	Empty    *empty
	// Hints say what may be wrong with the query.
	Hints []hint
	// Next is the address of the next page. First is that of the first page, on all others.
	Next, First string
	// Repos is how many repos can be searched; empty if there are none.
	Repos string
}

// resultFile is a file that matches.
type resultFile struct {
	Repo, Path, Branch template.HTML
	// URL of the file, RepoURL of its repo; empty if the name is too long for a link.
	URL, RepoURL string
	Language     string
	Commit       string
	Matches      uint64
	Chunks       [][]resultLine
	// More are the matches that are not shown. MoreURL is the address of a search that shows them.
	More    uint64
	MoreURL string // none in such a search
	// Note says why the content is not shown, Without which words of match:any the file lacks.
	Note, Without string
}

// resultLine is a line of a file that matches.
type resultLine struct {
	Number int
	URL    string
	Code   template.HTML
	// plain is the size of Code without colours, in bytes.
	plain int
	// Hit: something in it matches.
	Hit bool
}

func (p *Pages) search(ctx context.Context, r *http.Request) reply {
	query, token, live := param(r, queryParam), param(r, pageParam), param(r, liveParam) != ""
	page := results{frame: p.frame(r, "Trawl", query), Asked: query != ""}
	answers := p.cfg.Open()
	if !page.Asked {
		return page.countRepos(ctx, answers)
	}
	page.Title, page.Toggles = cut(plain(query), nameBytes)+" · Trawl", toggles(query)
	req := &searchv1.SearchRequest{Query: query, Options: &searchv1.SearchOptions{
		MaxFiles: pageFiles, MaxMatchesPerFile: fileMatches, MaxLinesPerFile: matchLines, ContextLines: contextLines, MaxBytes: answerBytes, SyntaxVersion: syntaxVersion,
	}}
	whole := param(r, wholeParam) != ""
	if whole {
		req.Options.MaxFiles, req.Options.MaxMatchesPerFile, req.Options.MaxLinesPerFile, req.Options.ContextLines = 1, wholeLines, 0, 0
	}
	searching := ctx
	if live {
		var cancel context.CancelFunc
		searching, cancel = context.WithTimeout(ctx, liveTime)
		defer cancel()
		req.Options.Mode = searchv1.Mode_MODE_TOP_K
	} else {
		req.Options.Facets = pageFacets
	}
	var err error
	if req.PageToken, err = base64.RawURLEncoding.DecodeString(token); err != nil || len(req.PageToken) > maxPath {
		page.Problem = &problem{Status: http.StatusBadRequest, Text: "This page of results has no valid address. Search again."}
		return page.reply()
	}
	resp, err := answers.Search(searching, req)
	if err != nil {
		page.Problem = problemOf(query, err)
		return page.reply()
	}
	page.Uncounted = live && !count(ctx, answers, query, resp)
	repos := 0
	if !ofSomeRepos(query) {
		repos, _ = answers.Repos(ctx) // the session knows them by now; without them the account has no number
	}
	page.Account = newAccount(resp, repos, time.Now())
	page.fill(ctx, p, resp, whole)
	counts := resp.GetFacets()
	if resp.GetSelected() != searchv1.Facet_FACET_UNSPECIFIED && len(counts) > 0 {
		selected := newFacet(withoutSelect(query), counts[0])
		page.Selected, counts = &selected, counts[1:]
	}
	page.Facets, page.Empty, page.Hints = facetsOf(query, counts), newEmpty(resp.GetEmpty()), hintsOf(query, resp)
	if next := resp.GetNextPageToken(); len(next) > 0 {
		page.Next = "/?" + url.Values{queryParam: {query}, pageParam: {base64.RawURLEncoding.EncodeToString(next)}}.Encode()
	}
	if token != "" {
		page.First = searchURL(query)
	}
	return page.reply()
}

func (page *results) reply() reply { return page.Problem.reply("search", page) }

// countRepos says how many repos can be searched, on the page without a query.
func (page *results) countRepos(ctx context.Context, answers Answers) reply {
	switch n, err := answers.Repos(ctx); {
	case err != nil:
		page.Problem = problemOf("", err)
	case n > 0:
		page.Repos = plural(n, "repo", "repos")
	}
	return page.reply()
}

// fill adds all files, with lines as far as there is room.
func (page *results) fill(ctx context.Context, p *Pages, resp *searchv1.SearchResponse, whole bool) {
	room, most, coloured := pageBytes, fileLines, time.Now().Add(colourTime)
	if whole {
		room, most = wholeBytes, wholeLines
	}
	query := withoutSelect(page.Query)
	for _, f := range resp.GetFiles() {
		file := describe(f, query)
		if whole {
			file.MoreURL = ""
		}
		room -= file.head()
		page.Files = append(page.Files, file)
	}
	for i, f := range resp.GetFiles() {
		file, shown := &page.Files[i], 0
		for _, c := range f.GetChunks() {
			if c.GetFileName() {
				file.Path = shownLine(c.GetContent(), nil, marksOf(c), nameBytes)
				shown += len(c.GetRanges())
				continue
			}
			lines, matches := p.lines(ctx, f, c, query, time.Until(coloured), most-file.lines())
			size := 0
			for _, l := range lines {
				size += l.plain + 2*len(l.URL) + 100
			}
			if len(lines) == 0 || size > room {
				continue
			}
			room -= size
			shown += matches
			file.Chunks = append(file.Chunks, lines)
		}
		file.More = max(file.Matches, uint64(shown)) - uint64(shown)
	}
}

func (f *resultFile) lines() (n int) {
	for _, c := range f.Chunks {
		n += len(c)
	}
	return n
}

// describe is a file without its lines.
func describe(f *searchv1.FileMatch, query string) resultFile {
	path, branch := string(f.GetPath()), ""
	if len(f.GetBranches()) > 0 {
		branch = f.GetBranches()[0]
	}
	file := resultFile{
		Repo: pathName(cut(f.GetRepo(), nameBytes)), Path: pathName(cutFront(path, nameBytes)), Branch: name(cut(branch, nameBytes)),
		Language: plain(cut(f.GetLanguage(), 40)), Commit: short(f.GetCommit()), Matches: f.GetMatchCount(), Note: skipped(f.GetSkipReason()),
		Without: cut(plain(strings.Join(f.GetMissingWords(), " ")), nameBytes),
	}
	at := place{f.GetRepo(), branch, path}
	if to := at.address(); len(to) <= maxURL {
		file.URL, file.RepoURL = marked(to, query), place{at.repo, at.rev, ""}.address()
	}
	if more := searchURL(inFile(query, only(at.repo), path)) + "&" + wholeParam + "=1"; len(more) <= maxURL {
		file.MoreURL = more
	}
	if file.head() > headBytes {
		file.Repo, file.Path, file.Branch = name(cut(at.repo, oddNameBytes)), name(cutFront(path, oddNameBytes)), name(cut(branch, oddNameBytes))
		file.URL, file.RepoURL, file.MoreURL = "", "", ""
	}
	return file
}

// head is the HTML of the names and links of a file, in bytes.
func (f *resultFile) head() int {
	return len(f.Repo) + len(f.Path) + len(f.Branch) + len(f.URL) + len(f.RepoURL) + len(f.MoreURL)
}

// maxURL bounds the addresses of links. Names with longer ones are shown without a link, and so
// are names that take more than headBytes.
const maxURL = 2048

// cutFront is the end of a path, which says more than its beginning.
func cutFront(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return "…" + text[snippet.RuneStart(text, len(text)-limit):]
}

// marksOf are the matches in a chunk.
func marksOf(c *searchv1.ChunkMatch) (marks []span) {
	start, size := c.GetContentStart().GetByteOffset(), len(c.GetContent())
	for _, r := range c.GetRanges() {
		m := span{start: int(r.GetStart().GetByteOffset() - start), end: int(r.GetEnd().GetByteOffset() - start)}
		if m.start >= 0 && m.start < m.end && m.end <= size {
			marks = append(marks, m)
		}
	}
	return marks
}

// lines are the first lines of a chunk, no more than most, and how many matches begin in them. Lines
// before a match are not shown without it.
func (p *Pages) lines(ctx context.Context, f *searchv1.FileMatch, c *searchv1.ChunkMatch, query string, patience time.Duration, most int) (lines []resultLine, matches int) {
	content, marks := c.GetContent(), marksOf(c)
	var colours []span
	if patience > 0 && most > 0 && len(content) <= fileLines*lineBytes*4 {
		colours = p.colour.spans(ctx, f.GetLanguage(), content, patience)
	}
	at := place{f.GetRepo(), "", string(f.GetPath())}
	if len(f.GetBranches()) > 0 {
		at.rev = f.GetBranches()[0]
	}
	linked := len(at.address()) <= maxURL
	number, start, hit := int(c.GetContentStart().GetLineNumber()), 0, false
	for start < len(content) && len(lines) < most {
		end := lineEnd(content, start)
		line := resultLine{Number: number}
		own := within(marks, start, end)
		line.Hit = len(own) > 0
		hit = hit || line.Hit
		text := trimEnd(content[start:end])
		line.Code, line.plain = shownLine(text, within(colours, start, end), own, lineBytes), len(shownLine(text, nil, own, lineBytes))
		if linked {
			line.URL = marked(at.line(number), query)
		}
		lines = append(lines, line)
		matches += beginning(marks, start, end)
		start, number = end, number+1
	}
	if !hit && start < len(content) {
		return nil, 0
	}
	return lines, matches
}

// beginning counts the marks that begin in the bytes [start, end).
func beginning(marks []span, start, end int) (n int) {
	for _, m := range marks {
		if m.start >= start && m.start < end {
			n++
		}
	}
	return n
}

// lineEnd is where the line that begins at start ends, with its line break.
func lineEnd(text []byte, start int) int {
	if i := bytes.IndexByte(text[start:], '\n'); i >= 0 {
		return start + i + 1
	}
	return len(text)
}

// trimEnd is a line without its line break.
func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// short is a commit as it is shown.
func short(commit string) string { return plain(commit[:min(len(commit), 12)]) }

// skipped says why a file has no content; empty if it has.
func skipped(reason searchv1.SkipReason) string {
	if reason == searchv1.SkipReason_SKIP_REASON_UNSPECIFIED {
		return ""
	}
	return searchapi.SkipReason(reason)
}
