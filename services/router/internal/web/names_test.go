package web

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// TestNamesAreOffered clicks a name in a browser: the page offers its definitions and references. A click beside a name offers nothing.
func TestNamesAreOffered(t *testing.T) {
	b := openBrowser(t)
	read := func(name string) string {
		text, err := files.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := `<!DOCTYPE html><html><head><title>x</title><style>` + read("style.css") + `</style></head><body>
<form><input id="q" name="q"></form><div id="main"></div>
<pre class="code whole"><span class="l" id="L1"><a class="n" href="#L1">1</a><span class="k">func</span> <span id="name">Fish_1</span>(x)   <b id="gap">+++</b></span></pre>
<script>` + read("page.js") + `
const press = (id) => {
  const b = document.getElementById(id).getBoundingClientRect();
  document.getElementById(id).dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: b.left + b.width / 2, clientY: b.top + b.height / 2 }));
  return [...document.querySelectorAll(".places a")].map((a) => a.search).join(" ");
};
document.body.dataset.name = press("name");
document.body.dataset.gap = press("gap");
</script></body></html>`
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	b.open("file://" + path)
	definitions := "?name=Fish_1&at=" + url.QueryEscape(path) + "&line=1&column=6"
	references := "?" + url.Values{"q": {`ref:\bFish_1\b case:yes`}}.Encode()
	if got, want := b.eval(`document.body.dataset.name`), definitions+" "+references; got != want {
		t.Errorf("a name offers %s\nwant %s", got, want)
	}
	if got := b.eval(`document.body.dataset.gap`); got != "" {
		t.Errorf("a gap offers %s", got)
	}
}
