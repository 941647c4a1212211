package web

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestLabels: what readers of screens need of every page: a language, a title, one main heading at most, names of all inputs, links, buttons and
// images, and ids that are given once.
func TestLabels(t *testing.T) {
	f := pond()
	f.search = found(hit("host/pond", "a/fish.go", chunk("// a fish\n", "fish", 7)))
	for _, path := range []string{"/", "/?q=fish", "/?q=fish+(", "/r/host/pond", "/r/host/pond/-/a/", "/r/host/pond/-/a/fish.go", "/r/host/pond/-/none", "/repos", "/help"} {
		doc, err := html.Parse(strings.NewReader(visit(t, f.serve(t, false), path).Body.String()))
		if err != nil {
			t.Fatal(err)
		}
		ids, tags := map[string]bool{}, map[string]int{}
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			tags[n.Data]++
			if id := attribute(n, "id"); id != "" && ids[id] {
				t.Errorf("%s: the id %q is given twice", path, id)
			} else {
				ids[id] = true
			}
			switch n.Data {
			case "html":
				if attribute(n, "lang") == "" {
					t.Errorf("%s: the page has no language", path)
				}
			case "a", "button", "summary", "title", "h1":
				if strings.TrimSpace(text(n))+attribute(n, "aria-label") == "" {
					t.Errorf("%s: <%s href=%q> has no name", path, n.Data, attribute(n, "href"))
				}
			case "input", "select", "textarea", "nav", "aside":
				if attribute(n, "type") != "hidden" && attribute(n, "aria-label") == "" {
					t.Errorf("%s: <%s name=%q> has no label", path, n.Data, attribute(n, "name"))
				}
			case "img":
				if attribute(n, "alt") == "" {
					t.Errorf("%s: the image %s has no description", path, attribute(n, "src"))
				}
			case "th":
				if attribute(n, "scope") == "" {
					t.Errorf("%s: the head %q of a table has no scope", path, text(n))
				}
			}
		}
		if tags["title"] != 1 || tags["h1"] > 1 || tags["main"] != 1 {
			t.Errorf("%s: %d titles, %d main headings, %d main parts", path, tags["title"], tags["h1"], tags["main"])
		}
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) (all string) {
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			all += d.Data
		}
	}
	return all
}
