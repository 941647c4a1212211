package mcptools

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocs makes the calls of docs/mcp.md over the library of these tests, and reads its
// configurations.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/mcp.md")
	must(t, err)
	session := connect(t, newLibrary(t, pond()))
	calls := regexp.MustCompile("(?s)```call\n\\$ (\\w+) ([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(calls) < 5 {
		t.Fatalf("%d calls", len(calls))
	}
	for _, c := range calls {
		var arguments args
		must(t, json.Unmarshal([]byte(c[2]), &arguments))
		r := ask(t, session, c[1], arguments)
		got := r.text
		if r.failed {
			got = "error: " + got + "\n"
		}
		if got != c[3] {
			t.Errorf("%s %s answers\n%s\nand the page says\n%s", c[1], c[2], got, c[3])
		}
	}
	snippets := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	for _, s := range snippets {
		var config map[string]map[string]struct {
			URL, Command string
			Args         []string
		}
		must(t, json.Unmarshal([]byte(s[1]), &config))
		for _, servers := range config {
			trawl := servers["trawl"]
			if !strings.HasSuffix(trawl.URL, Path) && (trawl.Command != "trawl" || trawl.Args[0] != "mcp") {
				t.Errorf("%s configures %v", s[1], trawl)
			}
		}
	}
	if len(snippets) != 3 {
		t.Errorf("%d configurations", len(snippets))
	}
	for _, name := range toolNames() {
		if !strings.Contains(string(text), "| `"+name+"` |") {
			t.Errorf("the page lacks %s", name)
		}
	}
}
