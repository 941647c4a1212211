package zoekt

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// view translates the files of an answer, which may come in pieces, as long as there is room.
type view struct {
	o    *searchOptions
	room *room
	// files that are shown, and matches that may still be.
	files, left int
	// full: no more files are shown.
	full  bool
	links links
	// id gives the ids of repos. It is asked for when there are files: what has none may be an answer that had no time.
	id func(repo string) uint32
	// linked are the links to the repos that are shown, if there are any.
	linked map[string]repoLinks
}

func (o *searchOptions) newView(room *room, links links) *view {
	return &view{o: o, room: room, left: o.MaxMatchDisplayCount, links: links, linked: map[string]repoLinks{}}
}

// take takes room for a file, and for the links to its repo.
func (v *view) take(m *fileMatch) bool {
	if _, known := v.linked[m.Repository]; known || v.links == "" {
		return v.room.take(m, v.files == 0)
	}
	to := v.links.of(m.Repository)
	size := to.size(m.Repository)
	v.room.left -= size
	if !v.room.take(m, v.files == 0) {
		v.room.left += size
		return false
	}
	v.linked[m.Repository] = to
	return true
}

// show translates files to zoekt's. The file that reaches the limit of matches is the last.
func (v *view) show(files []*searchv1.FileMatch) []fileMatch {
	shown := make([]fileMatch, 0, len(files))
	for i, f := range files {
		if v.full {
			if v.room.files > 0 {
				v.room.files += len(files) - i
			}
			break
		}
		m := describe(f, v.id(f.Repo))
		var n int
		if v.o.ChunkMatches {
			m.ChunkMatches, n = v.o.chunks(f, v.left)
		} else {
			m.LineMatches, n = v.o.lines(f, v.left)
		}
		if !v.take(&m) {
			v.room.files, v.full = len(files)-i, true
			break
		}
		shown = append(shown, m)
		v.files++
		if v.o.MaxMatchDisplayCount > 0 {
			v.left -= n
			v.full = v.left <= 0
		}
	}
	return shown
}

func describe(f *searchv1.FileMatch, id uint32) fileMatch {
	m := fileMatch{
		FileName: string(f.Path), Repository: f.Repo, RepositoryID: id,
		Version: f.Commit, Language: f.Language, Branches: f.Branches,
		Checksum: f.Blob, Score: f.Score, Debug: f.Explanation,
	}
	if !utf8.Valid(f.Path) {
		m.TrawlPath = f.Path
	}
	return m
}

// chunks translates the matches of a file to chunks, the best first, with at most limit ranges, zero for
// all. N is the number of ranges.
func (o *searchOptions) chunks(f *searchv1.FileMatch, limit int) (out []chunkMatch, n int) {
	matches := matchesOf(f)
	out = make([]chunkMatch, 0, len(matches))
	p := passage{file: f}
	for _, c := range matches {
		if c.FileName {
			out = append(out, nameChunk(c))
			continue
		}
		p.set(c)
		for group := range p.groups(c.Ranges, o.context()) {
			out = append(out, p.chunk(group, o.context()))
		}
	}
	return limited(bestFirst(out, func(m *chunkMatch) float64 { return m.Score }), limit, func(m *chunkMatch) int { return len(m.Ranges) }, func(m *chunkMatch, n int) { m.cut(n, o.context()) })
}

// cut keeps the first ranges of a chunk, and of its content the lines up to the last of them with their context.
func (m *chunkMatch) cut(ranges, context int) {
	m.Ranges, m.SymbolInfo = m.Ranges[:ranges], m.SymbolInfo[:min(len(m.SymbolInfo), ranges)]
	if m.FileName {
		return
	}
	last, end := m.Ranges[ranges-1], 0
	m.BestLineMatch = min(m.BestLineMatch, last.Start.LineNumber) // which is shown
	for range int(last.End.LineNumber-m.ContentStart.LineNumber) + context + 1 {
		n := bytes.IndexByte(m.Content[end:], '\n')
		if n < 0 {
			return
		}
		end += n + 1
	}
	m.Content = m.Content[:end]
}

// lines translates the matches of a file to lines, the best first, with at most limit fragments, zero for
// all. N is the number of fragments.
func (o *searchOptions) lines(f *searchv1.FileMatch, limit int) (out []lineMatch, n int) {
	matches := matchesOf(f)
	out = make([]lineMatch, 0, len(matches))
	p := passage{file: f}
	for _, c := range matches {
		if c.FileName {
			out = append(out, nameLine(c))
			continue
		}
		p.set(c)
		out = append(out, p.lineMatches(c.Ranges, o.context())...)
	}
	return limited(bestFirst(out, func(m *lineMatch) float64 { return m.Score }), limit, func(m *lineMatch) int { return len(m.LineFragments) }, func(m *lineMatch, n int) { m.LineFragments = m.LineFragments[:n] })
}

// bestFirst orders the parts of a file by descending score, and those of the same score as in the file. It compares
// places rather than parts, which are large.
func bestFirst[T any](parts []T, score func(*T) float64) []T {
	type place struct {
		score float64
		at    int
	}
	order, sorted := make([]place, len(parts)), true
	for i := range parts {
		order[i] = place{score(&parts[i]), i}
		sorted = sorted && (i == 0 || order[i].score <= order[i-1].score)
	}
	if sorted {
		return parts
	}
	slices.SortFunc(order, func(a, b place) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.at, b.at)) })
	for i := range parts {
		at := order[i].at
		for at < i { // what was there has given way to another
			at = order[at].at
		}
		parts[i], parts[at] = parts[at], parts[i]
	}
	return parts
}

// limited keeps the first parts with at most limit matches in all, zero for all, and cuts the last of them to what is left. N is the number of
// matches.
func limited[T any](parts []T, limit int, matches func(*T) int, cut func(*T, int)) (kept []T, n int) {
	for i := range parts {
		more := matches(&parts[i])
		if limit > 0 && n+more >= limit {
			if n+more > limit {
				cut(&parts[i], limit-n)
			}
			return parts[:i+1], limit
		}
		n += more
	}
	return parts, n
}

// matchesOf are the file's chunks. A file without matches, such as lang:go finds, matches
// with its whole name.
func matchesOf(f *searchv1.FileMatch) []*searchv1.ChunkMatch {
	if f.MatchCount > 0 || len(f.Chunks) > 0 {
		return f.Chunks
	}
	start := &searchv1.Location{LineNumber: 1, Column: 1}
	end := &searchv1.Location{ByteOffset: uint32(len(f.Path)), LineNumber: 1, Column: uint32(utf8.RuneCount(f.Path)) + 1}
	return []*searchv1.ChunkMatch{{
		Content: f.Path, ContentStart: start, FileName: true,
		Ranges: []*searchv1.Range{{Start: start, End: end}},
	}}
}

func nameChunk(c *searchv1.ChunkMatch) chunkMatch {
	m := chunkMatch{Content: c.Content, FileName: true, ContentStart: place(c.ContentStart)}
	for _, r := range c.Ranges {
		m.Ranges = append(m.Ranges, textRange{place(r.Start), place(r.End)})
	}
	return m
}

func nameLine(c *searchv1.ChunkMatch) lineMatch {
	m := lineMatch{Line: c.Content, FileName: true}
	for _, r := range c.Ranges {
		m.LineFragments = append(m.LineFragments, lineFragment{
			LineOffset: int(r.Start.ByteOffset), Offset: r.Start.ByteOffset,
			MatchLength: int(r.End.ByteOffset - r.Start.ByteOffset),
		})
	}
	return m
}

func place(l *searchv1.Location) location {
	return location{ByteOffset: l.GetByteOffset(), LineNumber: l.GetLineNumber(), Column: l.GetColumn()}
}
