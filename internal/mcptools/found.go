package mcptools

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Detail is how much an answer shows of the results. The details form a ladder: an answer
// has the first detail in which all of it fits the budget.
type Detail string

// The rungs of the ladder.
const (
	Lines       Detail = "lines"       // lines with matches, and around them
	ShortLines  Detail = "short"       // lines with matches, cut short
	LineNumbers Detail = "numbers"     // numbers of lines with matches
	Files       Detail = "files"       // counts by file
	Directories Detail = "directories" // counts by directory and repo
)

// found is the result of one query, and what the answer shows of it. Matches and Files
// are the exact totals on every rung.
type found struct {
	Query   string `json:"query,omitempty"`
	Error   string `json:"error,omitempty"`
	Matches uint64 `json:"matches"`
	Files   uint64 `json:"files"`
	// LowerBounds is set if the answer is incomplete: there may be more.
	LowerBounds bool        `json:"counts_are_lower_bounds,omitempty"`
	Detail      Detail      `json:"detail,omitempty"`
	Repos       []repoFiles `json:"repos,omitempty"`
	Counts      []repoCount `json:"counts,omitempty"`
	LeftOut     *leftOut    `json:"left_out,omitempty"`
	Cursor      string      `json:"cursor,omitempty"`

	// paths shows paths without counts: the query is for names.
	paths bool
}

// repoFiles are files of one repo at one commit.
type repoFiles struct {
	Repo   string      `json:"repo"`
	Commit string      `json:"commit"`
	Branch string      `json:"branch,omitempty"`
	Files  []fileLines `json:"files"`
}

type fileLines struct {
	Path    string `json:"path"`
	Matches uint64 `json:"matches,omitempty"`
	// Missing are words of the query that the file lacks, if it need not have all.
	Missing []string `json:"missing,omitempty"`
	Lines   []line   `json:"lines,omitempty"`
	Numbers []uint32 `json:"numbers,omitempty"`
}

type line struct {
	Number  uint32 `json:"line"`
	Text    string `json:"text"`
	Context bool   `json:"context,omitempty"`
	// Symbol says which symbol the first match is, or is in.
	Symbol string `json:"symbol,omitempty"`

	matches uint64 // that begin in it
}

// repoCount are the counts of a repo, and of its directories if there is room.
type repoCount struct {
	Repo        string     `json:"repo"`
	Matches     uint64     `json:"matches,omitempty"`
	Files       uint64     `json:"files"`
	Directories []dirCount `json:"directories,omitempty"`
}

// dirCount are the counts of a directory. Those of the deepest shown include
// everything below.
type dirCount struct {
	Dir     string `json:"dir"`
	Matches uint64 `json:"matches,omitempty"`
	Files   uint64 `json:"files"`
}

// leftOut counts the results that the totals include but the answer does not show.
type leftOut struct {
	Matches uint64 `json:"matches"`
	Files   uint64 `json:"files"`
}

// row is the smallest part of an answer that can be shown or left out.
type row struct {
	file    *searchv1.FileMatch
	ordinal int // of the file in its page
	line    *line
}

// rowsOf are the rows of files on a rung. Lines are cut to limit bytes.
func rowsOf(files []*searchv1.FileMatch, rung Detail, limit int) (rows []row) {
	for i, f := range files {
		if rung == Files {
			rows = append(rows, row{file: f, ordinal: i})
			continue
		}
		lines := linesOf(f, rung, limit)
		for j := range lines {
			rows = append(rows, row{f, i, &lines[j]})
		}
		if len(lines) == 0 {
			rows = append(rows, row{file: f, ordinal: i})
		}
	}
	return rows
}

// maxSymbol bounds the note about a symbol after a line, in bytes.
const maxSymbol = 100

// linesOf are the lines of a file with matches, and for Lines those around them.
func linesOf(f *searchv1.FileMatch, rung Detail, limit int) (lines []line) {
	for _, chunk := range f.GetChunks() {
		if chunk.GetFileName() {
			continue
		}
		number, offset := max(chunk.GetContentStart().GetLineNumber(), 1), chunk.GetContentStart().GetByteOffset()
		ranges := chunk.GetRanges()
		for text := range strings.SplitAfterSeq(string(chunk.GetContent()), "\n") {
			if text == "" {
				break // after the last line break
			}
			end := offset + uint32(len(text))
			l, at, touched := line{Number: number}, 0, false
			for _, r := range ranges {
				from, to := r.GetStart().GetByteOffset(), r.GetEnd().GetByteOffset()
				if from >= end || to <= offset {
					continue
				}
				if !touched {
					touched, at = true, int(max(from, offset)-offset)
					l.Symbol = part{text: searchapi.SymbolNote(f, r)}.around(0, maxSymbol).String()
					l.matches += uint64(chunk.GetCutRanges())
				}
				if from >= offset {
					l.matches++
				}
			}
			if l.Context = !touched; touched || rung == Lines {
				whole := part{strings.TrimRight(text, "\r\n"), int(chunk.GetCutBefore()), int(chunk.GetCutAfter())}
				l.Text = whole.around(at, limit).String()
				lines = append(lines, l)
			}
			number, offset = number+1, end
		}
	}
	return lines
}

// complete reports whether the rows of files show all results.
func complete(files []*searchv1.FileMatch, total *searchv1.Statistics) bool {
	if uint64(len(files)) < total.GetFilesMatched() {
		return false
	}
	for _, f := range files {
		shown := uint64(0)
		for _, c := range f.GetChunks() {
			shown += uint64(len(c.GetRanges())) + uint64(c.GetCutRanges())
		}
		if shown < f.GetMatchCount() {
			return false
		}
	}
	return true
}

// show returns head with rows on a rung. Names are at most that many bytes long.
func show(head found, rung Detail, rows []row, names int) found {
	head.Detail, head.Repos = rung, nil
	var last *searchv1.FileMatch
	var matches, files uint64
	for _, r := range rows {
		if r.file != last {
			files++
			head.addFile(r.file, names)
			if rung == Files {
				matches += r.file.GetMatchCount()
			}
			last = r.file
		}
		repo := &head.Repos[len(head.Repos)-1]
		f := &repo.Files[len(repo.Files)-1]
		switch {
		case r.line == nil && rung != Files:
			matches += inName(r.file)
		case r.line == nil:
		case rung == LineNumbers:
			f.Numbers = append(f.Numbers, r.line.Number)
			matches += r.line.matches
		default:
			f.Lines = append(f.Lines, *r.line)
			matches += r.line.matches
		}
	}
	head.setLeftOut(matches, files)
	return head
}

// inName is the number of matches in the name of a file.
func inName(f *searchv1.FileMatch) (n uint64) {
	for _, c := range f.GetChunks() {
		if c.GetFileName() {
			n += uint64(len(c.GetRanges()))
		}
	}
	return n
}

func (s *found) addFile(f *searchv1.FileMatch, names int) {
	branch := ""
	if len(f.GetBranches()) > 0 {
		branch = shown(f.GetBranches()[0], names)
	}
	name := shown(f.GetRepo(), names)
	if n := len(s.Repos); n == 0 || s.Repos[n-1].Repo != name || s.Repos[n-1].Commit != f.GetCommit() || s.Repos[n-1].Branch != branch {
		s.Repos = append(s.Repos, repoFiles{Repo: name, Commit: f.GetCommit(), Branch: branch})
	}
	repo := &s.Repos[len(s.Repos)-1]
	shownFile := fileLines{Path: shown(string(f.GetPath()), names), Missing: f.GetMissingWords()}
	if !s.paths {
		shownFile.Matches = f.GetMatchCount()
	}
	repo.Files = append(repo.Files, shownFile)
}

func (s *found) setLeftOut(matches, files uint64) {
	s.LeftOut = nil
	if left := (leftOut{s.Matches - min(matches, s.Matches), s.Files - min(files, s.Files)}); left != (leftOut{}) {
		s.LeftOut = &left
	}
}

// text is the other form of s.
func (s *found) text() string {
	var b strings.Builder
	if s.Query != "" {
		fmt.Fprintf(&b, "%s: ", s.Query)
	}
	if s.Error != "" {
		return b.String() + s.Error + "\n"
	}
	b.WriteString(s.totals())
	b.WriteByte('\n')
	for _, repo := range s.Repos {
		fmt.Fprintf(&b, "%s@%s", repo.Repo, short(repo.Commit))
		if repo.Branch != "" {
			fmt.Fprintf(&b, " (%s)", repo.Branch)
		}
		b.WriteByte('\n')
		for _, f := range repo.Files {
			s.fileText(&b, f)
		}
	}
	for _, repo := range s.Counts {
		fmt.Fprintf(&b, "%s: %s\n", repo.Repo, s.countText(repo.Matches, repo.Files))
		for _, d := range repo.Directories {
			fmt.Fprintf(&b, "  %s/: %s\n", d.Dir, s.countText(d.Matches, d.Files))
		}
	}
	return b.String()
}

func (s *found) countText(matches, files uint64) string {
	if s.paths {
		return plural(files, "file", "files")
	}
	return fmt.Sprintf("%d in %s", matches, plural(files, "file", "files"))
}

func (s *found) fileText(b *strings.Builder, f fileLines) {
	b.WriteString("  " + f.Path)
	switch {
	case len(f.Numbers) > 0:
		b.WriteByte(':')
		for i, n := range f.Numbers {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.FormatUint(uint64(n), 10))
		}
	case s.Detail == Files && !s.paths:
		fmt.Fprintf(b, ": %d", f.Matches)
	}
	if len(f.Missing) > 0 {
		fmt.Fprintf(b, "  [without %s]", clean([]byte(strings.Join(f.Missing, " "))))
	}
	b.WriteByte('\n')
	for _, l := range f.Lines {
		mark := ":"
		if l.Context {
			mark = "-"
		}
		fmt.Fprintf(b, "    %d%s %s", l.Number, mark, l.Text)
		if l.Symbol != "" {
			fmt.Fprintf(b, "  [%s]", l.Symbol)
		}
		b.WriteByte('\n')
	}
}

// rungText says what a rung shows.
var rungText = map[Detail]string{
	Lines: "lines", ShortLines: "lines, cut where they are long", LineNumbers: "numbers of lines", Files: "counts by file", Directories: "counts by repo and directory",
}

// totals is the first line of the text.
func (s *found) totals() string {
	var b strings.Builder
	if s.LowerBounds {
		b.WriteString("at least ")
	}
	if s.paths {
		b.WriteString(plural(s.Files, "file", "files"))
	} else {
		fmt.Fprintf(&b, "%s in %s", plural(s.Matches, "match", "matches"), plural(s.Files, "file", "files"))
	}
	if what := rungText[s.Detail]; s.Files > 0 && s.Detail != Lines && (!s.paths || s.Detail == Directories) {
		if what == "" {
			what = "totals only"
		}
		b.WriteString(", " + what)
	}
	switch left := s.LeftOut; {
	case left == nil:
	case left.Files == 0:
		fmt.Fprintf(&b, "; left out: %s in files that are shown", plural(left.Matches, "match", "matches"))
	case s.paths:
		fmt.Fprintf(&b, "; left out: %s", plural(left.Files, "file", "files"))
	default:
		fmt.Fprintf(&b, "; left out: %s in %s", plural(left.Matches, "match", "matches"), plural(left.Files, "file", "files"))
	}
	if s.Cursor != "" {
		fmt.Fprintf(&b, "; for more, the same arguments with cursor %q", s.Cursor)
	}
	return b.String()
}

// countsOf are counts by repo and by directory, of at most depth levels; 0: by repo. The
// largest come first. With paths it counts files only.
func countsOf(files []*searchv1.FileMatch, depth, names int, paths bool) []repoCount {
	var repos []repoCount
	place, dirPlace := make(map[string]int), make(map[[2]string]int)
	for _, f := range files {
		matches := f.GetMatchCount()
		if paths {
			matches = 0
		}
		i, ok := place[f.GetRepo()]
		if !ok {
			i = len(repos)
			place[f.GetRepo()], repos = i, append(repos, repoCount{Repo: shown(f.GetRepo(), names)})
		}
		repo := &repos[i]
		repo.Matches, repo.Files = repo.Matches+matches, repo.Files+1
		if depth == 0 {
			continue
		}
		key := [2]string{f.GetRepo(), dirOf(string(f.GetPath()), depth)}
		j, ok := dirPlace[key]
		if !ok {
			j = len(repo.Directories)
			dirPlace[key], repo.Directories = j, append(repo.Directories, dirCount{Dir: shown(cmp.Or(key[1], "."), names)})
		}
		d := &repo.Directories[j]
		d.Matches, d.Files = d.Matches+matches, d.Files+1
	}
	slices.SortStableFunc(repos, func(a, b repoCount) int {
		return cmp.Or(cmp.Compare(b.Matches, a.Matches), cmp.Compare(b.Files, a.Files), cmp.Compare(a.Repo, b.Repo))
	})
	for _, r := range repos {
		slices.SortStableFunc(r.Directories, func(a, b dirCount) int {
			return cmp.Or(cmp.Compare(b.Matches, a.Matches), cmp.Compare(b.Files, a.Files), cmp.Compare(a.Dir, b.Dir))
		})
	}
	return repos
}

// dirOf is the directory of a path, of at most depth levels.
func dirOf(path string, depth int) string {
	end := 0
	for range depth {
		i := strings.IndexByte(path[end:], '/')
		if i < 0 {
			break
		}
		end += i + 1
	}
	return strings.TrimSuffix(path[:end], "/")
}
