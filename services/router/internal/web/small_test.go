package web

import (
	"net/http/httptest"
	"strings"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestSmallScreen: on a small screen no page is wider than the screen, however long names are, and names break behind slashes.
func TestSmallScreen(t *testing.T) {
	f := pond()
	f.search = found(hit(strings.Repeat("host/pond/", 10), strings.Repeat("long/", 30)+"fish.go"))
	f.search.Selected = searchv1.Facet_FACET_DIRECTORY
	selected := &searchv1.FacetCounts{Facet: searchv1.Facet_FACET_DIRECTORY}
	for _, folder := range []string{strings.Repeat("folder/", 8), strings.Repeat("x", 60) + "/", "<b>/"} {
		selected.Values = append(selected.Values, &searchv1.FacetValue{Repo: "host/pond", Directory: []byte(folder), Files: 3})
	}
	f.search.Facets = []*searchv1.FacetCounts{selected, selected}
	server := httptest.NewServer(f.serve(t, false))
	defer server.Close()
	contains(t, show(t, f.serve(t, false), "/?q=fish"), "folder/<wbr>folder/<wbr>", "&lt;b&gt;/<wbr></bdi>")
	b := openBrowser(t)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": false}, nil)
	for _, page := range []string{"/", "/?q=fish", "/repos", "/help", "/r/host/pond/-/", "/r/host/pond/-/a/fish.go"} {
		b.open(server.URL + page)
		if wider := b.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); wider != "0" {
			t.Errorf("%s is %s pixels wider than the screen", page, wider)
		}
	}
}
