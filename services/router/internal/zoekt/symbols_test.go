package zoekt

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// TestSymbolInfo: a match in the name of a definition has its name, kind and scope, in both forms and encodings; others have none.
func TestSymbolInfo(t *testing.T) {
	const (
		info   = `{"Sym":"Swim","Kind":"method","Parent":"Fish","ParentKind":""}`
		chunks = `[null,` + info + `,null]`
		lines  = `[null ` + info + ` null]`
	)
	swims := func() *fake {
		f := file("r", "fish.go", "a\nSwim\nb\n")
		f.Symbols = []*searchv1.Symbol{{Name: "Swim", Kind: searchv1.SymbolKind_SYMBOL_KIND_METHOD, Scope: "Fish"}}
		ranges := f.Chunks[0].Ranges
		ranges[1].Symbol, ranges[1].Definition = 1, true
		ranges[2].Symbol = 1 // in its body
		return found(f)
	}
	asJSON := func(v any) string {
		t.Helper()
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	symbolOf := func(m any) string {
		t.Helper()
		if m == nil {
			return "null"
		}
		s := m.(map[string]any)
		return asJSON(symbolInfo{s["Sym"].(string), s["Kind"].(string), s["Parent"].(string), s["ParentKind"].(string)})
	}
	got := "["
	for i, l := range swims().result(t, `{"Q": "sym:s"}`)["Files"].([]any)[0].(map[string]any)["LineMatches"].([]any) {
		if i > 0 {
			got += " "
		}
		got += symbolOf(l.(map[string]any)["LineFragments"].([]any)[0].(map[string]any)["SymbolInfo"])
	}
	if got += "]"; got != lines {
		t.Errorf("lines: %s, want %s", got, lines)
	}
	chunk := swims().result(t, `{"Q": "sym:s", "Opts": {"ChunkMatches": true, "NumContextLines": 1}}`)["Files"].([]any)[0].(map[string]any)["ChunkMatches"].([]any)[0].(map[string]any)
	got = "["
	for i, s := range chunk["SymbolInfo"].([]any) {
		if i > 0 {
			got += ","
		}
		got += symbolOf(s)
	}
	if got += "]"; got != chunks {
		t.Errorf("a chunk: %s, want %s", got, chunks)
	}
	plain := found(file("r", "a", "x\n")).result(t, `{"Q": "x", "Opts": {"ChunkMatches": true}}`)["Files"].([]any)[0].(map[string]any)
	if s, ok := plain["ChunkMatches"].([]any)[0].(map[string]any)["SymbolInfo"]; !ok || s != nil {
		t.Errorf("without symbols: %v", s)
	}

	resp, _ := swims().searchAs(t, &webserverv1.SearchOptions{ChunkMatches: true, NumContextLines: 1})
	if s := resp.Files[0].ChunkMatches[0].SymbolInfo; len(s) != 3 || s[0].Sym+s[2].Sym != "" || s[1].Sym != "Swim" || s[1].Kind != "method" || s[1].Parent != "Fish" {
		t.Errorf("a chunk over gRPC: %v", s)
	}
	resp, _ = swims().searchAs(t, nil)
	if l := resp.Files[0].LineMatches; l[0].LineFragments[0].SymbolInfo != nil || l[2].LineFragments[0].SymbolInfo != nil ||
		protojson.Format(l[1].LineFragments[0].SymbolInfo) == "{}" || l[1].LineFragments[0].SymbolInfo.GetParent() != "Fish" {
		t.Errorf("lines over gRPC: %v", l)
	}
}
