package zoekt

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// drawShown draws a file as it is shown, with the largest numbers there are.
func drawShown(t *rapid.T) fileMatch {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"plain", "<&>\"\\\n", "\xff\xfe", "\u2028 é 漢"}))
	f := fileMatch{
		FileName: text.Draw(t, "name"), Repository: text.Draw(t, "repo"), Version: text.Draw(t, "version"), Language: text.Draw(t, "language"),
		Debug: text.Draw(t, "debug"), Branches: rapid.SliceOfN(text, 0, 3).Draw(t, "branches"), Checksum: make([]byte, 32), Score: -math.MaxFloat64,
		RepositoryID: math.MaxUint32, TrawlPath: make([]byte, rapid.IntRange(0, 9).Draw(t, "path")),
	}
	place := location{math.MaxUint32, math.MaxUint32, math.MaxUint32}
	for range rapid.IntRange(0, 4).Draw(t, "matches") {
		content, n := make([]byte, rapid.IntRange(0, 99).Draw(t, "bytes")), rapid.IntRange(0, 30).Draw(t, "ranges")
		if rapid.Bool().Draw(t, "chunk") {
			c := chunkMatch{Content: content, ContentStart: place, Score: -math.MaxFloat64, BestLineMatch: math.MaxUint32}
			symbols := rapid.Bool().Draw(t, "symbols")
			for range n {
				c.Ranges = append(c.Ranges, textRange{place, place})
				if symbols {
					c.SymbolInfo = append(c.SymbolInfo, drawSymbol(t))
				}
			}
			f.ChunkMatches = append(f.ChunkMatches, c)
			continue
		}
		l := lineMatch{Line: content, Before: content, After: content, LineStart: math.MaxInt, LineEnd: math.MaxInt, LineNumber: math.MaxInt}
		for range n {
			l.LineFragments = append(l.LineFragments, lineFragment{math.MaxInt, math.MaxUint32, math.MaxInt, drawSymbol(t)})
		}
		f.LineMatches = append(f.LineMatches, l)
	}
	return f
}

// drawSymbol draws a symbol or none.
func drawSymbol(t *rapid.T) *symbolInfo {
	if rapid.Bool().Draw(t, "no symbol") {
		return nil
	}
	text := rapid.SampledFrom([]string{"", "name", "<\xff\u2028>"})
	return &symbolInfo{text.Draw(t, "sym"), text.Draw(t, "kind"), text.Draw(t, "parent"), ""}
}

// TestRoomIsEnough: the JSON of a file never exceeds the room that was taken for it. A file without
// enough room is cut to it, or refused.
func TestRoomIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawShown(t)
		r := &room{left: rapid.SampledFrom([]int64{0, 600, 1500, 5000, 1 << 30}).Draw(t, "room")}
		before, first := r.left, rapid.Bool().Draw(t, "first")
		if !r.take(&f, first) {
			if r.left != before || first && bareSize(&f) <= before {
				t.Fatalf("refused with %d bytes left of %d", r.left, before)
			}
			return
		}
		raw, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.ChunkMatches {
			if c.SymbolInfo != nil && len(c.SymbolInfo) != len(c.Ranges) {
				t.Fatalf("%d symbols of %d ranges", len(c.SymbolInfo), len(c.Ranges))
			}
		}
		if taken := before - r.left; int64(len(raw))+1 > before || !r.matches && int64(len(raw))+1 > taken {
			t.Fatalf("%d bytes, room of %d was taken of %d", len(raw), taken, before)
		}
	})
}

// answerOf is the body of an answer.
func answerOf(t *testing.T, h http.Handler, body string) (raw []byte, answer map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/x", strings.NewReader(body)))
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: status %d, %v", body, w.Code, err)
	}
	return w.Body.Bytes(), answer
}

// TestAnswersHaveRoom: no answer is larger than the limit, and what is left out is counted.
func TestAnswersHaveRoom(t *testing.T) {
	var files []*searchv1.FileMatch
	for i := range 200 {
		files = append(files, file("r", fmt.Sprint("path", i), strings.Repeat("x\n", 100)))
	}
	one := file("r", "one", strings.Repeat("x\n", 30_000))
	for _, opts := range []string{`{}`, `{"ChunkMatches":true}`, `{"Whole":true}`, `{"ChunkMatches":true,"Whole":true}`} {
		f := found(files...)
		f.files = make(map[string]string)
		for _, m := range files {
			f.files[string(m.Path)] = strings.Repeat("x\n", 5000)
		}
		raw, answer := answerOf(t, f.handler().Search(), `{"Q":"x","Opts":`+opts+`}`)
		result := answer["Result"].(map[string]any)
		shown, left := len(result["Files"].([]any)), result["Trawl"].(map[string]any)["FilesLeftOut"].(float64)
		if uint64(len(raw)) > testLimits.Bytes || shown < 20 || shown+int(left) != 200 || result["FlushReason"] != 4.0 {
			t.Errorf("%s: %d files in %d bytes, %v left out", opts, shown, len(raw), left)
		}
		raw, answer = answerOf(t, found(one).handler().Search(), `{"Q":"x","Opts":`+opts+`}`)
		result = answer["Result"].(map[string]any)
		if uint64(len(raw)) > testLimits.Bytes || len(raw) < int(testLimits.Bytes)/2 || !strings.Contains(tell(result), "clamped [MaxMatchDisplayCount]") {
			t.Errorf("%s: one file in %d bytes: %.100s", opts, len(raw), tell(result))
		}
	}
}

// TestListsHaveRoom: repos beyond the limit are counted, and not shown.
func TestListsHaveRoom(t *testing.T) {
	f := &fake{list: &searchv1.ListResponse{Coverage: &searchv1.Coverage{Complete: true}}}
	for i := range 5000 {
		f.list.Repos = append(f.list.Repos, &searchv1.RepoEntry{Name: fmt.Sprint("host/repo", i), Id: uint32(i + 1), Documents: 1})
	}
	for _, body := range []string{`{}`, `{"Opts":{"Field":2}}`} {
		raw, answer := answerOf(t, f.handler().List(), body)
		list := answer["List"].(map[string]any)
		shown := max(len(asList(list["Repos"])), len(asMap(list["ReposMap"])))
		left := list["Trawl"].(map[string]any)["ReposLeftOut"].(float64)
		if uint64(len(raw)) > testLimits.Bytes || shown == 0 || shown+int(left) != 5000 || list["Stats"].(map[string]any)["Repos"] != 5000.0 {
			t.Errorf("%s: %d repos in %d bytes, %v left out", body, shown, len(raw), left)
		}
	}
}

func asList(v any) []any { l, _ := v.([]any); return l }

func asMap(v any) map[string]any { m, _ := v.(map[string]any); return m }
