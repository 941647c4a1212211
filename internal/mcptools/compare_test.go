package mcptools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestCompare: each file that differs between two branches is named once with its kind of
// change, and the counts are right however many files fit.
func TestCompare(t *testing.T) {
	main, dev := make(map[string]string), make(map[string]string)
	for i := range 900 {
		path := fmt.Sprintf("dir%d/f%d", i%7, i)
		switch i % 9 {
		case 0:
			main[path] = "removed"
		case 1:
			dev[path] = "added"
		case 2:
			main[path], dev[path] = "before", "after"
		default:
			main[path], dev[path] = "same", "same"
		}
	}
	session := connect(t, newBranches(t, map[string]map[string]string{"r": main}, map[string]map[string]string{"r": dev}))
	for _, tokens := range []int{1000, 8000, 25_000} {
		r := good(t, session, "compare", args{"repo": "r", "base": "main", "head": "dev", "max_tokens": tokens})
		var of comparison
		must(t, json.Unmarshal(r.data, &of))
		if of.Modified != 100 || of.Added != 100 || of.Removed != 100 || len(of.Files)+of.LeftOut != 300 || len(r.data) > 3*tokens || len(r.text) > 3*tokens {
			t.Errorf("%d tokens: %d bytes of %+v", tokens, len(r.data), of)
		}
		if tokens == 25_000 && of.LeftOut > 0 {
			t.Errorf("%d left out", of.LeftOut)
		}
		for _, f := range of.Files {
			_, before := main[f.Path]
			_, after := dev[f.Path]
			if want := map[[2]bool]string{{true, true}: "M", {true, false}: "D", {false, true}: "A"}[[2]bool{before, after}]; f.Kind != want || main[f.Path] == dev[f.Path] {
				t.Errorf("%s is %s, want %s", f.Path, f.Kind, want)
			}
		}
	}
	if r := good(t, session, "compare", args{"repo": "r", "base": "dev", "head": "main", "paths": []string{"dir1/**"}}); !strings.HasPrefix(r.text, "r dev..main: ") || strings.Contains(r.text, "dir2") {
		t.Error(r.text)
	}
	for want, arguments := range map[string]args{
		"has no indexed branch mian; the nearest: main": {"repo": "r", "base": "mian", "head": "dev"},
		`no repo "q" is published`:                      {"repo": "q", "base": "main", "head": "dev"},
		"two different branches":                        {"repo": "r", "base": "dev", "head": "dev"},
	} {
		if r := ask(t, session, "compare", arguments); !r.failed || !strings.Contains(r.text, want) {
			t.Errorf("%v: no %q in %s", arguments, want, r.text)
		}
	}
}
