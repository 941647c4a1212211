package zoektjson

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
)

// What an answer has beside its files is small, and encoding/json writes it. Files
// can be megabytes of short fields: for these reflection costs more than the search
// that found them, so that they are appended field by field. TestEncode holds every
// byte against encoding/json.

// appendReply appends the JSON of a reply, as a json.Encoder writes it.
func appendReply(b []byte, r *searchReply) ([]byte, error) {
	about, err := json.Marshal(&r.Result.stats)
	if err != nil {
		return nil, fmt.Errorf("encode statistics: %w", err)
	}
	e := encoder{buf: append(b, `{"Result":`...)}
	e.raw(string(about[:len(about)-1]), `,"Files":`)
	array(&e, r.Result.Files, e.file)
	e.raw(`,"RepoURLs":`)
	e.value(r.Result.RepoURLs)
	e.raw(`,"LineFragments":`)
	e.value(r.Result.LineFragments)
	e.raw(`,"Trawl":`)
	e.value(&r.Result.Trawl)
	e.raw("}}\n")
	return e.buf, e.err
}

// encoder appends JSON to buf until the first error, after which buf is of no use.
type encoder struct {
	buf []byte
	err error
}

func (e *encoder) raw(texts ...string) {
	for _, text := range texts {
		e.buf = append(e.buf, text...)
	}
}

// value writes what is rare or small by reflection.
func (e *encoder) value(v any) {
	raw, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("encode %T: %w", v, err)
	}
	e.buf = append(e.buf, raw...)
}

func (e *encoder) number(name string, n int64) {
	e.buf = strconv.AppendInt(append(e.buf, name...), n, 10)
}

func (e *encoder) truth(name string, is bool) {
	e.buf = strconv.AppendBool(append(e.buf, name...), is)
}

// float writes zero, which most scores are, without reflection.
func (e *encoder) float(name string, f float64) {
	e.raw(name)
	if f == 0 && 1/f > 0 {
		e.raw("0")
		return
	}
	e.value(f)
}

// text writes plain ASCII without reflection.
func (e *encoder) text(name, s string) {
	e.raw(name)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			e.value(s)
			return
		}
	}
	e.raw(`"`, s, `"`)
}

func (e *encoder) bytes(name string, p []byte) {
	e.raw(name)
	if p == nil {
		e.raw("null")
		return
	}
	e.raw(`"`)
	e.buf = base64.StdEncoding.AppendEncode(e.buf, p)
	e.raw(`"`)
}

func array[T any](e *encoder, items []T, one func(*T)) {
	if items == nil {
		e.raw("null")
		return
	}
	e.raw("[")
	for i := range items {
		if i > 0 {
			e.raw(",")
		}
		one(&items[i])
	}
	e.raw("]")
}

func (e *encoder) file(f *fileMatch) {
	e.text(`{"FileName":`, f.FileName)
	e.text(`,"Repository":`, f.Repository)
	if f.Version != "" {
		e.text(`,"Version":`, f.Version)
	}
	e.text(`,"Language":`, f.Language)
	if f.Debug != "" {
		e.text(`,"Debug":`, f.Debug)
	}
	if len(f.Branches) > 0 {
		e.raw(`,"Branches":`)
		array(e, f.Branches, func(name *string) { e.text("", *name) })
	}
	if f.LineMatches != nil {
		e.raw(`,"LineMatches":`)
		array(e, f.LineMatches, e.line)
	}
	if f.ChunkMatches != nil {
		e.raw(`,"ChunkMatches":`)
		array(e, f.ChunkMatches, e.chunk)
	}
	if len(f.Content) > 0 {
		e.bytes(`,"Content":`, f.Content)
	}
	e.bytes(`,"Checksum":`, f.Checksum)
	if f.Score != 0 {
		e.float(`,"Score":`, f.Score)
	}
	if f.RepositoryID != 0 {
		e.number(`,"RepositoryID":`, int64(f.RepositoryID))
	}
	if len(f.TrawlPath) > 0 {
		e.bytes(`,"TrawlPath":`, f.TrawlPath)
	}
	e.raw("}")
}

func (e *encoder) line(m *lineMatch) {
	e.bytes(`{"Line":`, m.Line)
	e.number(`,"LineStart":`, int64(m.LineStart))
	e.number(`,"LineEnd":`, int64(m.LineEnd))
	e.number(`,"LineNumber":`, int64(m.LineNumber))
	e.bytes(`,"Before":`, m.Before)
	e.bytes(`,"After":`, m.After)
	e.truth(`,"FileName":`, m.FileName)
	e.float(`,"Score":`, m.Score)
	e.text(`,"DebugScore":`, m.DebugScore)
	e.raw(`,"LineFragments":`)
	array(e, m.LineFragments, e.fragment)
	e.raw("}")
}

func (e *encoder) fragment(f *lineFragment) {
	e.number(`{"LineOffset":`, int64(f.LineOffset))
	e.number(`,"Offset":`, int64(f.Offset))
	e.number(`,"MatchLength":`, int64(f.MatchLength))
	e.raw(`,"SymbolInfo":null}`)
}

func (e *encoder) chunk(m *chunkMatch) {
	e.text(`{"DebugScore":`, m.DebugScore)
	e.bytes(`,"Content":`, m.Content)
	e.raw(`,"Ranges":`)
	array(e, m.Ranges, e.span)
	e.truth(`,"SymbolInfo":null,"FileName":`, m.FileName)
	e.location(`,"ContentStart":`, m.ContentStart)
	e.float(`,"Score":`, m.Score)
	e.number(`,"BestLineMatch":`, int64(m.BestLineMatch))
	e.raw("}")
}

func (e *encoder) span(r *textRange) {
	e.location(`{"Start":`, r.Start)
	e.location(`,"End":`, r.End)
	e.raw("}")
}

func (e *encoder) location(name string, l location) {
	e.raw(name)
	e.number(`{"ByteOffset":`, int64(l.ByteOffset))
	e.number(`,"LineNumber":`, int64(l.LineNumber))
	e.number(`,"Column":`, int64(l.Column))
	e.raw("}")
}
