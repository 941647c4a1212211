package web

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// withReadme is the page of a folder with a README.
func withReadme(t *testing.T, path, text string) string {
	t.Helper()
	f := &fake{files: map[string]map[string]string{"host/pond": {path: text, "a/b/fish.go": "package b", "a/z.go": "package a"}}}
	branch := "" // files on dev are in a folder of that name
	if strings.HasPrefix(path, "dev/") {
		branch = "dev"
	}
	return show(t, f.serve(t, false), place{"host/pond", branch, folder(path)}.address())
}

// TestReadme: a folder shows its README. Links in it lead to the same revision.
func TestReadme(t *testing.T) {
	for text, want := range map[string]string{
		"# Fish\n\nThey *swim*.":            "<h1>Fish</h1>\n<p>They <em>swim</em>.</p>",
		"[x](fish.go)":                      `<a href="/r/host/pond@dev/-/dev/a/fish.go"`,
		"[x](../b/)":                        `<a href="/r/host/pond@dev/-/dev/b/"`,
		"[x](/go.mod#L3)":                   `<a href="/r/host/pond@dev/-/go.mod#L3"`,
		"[x](../../../../etc)":              `<a href="/r/host/pond@dev/-/etc"`,
		"[x](<a b.md>)":                     `<a href="/r/host/pond@dev/-/dev/a/a%20b.md"`,
		"[x](..)":                           `<a href="/r/host/pond@dev/-/dev"`,
		"[x](https://a.example/?a=b&c)":     `<a href="https://a.example/?a=b&amp;c" rel="noreferrer noopener nofollow">x</a>`,
		"<fish@a.example> www.a.example":    `<a href="mailto:fish@a.example"`,
		"see www.a.example.":                `<a href="http://www.a.example"`,
		"[x](#part)":                        "<p>x</p>",
		"[x](javascript:alert`1`)":          "<p>x</p>",
		"[x](JaVaScRiPt:alert`1`)":          "<p>x</p>",
		"[x](//evil.example)":               "<p>x</p>",
		"[x](data:text/html,x)":             "<p>x</p>",
		"<javascript:alert(1)>":             "<p>javascript:alert(1)</p>",
		"![a fish](fish.png)":               `<a href="/r/host/pond@dev/-/dev/a/fish.png" rel="noreferrer noopener nofollow">a fish</a>`,
		"![](https://a.example/logo.png)":   `<a href="https://a.example/logo.png" rel="noreferrer noopener nofollow">logo.png</a>`,
		"[![b](b.svg)](https://ci.example)": `<a href="https://ci.example" rel="noreferrer noopener nofollow">b</a>`,
		"|a|\n|-:|\n|b|":                    `<td align="right">b</td>`,
		"- [x] done":                        `<input checked="" disabled="" type="checkbox"> done`,
		"a\u202eb &#8238;c\x00":             "a\ufffdb \ufffdc\ufffd",
	} {
		if page := withReadme(t, "dev/a/README.md", text); !strings.Contains(page, want) {
			_, after, _ := strings.Cut(page, `<section class="readme"`)
			t.Errorf("%q is shown as %q, and has no %q", text, after[:min(len(after), 600)], want)
		}
	}
}

// TestReadmeOfStrangers: nothing in a README becomes a tag, a script or a style of the page.
func TestReadmeOfStrangers(t *testing.T) {
	for _, text := range []string{
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<style>*{}</style>", "a <b onclick=x>b</b>", "[x](x 'a\" onmouseover=\"alert(1)')",
		"```a\" onclick=\"x\n\n```", "[x]: javascript:alert(1)\n[x]", "![x\"onerror=\"alert(1)](y)", "<a href=javascript:x>y</a>", "<https://a\" onclick=x>",
		"&lt;script&gt;", "[x](&#106;avascript:alert(1))", "[x](\\javascript:x)", "{#id onclick=x}\n# a {#main onclick=x}", "<iframe src=//x></iframe>",
	} {
		page := withReadme(t, "dev/a/README.md", text)
		z, ids := html.NewTokenizer(strings.NewReader(page)), map[string]int{}
		for z.Next() != html.ErrorToken {
			for _, a := range z.Token().Attr {
				if a.Key == "id" {
					ids[a.Val]++
				}
			}
		}
		for id, n := range ids {
			if n > 1 {
				t.Errorf("%q: %d elements have the id %s", text, n, id)
			}
		}
	}
}

// TestWhichReadme: a Markdown file is before others, and anything else is shown as it is.
func TestWhichReadme(t *testing.T) {
	contains(t, withReadme(t, "README", "# no <b>title</b>\n"), "<pre># no &lt;b&gt;title&lt;/b&gt;\n</pre>")
	contains(t, withReadme(t, "dev/readme.TXT", "*fish*"), "<pre>*fish*\n</pre>")
	f := &fake{files: map[string]map[string]string{"host/pond": {"README": "one", "README.md": "*two*", "README.txt": "three", "NOT-README.md": "four"}}}
	page := show(t, f.serve(t, false), "/r/host/pond")
	if contains(t, page, "<em>two</em>"); strings.Contains(page, "<pre>") {
		t.Error("two files are shown")
	}
	for _, path := range []string{"dev/a/not-README.md", "dev/a/README.go", "dev/a/b/README.md"} {
		f := &fake{files: map[string]map[string]string{"host/pond": {path: "fish", "dev/a/x": ""}}}
		if page := show(t, f.serve(t, false), "/r/host/pond@dev/-/dev/a/"); strings.Contains(page, `class="readme"`) {
			t.Errorf("%s is shown", path)
		}
	}
}

// TestLongReadme: a long README is shown in part, and one that takes too much room as it is.
func TestLongReadme(t *testing.T) {
	contains(t, withReadme(t, "README.md", strings.Repeat("a line of *text*\n\n", 10_000)), "<em>text</em>", "The rest of the file")
	page := withReadme(t, "README.md", strings.Repeat("|", 300)+"\n"+strings.Repeat("|-", 300)+"|\n"+strings.Repeat("|\n", 15_000))
	if len(page) > readmeHTML+100_000 {
		t.Errorf("a README of empty cells takes %d bytes", len(page))
	}
}

// hostileReadmes are an ordinary text, and others that take much more time, memory or room than it.
var hostileReadmes = map[string]string{
	"text":     strings.Repeat("a line of *text* with a [link](a.md)\n\n", readmeBytes/39),
	"brackets": strings.Repeat("[", readmeBytes), "quotes": strings.Repeat("> ", readmeBytes/2), "stars": strings.Repeat("*a_ ", readmeBytes/4),
	"images": strings.Repeat("![", readmeBytes/2), "ticks": strings.Repeat("`a``", readmeBytes/4), "lists": strings.Repeat("- ", readmeBytes/2),
	"html": strings.Repeat("<a ", readmeBytes/3), "autolinks": strings.Repeat("<a:", readmeBytes/3), "definitions": strings.Repeat("[a]: b\n", readmeBytes/7),
	"entities": strings.Repeat("&#", readmeBytes/2), "tildes": strings.Repeat("~a", readmeBytes/2), "parens": strings.Repeat("[a](", readmeBytes/4),
	"www": strings.Repeat("www.", readmeBytes/4), "nested links": strings.Repeat("[", readmeBytes/8) + strings.Repeat("](a)", readmeBytes/8),
	"long address":   "[a]: /" + strings.Repeat("b", readmeBytes/2) + "\n\n" + strings.Repeat("[a]\n", readmeBytes/8),
	"long addresses": "[a]: /" + strings.Repeat("b", 2000) + "\n\n" + strings.Repeat("[a]\n", readmeBytes*3/16),
	"wide table":     "|" + strings.Repeat("|", 2700) + "\n" + strings.Repeat("|-", 2700) + "|\n" + strings.Repeat("|\n", readmeBytes/4),
	"largest table":  "|" + strings.Repeat("|", 140) + "\n" + strings.Repeat("|-", 141) + "|\n" + strings.Repeat("|\n", 136),
	"narrow table":   "|a|\n|-|\n" + strings.Repeat("|\n", readmeBytes/4),
}

// TestHostileReadmes: the memory that a README takes is bounded, whatever is in it. The bound is twice what the worst of these takes, which
// does not depend on the machine.
func TestHostileReadmes(t *testing.T) {
	for name, text := range hostileReadmes {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		html := located{place: place{"host/pond", "", ""}}.markdown([]byte(text), "")
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 128<<20 || len(html) > readmeHTML {
			t.Errorf("%s: %d bytes are allocated for %d bytes of HTML", name, taken, len(html))
		} else {
			t.Logf("%s: %d KiB are allocated for %d bytes of HTML", name, taken>>10, len(html))
		}
	}
}

func BenchmarkReadme(b *testing.B) {
	for name, text := range hostileReadmes {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				located{place: place{"host/pond", "", ""}}.markdown([]byte(text), "")
			}
		})
	}
}
