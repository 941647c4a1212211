package web

import (
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestPathNames: a path may be broken behind its slashes, and what cannot be seen in it is written out.
func TestPathNames(t *testing.T) {
	for path, want := range map[string]string{
		"":            "",
		"a.go":        "a.go",
		"/a//b/":      "/<wbr>a/<wbr>/<wbr>b/<wbr>",
		"a/<b>/\xffc": `a/<wbr>&lt;b&gt;/<wbr><i class="x">\xff</i>c`,
	} {
		if got := describe(&searchv1.FileMatch{Repo: "host/pond", Path: []byte(path)}, "q"); string(got.Path) != want || got.Repo != "host/<wbr>pond" {
			t.Errorf("%q is %s in %s, not %s", path, got.Path, got.Repo, want)
		}
	}
}
