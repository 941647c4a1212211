package jsonapi

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// encoding is how all messages are written. Fields with their zero value are written too, so that a
// count of 0 or a false is not missing.
var encoding = protojson.MarshalOptions{EmitDefaultValues: true}

// noFiles is how encoding begins a message whose first field is an empty list of files.
const noFiles = `{"files":[]`

// encode writes a message as encoding does. Files are nearly all of an answer of megabytes: it writes them without
// reflection, in a tenth of the time. The caller must not use the message meanwhile.
func encode(m proto.Message) ([]byte, error) {
	var files *[]*searchv1.FileMatch
	switch m := m.(type) {
	case *searchv1.SearchResponse:
		files = &m.Files
	case *searchv1.StreamSearchResponse:
		files = &m.Files
	default:
		return encoding.Marshal(m)
	}
	shown := *files
	*files = nil
	account, err := encoding.Marshal(m)
	*files = shown
	if err != nil {
		return nil, err
	}
	if whole, ok := withFiles(account, shown); ok {
		return whole, nil
	}
	return encoding.Marshal(m) // whose error says what is wrong
}

// withFiles puts files into the JSON of a message that has none. It is false if a file has something that JSON has not.
func withFiles(account []byte, files []*searchv1.FileMatch) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(account, []byte(noFiles))
	if !ok {
		return nil, false
	}
	w := &writer{text: make([]byte, 0, len(account)+sizeOf(files)), valid: true}
	list(w, `{"files":`, files, w.file)
	w.text = append(w.text, rest...)
	return w.text, w.valid
}

// sizeOf is about the size of files in JSON.
func sizeOf(files []*searchv1.FileMatch) (size int) {
	for _, f := range files {
		size += 512
		for _, c := range f.Chunks {
			size += 256 + base64.StdEncoding.EncodedLen(len(c.Content)) + len(c.Text) + 192*len(c.Ranges)
		}
	}
	return size
}

// writer appends JSON to text. Each method but raw appends a key, with what precedes it, and a value.
type writer struct {
	text []byte
	// valid is unset by a string that is not UTF-8, and by a number that is none.
	valid bool
}

func (w *writer) file(f *searchv1.FileMatch) {
	w.string(`{"repo":`, f.Repo)
	w.bytes(`,"path":`, f.Path)
	w.strings(`,"branches":`, f.Branches)
	w.string(`,"language":`, f.Language)
	w.string(`,"commit":`, f.Commit)
	w.bytes(`,"blob":`, f.Blob)
	w.number(`,"score":`, f.Score, 64)
	w.uint64(`,"matchCount":`, f.MatchCount)
	list(w, `,"chunks":`, f.Chunks, w.chunk)
	w.string(`,"explanation":`, f.Explanation)
	w.enum(`,"skipReason":`, int32(f.SkipReason), searchv1.SkipReason_name)
	w.bool(`,"cut":`, f.Cut)
	w.bool(`,"continued":`, f.Continued)
	list(w, `,"symbols":`, f.Symbols, w.symbol)
	w.strings(`,"missingWords":`, f.MissingWords)
	w.string(`,"pathText":`, f.PathText)
	w.raw(`}`)
}

func (w *writer) chunk(c *searchv1.ChunkMatch) {
	w.bytes(`{"content":`, c.Content)
	w.location(`,"contentStart":`, c.ContentStart)
	list(w, `,"ranges":`, c.Ranges, w.textRange)
	w.bool(`,"fileName":`, c.FileName)
	w.bool(`,"continued":`, c.Continued)
	w.uint32(`,"cutBefore":`, c.CutBefore)
	w.uint32(`,"cutAfter":`, c.CutAfter)
	w.uint32(`,"cutRanges":`, c.CutRanges)
	w.string(`,"text":`, c.Text)
	w.raw(`}`)
}

func (w *writer) textRange(r *searchv1.Range) {
	w.raw(`{`)
	if r.Start != nil {
		w.location(`"start":`, r.Start)
		w.raw(`,`)
	}
	if r.End != nil {
		w.location(`"end":`, r.End)
		w.raw(`,`)
	}
	w.uint32(`"symbol":`, r.Symbol)
	w.bool(`,"definition":`, r.Definition)
	if r.LineScore != nil {
		w.number(`,"lineScore":`, float64(*r.LineScore), 32)
	}
	w.raw(`}`)
}

// location appends nothing for nil.
func (w *writer) location(key string, l *searchv1.Location) {
	if l == nil {
		return
	}
	w.raw(key)
	w.uint32(`{"byteOffset":`, l.ByteOffset)
	w.uint32(`,"lineNumber":`, l.LineNumber)
	w.uint32(`,"column":`, l.Column)
	w.raw(`}`)
}

func (w *writer) symbol(s *searchv1.Symbol) {
	w.string(`{"name":`, s.Name)
	w.enum(`,"kind":`, int32(s.Kind), searchv1.SymbolKind_name)
	w.string(`,"scope":`, s.Scope)
	w.raw(`}`)
}

func list[T any](w *writer, key string, items []T, item func(T)) {
	w.raw(key)
	w.raw(`[`)
	for i, it := range items {
		if i > 0 {
			w.raw(`,`)
		}
		item(it)
	}
	w.raw(`]`)
}

func (w *writer) raw(text string) { w.text = append(w.text, text...) }

func (w *writer) strings(key string, items []string) {
	list(w, key, items, func(s string) { w.string("", s) })
}

func (w *writer) string(key, value string) {
	w.raw(key)
	w.valid = w.valid && utf8.ValidString(value)
	w.raw(`"`)
	done := 0
	for i := range len(value) {
		if c := value[i]; c < ' ' || c == '"' || c == '\\' {
			const hex = "0123456789abcdef"
			w.raw(value[done:i])
			w.text = append(w.text, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			done = i + 1
		}
	}
	w.raw(value[done:])
	w.raw(`"`)
}

func (w *writer) bytes(key string, value []byte) {
	w.raw(key)
	w.raw(`"`)
	w.text = base64.StdEncoding.AppendEncode(w.text, value)
	w.raw(`"`)
}

func (w *writer) bool(key string, value bool) {
	w.raw(key)
	w.text = strconv.AppendBool(w.text, value)
}

func (w *writer) uint32(key string, value uint32) {
	w.raw(key)
	w.text = strconv.AppendUint(w.text, uint64(value), 10)
}

// uint64 appends a string: many readers of JSON have no integers of 64 bits.
func (w *writer) uint64(key string, value uint64) {
	w.raw(key)
	w.raw(`"`)
	w.text = strconv.AppendUint(w.text, value, 10)
	w.raw(`"`)
}

// number appends a number that has that many bits.
func (w *writer) number(key string, value float64, bits int) {
	w.raw(key)
	w.valid = w.valid && !math.IsNaN(value) && !math.IsInf(value, 0)
	w.text = strconv.AppendFloat(w.text, value, 'g', -1, bits)
}

// enum appends a name, or the number of a value without one.
func (w *writer) enum(key string, value int32, names map[int32]string) {
	if name, ok := names[value]; ok {
		w.string(key, name)
		return
	}
	w.raw(key)
	w.text = strconv.AppendInt(w.text, int64(value), 10)
}
