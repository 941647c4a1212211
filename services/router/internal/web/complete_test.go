package web

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	indexquery "github.com/trawl-search/trawl/index/query"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// defined is an answer with a file that defines names.
func defined(names ...string) *searchv1.SearchResponse {
	f := hit("host/pond", "a/fish.go", chunk("type Fish struct\n", "Fish", 7))
	for i, name := range names {
		f.Symbols = append(f.Symbols, &searchv1.Symbol{Name: name, Kind: searchv1.SymbolKind_SYMBOL_KIND_TYPE})
		f.Chunks[0].Ranges = append(f.Chunks[0].Ranges, &searchv1.Range{Symbol: uint32(i + 1), Definition: true})
	}
	return found(f)
}

var optionText = regexp.MustCompile(`data-text="([^"]*)"`)

// offersFor are the texts that are offered for the beginning of a query.
func offersFor(t *testing.T, h http.Handler, query string) (texts []string) {
	t.Helper()
	page := show(t, h, "/complete?"+url.Values{"q": {query}, "part": {"1"}}.Encode())
	for _, m := range optionText.FindAllStringSubmatch(page, -1) {
		texts = append(texts, html.UnescapeString(m[1]))
	}
	return texts
}

// TestCompletions: fields, repos, languages, values and identifiers complete the last term, and each offer can be searched for.
func TestCompletions(t *testing.T) {
	f := &fake{search: defined("FishPond", "fishy", "Other", "FishPond"), files: map[string]map[string]string{
		"host/lake": nil, "host/pond": nil, "pond/a+b": nil, "host/x/pondering": nil,
	}}
	h := f.serve(t, false)
	for query, want := range map[string][]string{
		"":                  nil,
		"re":                {"repo:", "ref:", "regex:"},
		"foo -l":            {"foo -lang:"},
		"(sy":               {"(sym:", "(sym.kind:"},
		"r:pond":            {"r:^host/pond$", `r:^host/x/pondering$`, `r:^pond/a\+b$`},
		"x repo:^host/l":    {"x repo:^host/lake$"},
		"r:none":            nil,
		"lang:g":            {"lang:Go", "lang:Groovy"},
		"lang:c":            {"lang:C", `lang:C++`},
		"select:":           {"select:repo", "select:dir", "select:file", "select:symbol"},
		"sym.kind:m":        {"sym.kind:method", "sym.kind:macro", "sym.kind:module"},
		"fi":                {"file:"},
		"fis":               {"FishPond", "fishy"},
		"x sym:fis":         {"x sym:^FishPond$", "x sym:^fishy$"},
		"sym:^Fis":          {"sym:^FishPond$", "sym:^fishy$"},
		"ref:fis":           {`ref:\bFishPond\b`, `ref:\bfishy\b`},
		"content:fis":       {"content:FishPond", "content:fishy"},
		`"r:po`:             nil,
		`"a b" fis`:         {`"a b" FishPond`, `"a b" fishy`},
		"f:fis":             {`f:^a/fish\.go$`},
		"x f:A":             {"x f:^a/"},
		"file:^a/fi":        {`file:^a/fish\.go$`},
		"f:nowhere":         nil,
		"f:(a|b)":           nil,
		`a\ fis`:            nil,
		"fis.*":             nil,
		"r:host/x/pond fis": {"r:host/x/pond FishPond", "r:host/x/pond fishy"},
	} {
		if got := offersFor(t, h, query); !slices.Equal(got, want) {
			t.Errorf("%q: offered %q, want %q", query, got, want)
		}
		for _, text := range want {
			if _, err := indexquery.Parse(strings.TrimLeft(text, "("), indexquery.ParseOptions{SyntaxVersion: 2}); err != nil && !strings.HasSuffix(text, ":") {
				t.Errorf("%q is offered for %q: %v", text, query, err)
			}
		}
	}
	if texts := offersFor(t, h, strings.Repeat("x ", completedBytes)+"re"); texts != nil {
		t.Errorf("a long query: %q", texts)
	}
	f.err = errors.New("away")
	f.search = nil
	if texts := append(offersFor(t, h, "r:"), offersFor(t, h, "fish")...); texts != nil {
		t.Errorf("without an answer: %q", texts)
	}
}

// TestCompletionsAreBounded: a search for identifiers looks where the query does, and takes the best files only.
func TestCompletionsAreBounded(t *testing.T) {
	f := &fake{search: defined("FishPond"), files: map[string]map[string]string{}}
	for i := range 100 {
		f.files["host/pond"+strings.Repeat("x", i)] = nil
	}
	h := f.serve(t, false)
	for query, want := range map[string]string{
		"r:pond -lang:C lang:go word fis": "sym:^fis r:pond lang:go",
		"f:a or f:b fis":                  "sym:^fis",
		"(f:a or f:b) sym:Fis":            "sym:^Fis",
		`r:pond -lang:C lang:go f:a\.g`:   `f:a\.g r:pond lang:go`,
	} {
		f.asked = nil
		offersFor(t, h, query)
		if len(f.asked) != 1 || f.asked[0].Query != want {
			t.Errorf("%q: asked for %v, want %q", query, f.asked, want)
			continue
		}
		if o := f.asked[0].Options; o.Mode != searchv1.Mode_MODE_TOP_K || o.MaxFiles != offerFiles && o.MaxFiles != offerPaths {
			t.Errorf("%q: asked with %v", query, o)
		}
	}
	if n := len(offersFor(t, h, "r:pond")); n != maxOffers {
		t.Errorf("%d repos are offered", n)
	}
}

// TestHostileCompletions: names that strangers chose are shown as text.
func TestHostileCompletions(t *testing.T) {
	f := &fake{search: defined(hostile...), files: map[string]map[string]string{}}
	for _, text := range hostile {
		f.files[text] = nil
	}
	h := f.serve(t, false)
	for _, query := range append([]string{"r:", "r:x", "alert", "xxx"}, hostile...) {
		show(t, h, "/complete?"+url.Values{"q": {query}}.Encode())
	}
}

// TestOfferedFields: every field of the language is offered under one of its names.
func TestOfferedFields(t *testing.T) {
	short := map[string]string{"r:": "repo:", "f:": "file:", "b:": "branch:", "c:": "content:", "t:": "type:", "l:": "lang:", "rev:": "", "near:": "", "meta.": ""}
	for _, prefix := range indexquery.Fields(syntaxVersion) {
		if long, ok := short[prefix]; ok {
			prefix = long
		}
		if prefix != "" && !slices.ContainsFunc(fieldNotes, func(f struct{ prefix, note string }) bool { return f.prefix == prefix }) {
			t.Errorf("%s is not offered", prefix)
		}
	}
	for _, f := range fieldNotes {
		if !slices.Contains(indexquery.Fields(syntaxVersion), f.prefix) {
			t.Errorf("%s is no field", f.prefix)
		}
	}
}

// TestHelpHasTheLanguage: the page of help has every field of the language that is no error, and the values that choose what is found.
func TestHelpHasTheLanguage(t *testing.T) {
	page := show(t, (&fake{}).serve(t, false), "/help")
	want := []string{`\b`, "match:any"}
	for _, prefix := range indexquery.Fields(syntaxVersion) {
		if prefix != "rev:" && prefix != "near:" {
			want = append(want, prefix)
		}
	}
	for _, value := range valuesOf["select:"] {
		want = append(want, "select:"+value)
	}
	for _, value := range slices.Concat(valuesOf["sym.kind:"], []string{"file", "repo", "symbol"}) {
		want = append(want, value+"</code>")
	}
	for _, text := range want {
		contains(t, page, "<code>"+text)
	}
}
