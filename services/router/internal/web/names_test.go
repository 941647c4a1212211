package web

import (
	"bytes"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesAreOffered clicks a name in a browser: the page offers its definitions and references. A click beside a name offers nothing.
func TestNamesAreOffered(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
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
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+dir+"/profile", "--dump-dom", "file://"+path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(out, []byte("<body "))
	body, _, _ := strings.Cut(html.UnescapeString(string(rest)), ">")
	search := func(query string) string { return "?" + url.Values{"q": {query}}.Encode() }
	want := `data-name="` + search("sym:^Fish_1$ case:yes") + " " + search(`ref:\bFish_1\b case:yes`) + `" data-gap=""`
	if body != want {
		t.Errorf("got %s\nwant %s", body, want)
	}
}
