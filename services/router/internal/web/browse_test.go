package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// pond is a repo with some files.
func pond() *fake {
	return &fake{language: "Go", files: map[string]map[string]string{"host/pond": {
		"go.mod": "module pond\n", "a/fish.go": "package a\n\n// Fish swims.\ntype Fish struct{}\n\nfunc (f Fish) Swim() {}\n", "a/b/c/deep.go": "package c", "dev.txt": "",
		"long.txt": lines(5000), "wide.txt": strings.Repeat("x", 2<<20) + "\nend\n", "strange\xffname": "x", "huge.txt": strings.Repeat(strings.Repeat("y", 99)+"\n", 50_000),
	}}}
}

// TestFilePage: a file is shown with numbers, colours, what it defines, its folder, and its
// permanent address.
func TestFilePage(t *testing.T) {
	page := show(t, pond().serve(t, false), "/r/host/pond/-/a/fish.go")
	contains(
		t, page, `<span class="l" id="L4"><a class="n" href="#L4" aria-label="Line 4">4</a><span class="k">type</span>`, `<span class="kind">type</span> <bdi>Fish</bdi>`,
		`href="#L6"><span class="kind">method</span> <bdi>Swim</bdi>`, `href="/r/host/pond@`+testCommit+`/-/a/fish.go" data-permalink>0123456789ab</a>`,
		`<a class="folder" href="/r/host/pond/-/a/b/"`, `aria-current="page"><bdi>fish.go</bdi>`, `href="https://host/pond"`, `data-copy="a/fish.go"`, "6 lines", "70 B",
	)
	for _, rev := range []string{"@main", "@HEAD", "@" + testCommit, "@0123456"} {
		contains(t, show(t, pond().serve(t, false), "/r/host/pond"+rev+"/-/a/fish.go"), "type</span>")
	}
	for target, want := range map[string]string{
		"/r/host/pond/-/none":       "There is no file none on branch main.",
		"/r/host/pond@main/-/none":  "There is no file none on branch main.",
		"/r/host/lake":              "There is no repo host/lake, or you may not see it.",
		"/r/host/new":               `"host/new" is registered.`,
		"/r/host/pond@gone/-/x":     "Revision gone is not indexed, or no longer. Indexed are: main at 0123456789ab, dev at dddddddddddd.",
		"/r/host/pond@012345/-/x":   "Revision 012345 is not indexed",
		"/r/host/pond/-/no/folder/": "There is no folder no/folder/ at this revision.",
	} {
		w := visit(t, pond().serve(t, false), target)
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", target, w.Code)
		}
		contains(t, textOf(w.Body.String()), want)
	}
}

// TestTitles: the title of a page names what it shows, which at the root is the repo alone.
func TestTitles(t *testing.T) {
	for target, want := range map[string]string{"": "host/pond", "@dev": "host/pond", "/-/a/": "a/ · host/pond", "/-/a/fish.go": "fish.go · host/pond"} {
		contains(t, show(t, pond().serve(t, false), "/r/host/pond"+target), "<title>"+want+"</title>")
	}
}

// numbers are the first and last numbers of the lines of a page.
func numbers(page string) (first, last string) {
	all := regexp.MustCompile(`<span class="l" id="L(\d+)"`).FindAllStringSubmatch(page, -1)
	if len(all) == 0 {
		return "", ""
	}
	return all[0][1], all[len(all)-1][1]
}

// TestLongFiles: a page shows a part of a long file, and leads to the others. A line that is
// too long is cut, and what is left out is counted.
func TestLongFiles(t *testing.T) {
	h := pond().serve(t, false)
	for target, want := range map[string]struct{ first, last, text string }{
		"long.txt":            {"1", "2000", `href="/r/host/pond/-/long.txt?from=2001"`},
		"long.txt?from=2001":  {"2001", "4000", `id="L2001"`},
		"long.txt?from=4990":  {"4990", "5000", `href="/r/host/pond/-/long.txt?from=2990"`},
		"long.txt?from=x":     {"1", "2000", "Lines 1 to 2,000 are shown."},
		"long.txt?from=9999":  {"", "", "The file has no line 9,999."},
		"dev.txt":             {"", "", "The file is empty."},
		"wide.txt":            {"1", "1", "… 1,046,576 bytes …"},
		"huge.txt?from=49990": {"49990", "50000", "yyy"},
	} {
		page := show(t, h, "/r/host/pond/-/"+target)
		first, last := numbers(page)
		if first != want.first || last != want.last || !strings.Contains(page, want.text) {
			t.Errorf("%s: lines %s to %s, and %q: %v", target, first, last, want.text, strings.Contains(page, want.text))
		}
	}
	if got := (place{"r", "", "p"}).line(3000); got != "/r/r/-/p?from=2900#L3000" {
		t.Errorf("line 3000 is at %s", got)
	}
	strange := pond()
	strange.files["host/pond"]["strange.txt"] = strings.Repeat(strings.Repeat("\x00", 500)+"\n", 2000)
	if page := show(t, strange.serve(t, false), "/r/host/pond/-/strange.txt"); len(page) > fileHTML+100_000 {
		t.Errorf("a file of a million strange characters: %d bytes", len(page))
	}
}

// TestFolderPage: folders are those that files are in, and any name leads to its file.
func TestFolderPage(t *testing.T) {
	h := pond().serve(t, false)
	page := show(t, h, "/r/host/pond")
	contains(t, page, `class="folder" href="/r/host/pond/-/a/"`, `href="/r/host/pond/-/go.mod"`, `href="/r/host/pond/-/strange%FFname"`, `strange<i class="x">\xff</i>name`, "8 files on this branch · 8 files on 2 branches")
	contains(t, show(t, pond().serve(t, false), "/r/host/pond@dev"), "1 file on this branch · 8 files on 2 branches")
	contains(t, show(t, h, "/r/host/pond/-/strange%FFname"), "1 line")
	inside := show(t, h, "/r/host/pond@main/-/a/")
	contains(t, inside, `href="/r/host/pond@main/-/a/b/"`, `href="/r/host/pond@main/-/a/fish.go"`, `href="/r/host/pond@main" data-item aria-label="The folder above"`)
	if strings.Contains(inside, "go.mod") || strings.Contains(inside, "deep.go") {
		t.Error("a folder lists what is not in it")
	}
	contains(t, show(t, h, "/r/host/pond/-/a/b/"), `href="/r/host/pond/-/a/b/c/"`)
	dev := show(t, h, "/r/host/pond@dev")
	if contains(t, dev, "dev.txt"); strings.Contains(dev, "go.mod") {
		t.Error("a branch lists what is not on it")
	}
	found := show(t, h, "/r/host/pond/-/?find=AFGO")
	if contains(t, found, `href="/r/host/pond/-/a/fish.go"`); strings.Contains(found, "go.mod") {
		t.Error("the path finder finds paths without the letters")
	}
	contains(t, textOf(show(t, h, "/r/host/pond/-/?find=nothing")), "No path has these letters")
	wide := &fake{files: map[string]map[string]string{"host/wide": {}}}
	for i := range 3000 {
		wide.files["host/wide"]["d"+lines(1)[:4]+strings.Repeat("x", i%300)+"/f"] = ""
	}
	for i := range 1500 {
		wide.files["host/wide"][fmt.Sprint("file", i)] = ""
	}
	all := show(t, wide.serve(t, false), "/r/host/wide")
	contains(t, all, "There are more files or folders.")
	if folders, files := strings.Count(all, `class="folder" href="/r/host/wide/-/d`), strings.Count(all, `href="/r/host/wide/-/file`); folders != 300 || files != maxEntries {
		t.Errorf("%d folders and %d files", folders, files)
	}
}

// TestRepoWithoutFiles: a commit without files, with which many repos begin, is a repo that exists.
func TestRepoWithoutFiles(t *testing.T) {
	h := (&fake{files: map[string]map[string]string{"host/bare": {}}}).serve(t, false)
	for _, at := range []string{"/r/host/bare", "/r/host/bare@main", "/r/host/bare@" + testCommit[:12]} {
		contains(t, textOf(show(t, h, at)), "host/bare", "0 files")
	}
	if code := visit(t, h, "/r/host/bar").Code; code != http.StatusNotFound {
		t.Errorf("a repo that does not exist has status %d", code)
	}
}

// TestNearestOfMissing: the page of what does not exist links to what comes nearest, and to the branch that has the file.
func TestNearestOfMissing(t *testing.T) {
	f := pond()
	f.files["host/pond"]["dev only"] = "x"
	h := f.serve(t, false)
	for target, want := range map[string]string{
		"/r/host/pnod":                    `<a href="/r/host/pond"><bdi>host/pond</bdi></a>`,
		"/r/host/pond@mian/-/go.mod":      `<a href="/r/host/pond@main/-/go.mod"><bdi>main</bdi></a>`,
		"/r/host/pond/-/a/fihs.go":        `<a href="/r/host/pond/-/a/fish.go"><bdi>a/fish.go</bdi></a>`,
		"/r/host/pond@main/-/dev%20only":  `branch main, but on branch dev.</p>`,
		"/r/host/pond@main/-/dev%20only?": `<a href="/r/host/pond@dev/-/dev%20only"><bdi>dev only on dev</bdi></a>`,
		"/r/host/pond@main/-/a/fish.go/":  `<a href="/r/host/pond@main/-/a/fish.go"><bdi>a/fish.go</bdi></a>`,
	} {
		w := visit(t, h, target)
		if harmless(t, target, w.Body.String()); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", target, w.Code)
		}
		contains(t, w.Body.String(), want)
	}
}

// TestEveryPageIsProtected: each answer has the headers that keep other sites out, and a page
// of another site may link here and do nothing else.
func TestEveryPageIsProtected(t *testing.T) {
	f := pond()
	h := f.serve(t, true)
	for _, target := range []string{"/", "/?q=x", "/?q=(", "/repos", "/help", "/r/host/pond", "/r/none", "/r/", "/login", assets()["page.js"].url} {
		w := visit(t, h, target)
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q", target, name, got)
			}
		}
		if got := w.Header().Get("Referrer-Policy"); got != "no-referrer" && target != "/login" {
			t.Errorf("%s: the referrer policy is %s", target, got)
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: other sites are let in by %s", target, name)
			}
		}
	}
	for _, c := range []struct {
		site, mode, dest string
		want             int
	}{
		{"cross-site", "navigate", "document", http.StatusOK},
		{"cross-site", "no-cors", "image", http.StatusForbidden},
		{"cross-site", "navigate", "iframe", http.StatusForbidden},
		{"same-site", "cors", "empty", http.StatusForbidden},
		{"same-origin", "cors", "empty", http.StatusOK},
		{"none", "navigate", "document", http.StatusOK},
		{"", "", "", http.StatusOK},
	} {
		if w := visit(t, h, "/help", "Sec-Fetch-Site", c.site, "Sec-Fetch-Mode", c.mode, "Sec-Fetch-Dest", c.dest); w.Code != c.want {
			t.Errorf("%+v: status %d", c, w.Code)
		}
	}
	if w := visit(t, h, assets()["style.css"].url); w.Header().Get("Cache-Control") != assetAge || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/css") {
		t.Errorf("the style has the headers %v", w.Header())
	}
}

// post sends a form.
func post(t *testing.T, h http.Handler, target string, form url.Values, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestLogin: a good token becomes a cookie, and leads on within this host only. Forms of other
// sites do nothing.
func TestLogin(t *testing.T) {
	h := pond().serve(t, true)
	harmless(t, "/login", visit(t, h, `/login?next=/"><script>`).Body.String())
	w := post(t, h, "/login", url.Values{"token": {" good\n"}, "next": {"/?q=fish"}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/?q=fish" || !strings.HasPrefix(w.Header().Get("Set-Cookie"), "trawl-token=good; ") {
		t.Errorf("a good token: %d %v", w.Code, w.Header())
	}
	w = post(t, h, "/login", url.Values{"token": {"bad"}})
	if w.Code != http.StatusForbidden || w.Header().Get("Set-Cookie") != "" || strings.Contains(w.Body.String(), "bad") {
		t.Errorf("a bad token: %d %v %s", w.Code, w.Header(), w.Body)
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "same-site"}} {
		if w := post(t, h, "/login", url.Values{"token": {"good"}}, header...); w.Code != http.StatusForbidden || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("a form with %v: %d", header, w.Code)
		}
		if w := post(t, h, "/logout", nil, header...); w.Code != http.StatusForbidden || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("signing out with %v: %d", header, w.Code)
		}
	}
	if w := post(t, h, "/login", url.Values{"token": {strings.Repeat("x", maxForm)}}); w.Code != http.StatusBadRequest {
		t.Errorf("a large form: %d", w.Code)
	}
	if w := post(t, h, "/logout", nil); !strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("signing out: %v", w.Header())
	}
	forward := visit(t, h, "/login?next=/repos", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document").Body.String()
	contains(t, forward, `<meta http-equiv="refresh" content="0;url=/repos">`)
	for next, want := range map[string]string{
		"/r/a?b=c": "/r/a?b=c", "": "/", "//evil.example": "/", `/\evil.example`: "/", "https://evil.example/": "/", "evil": "/", "/\n/evil": "/", "javascript:x": "/", "/\t/evil.example": "/",
	} {
		if got := ownPath(next); got != want {
			t.Errorf("%q leads to %q", next, got)
		}
	}
	if w := visit(t, pond().serve(t, false), "/login"); w.Code != http.StatusNotFound {
		t.Errorf("a server that asks nobody has a login: %d", w.Code)
	}
}

// TestColoursAreBounded: any text gets its colours at the right places, and a page waits for them
// for a bounded time.
func TestColoursAreBounded(t *testing.T) {
	c := newColourist()
	defer c.close()
	text := []byte("package a // \xff\xfe ü\r\nvar s = \"x\xff\"\n")
	for _, s := range c.spans(t.Context(), "Go", text, time.Minute) {
		switch got := string(text[s.start:s.end]); s.class {
		case "s":
			if got != "\"x\xff\"" {
				t.Errorf("a string: %q", got)
			}
		case "c":
			if !strings.HasPrefix(got, "//") {
				t.Errorf("a comment: %q", got)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if spans := c.spans(ended, "Go", bytes.Repeat(text, 1000), time.Minute); len(spans) > 1 {
		t.Errorf("%d spans after the end", len(spans))
	}
	for name, got := range map[string][]span{
		"a language that nobody knows": c.spans(t.Context(), "no language", text, time.Minute), "no language": c.spans(t.Context(), "", text, time.Minute),
		"a large text": c.spans(t.Context(), "Go", make([]byte, maxColoured+1), time.Minute),
	} {
		if got != nil {
			t.Errorf("%s has %d colours", name, len(got))
		}
	}
}

// TestFileOfAnotherBranch: the address of a file without a revision leads to the first branch that has it.
func TestFileOfAnotherBranch(t *testing.T) {
	f := pond()
	f.files["host/pond"]["dev only/x"] = "text\n"
	h := f.serve(t, false)
	w := visit(t, h, "/r/host/pond/-/dev%20only/x?from=7")
	if to := "/r/host/pond@dev/-/dev%20only/x?from=7"; w.Code != http.StatusSeeOther || w.Header().Get("Location") != to {
		t.Errorf("status %d, leads to %q, want %q", w.Code, w.Header().Get("Location"), to)
	}
	if w := visit(t, h, "/r/host/pond@main/-/dev%20only/x"); w.Code != http.StatusNotFound {
		t.Errorf("on main: status %d", w.Code)
	}
	contains(t, show(t, h, "/r/host/pond@dev/-/dev%20only/x"), "text")
}
