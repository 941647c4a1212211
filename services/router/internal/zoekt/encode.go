package zoekt

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
)

// appendJSON appends the reply as encoding/json writes it. Files and lines, which make up nearly all of it, are written without reflection,
// four times as fast (BenchmarkAnswer).
func (r *searchReply) appendJSON(b []byte) (_ []byte, err error) {
	head, err := json.Marshal(r.Result.stats) // whose fields come first
	if err != nil {
		return b, err //nolint:wrapcheck // the caller says of what
	}
	b = append(b, `{"Result":`...)
	b = append(b, head[:len(head)-1]...)
	b = append(b, `,"Files":`...)
	b = appendArray(b, r.Result.Files, (*fileMatch).appendJSON)
	for _, field := range []struct {
		name  string
		value any
	}{{"RepoURLs", r.Result.RepoURLs}, {"LineFragments", r.Result.LineFragments}, {"Trawl", r.Result.Trawl}} {
		value, err := json.Marshal(field.value)
		if err != nil {
			return b, err //nolint:wrapcheck // as above
		}
		b = append(appendName(b, field.name), value...)
	}
	return append(b, "}}\n"...), nil
}

func (m *fileMatch) appendJSON(b []byte) []byte {
	b = appendString(append(b, `{"FileName":`...), m.FileName)
	b = appendString(appendName(b, "Repository"), m.Repository)
	if m.Version != "" {
		b = appendString(appendName(b, "Version"), m.Version)
	}
	b = appendString(appendName(b, "Language"), m.Language)
	if m.Debug != "" {
		b = appendString(appendName(b, "Debug"), m.Debug)
	}
	if len(m.Branches) > 0 {
		b = appendArray(appendName(b, "Branches"), m.Branches, func(s *string, b []byte) []byte { return appendString(b, *s) })
	}
	if m.LineMatches != nil {
		b = appendArray(appendName(b, "LineMatches"), m.LineMatches, (*lineMatch).appendJSON)
	}
	if m.ChunkMatches != nil {
		b = appendArray(appendName(b, "ChunkMatches"), m.ChunkMatches, (*chunkMatch).appendJSON)
	}
	if len(m.Content) > 0 {
		b = appendBytes(appendName(b, "Content"), m.Content)
	}
	b = appendBytes(appendName(b, "Checksum"), m.Checksum)
	if m.Score != 0 {
		b = appendFloat(appendName(b, "Score"), m.Score)
	}
	if m.RepositoryID != 0 {
		b = strconv.AppendUint(appendName(b, "RepositoryID"), uint64(m.RepositoryID), 10)
	}
	if len(m.TrawlPath) > 0 {
		b = appendBytes(appendName(b, "TrawlPath"), m.TrawlPath)
	}
	return append(b, '}')
}

func (m *lineMatch) appendJSON(b []byte) []byte {
	b = appendBytes(append(b, `{"Line":`...), m.Line)
	b = appendInt(appendName(b, "LineStart"), m.LineStart)
	b = appendInt(appendName(b, "LineEnd"), m.LineEnd)
	b = appendInt(appendName(b, "LineNumber"), m.LineNumber)
	b = appendBytes(appendName(b, "Before"), m.Before)
	b = appendBytes(appendName(b, "After"), m.After)
	b = strconv.AppendBool(appendName(b, "FileName"), m.FileName)
	b = appendFloat(appendName(b, "Score"), m.Score)
	b = appendString(appendName(b, "DebugScore"), m.DebugScore)
	b = appendArray(appendName(b, "LineFragments"), m.LineFragments, (*lineFragment).appendJSON)
	return append(b, '}')
}

func (f *lineFragment) appendJSON(b []byte) []byte {
	b = appendInt(append(b, `{"LineOffset":`...), f.LineOffset)
	b = strconv.AppendUint(appendName(b, "Offset"), uint64(f.Offset), 10)
	b = appendInt(appendName(b, "MatchLength"), f.MatchLength)
	b = f.SymbolInfo.appendJSON(appendName(b, "SymbolInfo"))
	return append(b, '}')
}

func (m *chunkMatch) appendJSON(b []byte) []byte {
	b = appendString(append(b, `{"DebugScore":`...), m.DebugScore)
	b = appendBytes(appendName(b, "Content"), m.Content)
	b = appendArray(appendName(b, "Ranges"), m.Ranges, (*textRange).appendJSON)
	b = appendArray(appendName(b, "SymbolInfo"), m.SymbolInfo, func(s **symbolInfo, b []byte) []byte { return (*s).appendJSON(b) })
	b = strconv.AppendBool(appendName(b, "FileName"), m.FileName)
	b = m.ContentStart.appendJSON(appendName(b, "ContentStart"))
	b = appendFloat(appendName(b, "Score"), m.Score)
	b = strconv.AppendUint(appendName(b, "BestLineMatch"), uint64(m.BestLineMatch), 10)
	return append(b, '}')
}

func (s *symbolInfo) appendJSON(b []byte) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	b = appendString(append(b, `{"Sym":`...), s.Sym)
	b = appendString(appendName(b, "Kind"), s.Kind)
	b = appendString(appendName(b, "Parent"), s.Parent)
	b = appendString(appendName(b, "ParentKind"), s.ParentKind)
	return append(b, '}')
}

func (r *textRange) appendJSON(b []byte) []byte {
	b = r.Start.appendJSON(append(b, `{"Start":`...))
	b = r.End.appendJSON(appendName(b, "End"))
	return append(b, '}')
}

func (l *location) appendJSON(b []byte) []byte {
	b = strconv.AppendUint(append(b, `{"ByteOffset":`...), uint64(l.ByteOffset), 10)
	b = strconv.AppendUint(appendName(b, "LineNumber"), uint64(l.LineNumber), 10)
	b = strconv.AppendUint(appendName(b, "Column"), uint64(l.Column), 10)
	return append(b, '}')
}

// appendName appends the name of a field that is not the first.
func appendName(b []byte, name string) []byte {
	return append(append(append(b, `,"`...), name...), `":`...)
}

func appendArray[T any](b []byte, list []T, element func(*T, []byte) []byte) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(&list[i], b)
	}
	return append(b, ']')
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

func appendBytes(b, value []byte) []byte {
	if value == nil {
		return append(b, "null"...)
	}
	b = append(b, '"')
	return append(base64.StdEncoding.AppendEncode(b, value), '"')
}

// appendString leaves what is not plain to encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) //nolint:errchkjson // a string has no error
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendFloat leaves what is neither a small whole number nor has an ordinary size to encoding/json. A number that is none is 0, for which
// encoding/json has only an error.
func appendFloat(b []byte, f float64) []byte {
	switch size := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(b, '0')
	case size != 0 && (size < 1e-6 || size >= 1e21):
		number, _ := json.Marshal(f) //nolint:errchkjson // it is finite
		return append(b, number...)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}
