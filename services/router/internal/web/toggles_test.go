package web

import (
	"net/url"
	"strings"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestToggles: each toggle writes the query anew, and off again as it was.
func TestToggles(t *testing.T) {
	for _, tt := range []struct{ query, matchCase, words, asItIs string }{
		{"fish", "fish case:yes", `\bfish\b`, ""},
		{"fish pond", "fish pond case:yes", `\bfish\b \bpond\b`, `"fish pond"`},
		{"fish lang:go", "fish lang:go case:yes", `\bfish\b lang:go`, ""},
		{"fish or carp", "case:yes (fish or carp )", `\bfish\b or \bcarp\b`, `"fish or carp"`},
		{"fish -carp c:pike", "fish -carp c:pike case:yes", `\bfish\b -carp c:\bpike\b`, ""},
		{"a.b*", "a.b* case:yes", "", `"a\\.b\\*"`},
		{"f(x) y", "f(x) y case:yes", `f(x) \by\b`, `"f\\(x\\) y"`},
		{`"fish.pond"`, `"fish.pond" case:yes`, "", ""},
		{"r:pond", "r:pond case:yes", "", ""},
	} {
		got := map[string]string{}
		for _, toggle := range toggles(tt.query) {
			if toggle.On {
				t.Errorf("%s: %s is on", tt.query, toggle.Name)
			}
			got[toggle.Name] = queryOf(t, toggle.URL)
		}
		if got["Aa"] != tt.matchCase || got[`\b`] != tt.words || got["“ ”"] != tt.asItIs {
			t.Errorf("%s: %q", tt.query, got)
		}
		for name, changed := range got {
			found := false
			for _, back := range toggles(changed) {
				if back.Name != name {
					continue
				}
				found = true
				if again := queryOf(t, back.URL); !back.On || again != tt.query && !strings.Contains(tt.query, " or ") {
					t.Errorf("%s, %s turned on and off: on %v, then %s", tt.query, name, back.On, again)
				}
			}
			if !found {
				t.Errorf("%s: %s cannot be turned off", tt.query, name)
			}
		}
	}
}

func queryOf(t *testing.T, link string) string {
	t.Helper()
	address, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return address.Query().Get("q")
}

// TestFoldersOfOneRepo: the repo is named only where folders are in several.
func TestFoldersOfOneRepo(t *testing.T) {
	counts := &searchv1.FacetCounts{Facet: searchv1.Facet_FACET_DIRECTORY, Values: []*searchv1.FacetValue{{Repo: "host/pond", Directory: []byte("a/"), Files: 2}, {Repo: "host/pond", Files: 1}}}
	if f := newFacet("fish", counts); f.Values[0].Text != "a/" || f.Values[1].Text != "host/pond/" {
		t.Errorf("folders of one repo: %v", f.Values)
	}
	counts.Values[1].Repo = "host/lake"
	if f := newFacet("fish", counts); f.Values[0].Text != "host/pond/a/" {
		t.Errorf("folders of two repos: %v", f.Values)
	}
}
