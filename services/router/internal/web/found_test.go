package web

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// matched is an answer with the ranges of a text in a file.
func matched(path, text, word string) *searchv1.SearchResponse {
	f := hit("host/pond", path)
	f.Blob = []byte(path)
	c := &searchv1.ChunkMatch{Content: []byte(text), ContentStart: &searchv1.Location{LineNumber: 1, Column: 1}}
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			break
		}
		start := at + i
		c.Ranges = append(c.Ranges, &searchv1.Range{
			Start: &searchv1.Location{ByteOffset: uint32(start), LineNumber: uint32(strings.Count(text[:start], "\n") + 1)},
			End:   &searchv1.Location{ByteOffset: uint32(start + len(word))},
		})
		at = start + len(word)
	}
	f.Chunks, f.MatchCount = []*searchv1.ChunkMatch{c}, uint64(len(c.Ranges))
	return found(f)
}

// TestMatchesInAFile: a file that a search led to has the matches of the query marked and counted, and leads to those in its other parts and
// back to the results.
func TestMatchesInAFile(t *testing.T) {
	const query = "line 2"
	text := lines(5000)
	f := pond()
	f.language = "" // no colours
	f.files["host/pond"]["long.txt"] = text
	f.search = matched("long.txt", text, "line 29")
	asked := "?" + url.Values{"q": {query}}.Encode()
	page := show(t, f.serve(t, false), "/r/host/pond/-/long.txt"+asked)
	contains(t, page, "<mark>line 29</mark>", "<mark>line 29</mark>0", "111 matches of <code>line 2</code>", `value="line 2"`, `href="/?q=line+2"`,
		`href="/r/host/pond/-/long.txt?from=2800&q=line+2#L2900" data-match="1"`, `href="/r/host/pond/-/long.txt?from=2001&q=line+2" data-part="1"`)
	if n := strings.Count(page, "<mark>"); n != 11 || strings.Contains(page, "Earlier match") {
		t.Errorf("%d marks in the first part", n)
	}
	if got := f.asked[len(f.asked)-1]; got.Query != `(line 2 ) r:^host/pond$ b:HEAD f:^long\.txt$` {
		t.Errorf("asked for %s", got.Query)
	}
	page = show(t, f.serve(t, false), "/r/host/pond/-/long.txt?from=2901&q=line+2")
	contains(t, page, "<mark>line 29</mark>01", `#L2900" data-match="-1"`)
	if n := strings.Count(page, "<mark>"); n != 99 || strings.Contains(page, "Later match") {
		t.Errorf("%d marks in a later part", n)
	}
	f.search.Files[0].Blob = []byte("another")
	if page = show(t, f.serve(t, false), "/r/host/pond/-/long.txt"+asked); strings.Contains(page, "<mark>") {
		t.Error("matches of another version of the file are marked")
	}
	f.search = nil
	for _, query := range []string{"(", "line )", "line ) or ( 2"} {
		contains(t, textOf(show(t, f.serve(t, false), "/r/host/pond/-/long.txt?q="+url.QueryEscape(query))), "The matches of "+query+" are not marked:", "line 1\n")
	}
}

// TestMoreMatches: the matches of a file that a page of results does not show are a link away.
func TestMoreMatches(t *testing.T) {
	f := pond()
	text := strings.Repeat("a fish\n", 300)
	f.search = matched("a/fish.go", text, "fish")
	page := show(t, f.serve(t, false), "/?q=fish+or+b")
	more := "/?" + url.Values{"q": {`(fish or b ) r:^host/pond$ f:^a/fish\.go$`}}.Encode() + "&whole=1"
	contains(t, page, "282 more matches", `href="`+more+`" data-more`)
	page = show(t, f.serve(t, false), more)
	if got := f.asked[len(f.asked)-1].Options; got.MaxFiles != 1 || got.MaxMatchesPerFile != wholeLines {
		t.Errorf("asked with %v", got)
	}
	if n := strings.Count(page, "fish</mark>"); n != 300 || strings.Contains(page, "more match") {
		t.Errorf("%d of 300 matches", n)
	}
}

// TestMissingWords: a result says which words of match:any its file lacks.
func TestMissingWords(t *testing.T) {
	f := pond()
	f.search = matched("a/fish.go", "a fish\n", "fish")
	contains(t, show(t, f.serve(t, false), "/?q=match:any+fish+whale"), "@0123456789ab</span>")
	f.search.Files[0].MissingWords = []string{"whale", "<b>", strings.Repeat("x", 1000)}
	page := show(t, f.serve(t, false), "/?q=match:any+fish+whale")
	contains(t, page, " · without <bdi>whale &lt;b&gt; xxx")
	if strings.Contains(page, strings.Repeat("x", nameBytes)) {
		t.Error("the words are not cut")
	}
}

// TestMatchesByKeyboard opens more matches in their place, goes on to the file, and through its matches.
func TestMatchesByKeyboard(t *testing.T) {
	f := pond()
	text := strings.Repeat("a fish\n", 5000)
	f.files["host/pond"]["a/fish.go"] = text
	f.search = matched("a/fish.go", text[:7*100], "fish")
	f.search.Files[0].MatchCount = 100
	server := httptest.NewServer(f.serve(t, false))
	defer server.Close()
	b := openBrowser(t)
	b.open(server.URL + "/?q=fish")
	b.until(`document.querySelectorAll(".hit").length === 18`)
	b.eval(`document.querySelector("[data-more]").click()`)
	b.until(`document.querySelectorAll(".hit").length === 100 && location.search === "?q=fish"`)
	b.eval(`document.querySelectorAll(".hit .n")[4].click()`)
	b.until(`location.hash === "#L5" && document.querySelector(".chosen")?.id === "L5"`)
	const current = `document.querySelector("mark.current").closest(".l").id`
	for _, step := range []struct{ key, line string }{{"n", "L5"}, {"n", "L6"}, {"p", "L5"}, {"p", "L4"}} {
		b.press(step.key)
		b.until(current + ` === "` + step.line + `"`)
	}
	b.eval(`location.assign("/r/host/pond/-/a/fish.go?q=fish#L4000")`)
	b.until(`location.search.includes("from=3900") && document.querySelector(".chosen")?.id === "L4000"`)
	b.eval(`location.assign("/r/host/pond/-/a/fish.go?q=fish#L9000000")`) // it has no such line
	b.until(`location.search.includes("from=8999900") && document.readyState === "complete"`)
}

// TestListsBesideAFile: the folder and the definitions of a long file are beside it, and above it on a small screen.
func TestListsBesideAFile(t *testing.T) {
	f := pond()
	f.files["host/pond"]["a/fish.go"] = "package fish\n" + strings.Repeat("\nfunc Fish() {\n}\n", 300)
	server := httptest.NewServer(f.serve(t, false))
	defer server.Close()
	b := openBrowser(t)
	for width, where := range map[int]string{
		1480: `tree.right < main.left && names.left > main.right && names.top < 200`,
		1280: `tree.left > main.right && names.left > main.right && tree.top < 200 && names.top < 700`,
		390:  `tree.bottom < code.top && names.bottom < code.top`,
	} {
		b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false}, nil)
		b.open(server.URL + "/r/host/pond/-/a/fish.go")
		b.until(`document.querySelectorAll(".names li").length > 100`)
		b.until(`(() => { const at = (name) => document.querySelector(name).getBoundingClientRect();
			const tree = at(".tree"), names = at(".names"), main = at("main"), code = at("pre.code"); return ` + where + ` })()`)
	}
}
