package search

import (
	"bytes"
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/symbols"
	"github.com/trawl-search/trawl/internal/resolve"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Bounds of the lookups from a place.
const (
	// fromMatches and fromBytes bound the definitions of one lookup, the former in one file. The latter also bounds what is read of the file of the place.
	fromMatches = 100
	fromBytes   = 1 << 20
	// fromLines is how many lines after a name are read for its type.
	fromLines = 4
)

// definitionsFrom answers a request with the place where the name is used.
func (s *Service) definitionsFrom(ctx context.Context, req *searchv1.DefinitionsRequest) (*searchv1.DefinitionsResponse, error) {
	if err := checkWithin(req.Query); err != nil {
		return nil, err
	}
	if len(req.PageToken) > 0 {
		return nil, searchapi.FieldError(codes.InvalidArgument, "page_token", "definitions from a place are one page")
	}
	s = s.Session(nil) // all lookups see the same roots
	options := searchapi.WithDefaults(req.Options)
	file, err := s.GetFile(ctx, &searchv1.GetFileRequest{Repo: req.From.Repo, Path: req.From.Path, Branch: req.From.Branch, Consistency: options.Consistency, MaxBytes: fromBytes})
	if err != nil {
		return nil, err
	}
	place := resolve.Place{Repo: req.From.Repo, Path: string(searchapi.TreePath(req.From.Path)), Language: file.Language, Text: file.Content, Name: req.Name, Offset: -1}
	if req.From.Line > 0 {
		place.Offset = resolve.Find(file.Content, req.Name, req.From.Line, req.From.Column)
	}
	lookup := &lookups{service: s, req: req, options: options, resp: &searchv1.DefinitionsResponse{}}
	found, likely, err := resolve.Resolve(ctx, lookup, place, int(options.MaxFiles))
	if err != nil {
		return nil, err
	}
	resp := lookup.resp
	var files []*searchv1.FileMatch
	for _, d := range found[:min(len(found), int(options.MaxFiles))] {
		if of, ok := d.Of.(*defined); ok {
			files = append(files, of.alone(int(options.ContextLines)))
		}
	}
	if len(files) > 0 {
		resp.Empty = nil
	}
	if n := searchapi.FittingFiles(files, int(options.MaxBytes)-proto.Size(resp)-groupBytes*len(files)); n < len(files) {
		files, resp.Cut = files[:n], searchv1.CutReason_CUT_REASON_MAX_BYTES
	}
	resp.Likely = likely && len(files) > 0
	for _, f := range files {
		if n := len(resp.Repos); n == 0 || resp.Repos[n-1].Repo != f.Repo {
			resp.Repos = append(resp.Repos, &searchv1.RepoMatches{Repo: f.Repo})
		}
		group := resp.Repos[len(resp.Repos)-1]
		group.Files, f.Repo = append(group.Files, f), ""
	}
	return resp, nil
}

// lookups answers what a resolver asks by searches. It adds them up in a response.
type lookups struct {
	service *Service
	req     *searchv1.DefinitionsRequest
	options *searchv1.SearchOptions
	resp    *searchv1.DefinitionsResponse
}

// defined is one definition in the file of an answer.
type defined struct {
	file  *searchv1.FileMatch
	chunk *searchv1.ChunkMatch
	in    *searchv1.Range
}

// Definitions implements resolve.Index.
func (l *lookups) Definitions(ctx context.Context, name, within string, most int) (found []resolve.Definition, err error) {
	o := searchapi.CopyOptions(l.options)
	o.SyntaxVersion, o.Symbols, o.Mode, o.Explain, o.CountOnly, o.Facets = ownFields, true, searchv1.Mode_MODE_TOP_K, false, false, nil
	o.MaxFiles, o.MaxMatchesPerFile, o.MaxBytes, o.ContextLines = uint32(most), fromMatches, fromBytes, max(fromLines, o.ContextLines)
	query := l.req.Query
	if name == l.req.Name && within != "" {
		query = within + " (" + query + ")"
	} else if name != l.req.Name {
		query = within
	}
	resp, err := l.service.searchFor(ctx, &searchv1.SearchRequest{Query: searchapi.DefinitionsOf(name, query), Options: o}, l.req.Query)
	if err != nil {
		return nil, err
	}
	if name == l.req.Name {
		l.add(resp, within == "")
	}
	for _, f := range resp.Files {
		for _, c := range f.Chunks {
			for _, r := range c.Ranges {
				if !r.Definition || r.Symbol == 0 {
					continue
				}
				symbol, line := f.Symbols[r.Symbol-1], c.Content[r.Start.ByteOffset-c.ContentStart.ByteOffset:]
				at := bytes.LastIndexByte(c.Content[:len(c.Content)-len(line)], '\n') + 1
				found = append(found, resolve.Definition{
					Repo: f.Repo, Path: string(f.Path), Language: f.Language, Kind: symbols.Kind(symbol.Kind), Scope: symbol.Scope,
					Text: c.Content[at:], At: len(c.Content) - len(line) - at, Number: r.Start.LineNumber, Of: &defined{f, c, r},
				})
			}
		}
	}
	return found, nil
}

// add accounts for a search of the name that is asked for: the answer is complete if all of them are. Only one of all definitions has
// their exact number.
func (l *lookups) add(found *searchv1.SearchResponse, all bool) {
	found.Statistics.CountsExact = found.Statistics.CountsExact && all
	l.resp.Statistics, l.resp.RevisionToken, l.resp.Empty = found.Statistics, found.RevisionToken, found.Empty
	if l.resp.Coverage.GetComplete() || l.resp.Coverage == nil {
		l.resp.Coverage = found.Coverage
	}
}

// alone is a file with the definition alone, and lines around it.
func (d *defined) alone(context int) *searchv1.FileMatch {
	content, r := d.chunk.Content, d.in
	name := int(r.Start.ByteOffset - d.chunk.ContentStart.ByteOffset)
	begin, line := bytes.LastIndexByte(content[:name], '\n')+1, r.Start.LineNumber
	for n := context; n > 0 && begin > 0; n-- {
		begin = bytes.LastIndexByte(content[:begin-1], '\n') + 1
		line--
	}
	end := name
	for n := context; n >= 0 && end < len(content); n-- {
		next := bytes.IndexByte(content[end:], '\n')
		if next < 0 {
			end = len(content)
			break
		}
		end += next + 1
	}
	in := &searchv1.Range{Start: r.Start, End: r.End, Symbol: 1, Definition: true}
	start := &searchv1.Location{ByteOffset: d.chunk.ContentStart.ByteOffset + uint32(begin), LineNumber: line, Column: 1}
	if begin == 0 { // it may be a part of a long line
		start.Column = d.chunk.ContentStart.Column
	}
	return &searchv1.FileMatch{
		Repo: d.file.Repo, Path: d.file.Path, Branches: d.file.Branches, Language: d.file.Language, Commit: d.file.Commit, Blob: d.file.Blob,
		Score: d.file.Score, MatchCount: 1, Symbols: []*searchv1.Symbol{d.file.Symbols[r.Symbol-1]},
		Chunks: []*searchv1.ChunkMatch{{
			Content: content[begin:end], ContentStart: start, Ranges: []*searchv1.Range{in}, CutBefore: d.chunk.CutBefore, CutAfter: d.chunk.CutAfter,
		}},
	}
}
