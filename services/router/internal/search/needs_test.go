package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestNeedsRuleOutNoMatch: of repos with any names, an expression chooses exactly the shards of those that it matches.
func TestNeedsRuleOutNoMatch(t *testing.T) {
	rng := testrun.Rand(t)
	text := func(parts int) (s string) {
		for range 1 + rng.IntN(parts) {
			s += []string{"tool", "kit", "ask", "Git", "-", "/", "org", "o", "é", "ſ", "\u212a", "7", "İ"}[rng.IntN(13)]
		}
		return s
	}
	expression := func() string {
		e := query.Literal(text(3))
		switch rng.IntN(6) {
		case 0:
			e = "(?i)" + e
		case 1:
			e = "^" + e
		case 2:
			e += ".*" + query.Literal(text(2))
		case 3:
			e += "|" + query.Literal(text(2)) + "$"
		case 4:
			e = "(?i:" + e + ")[a-z/]+" + query.Literal(text(1))
		}
		return e
	}
	found := 0
	for range testrun.Rounds(30, 300) {
		var roots []*catalogv1.Root
		for i := range 400 {
			d := searchapi.Digest{byte(i), byte(i >> 8), 1}
			name := fmt.Sprintf("%s%s/%d", []string{"org/", "Kit/"}[i/200], text(4), i)
			roots = append(roots, &catalogv1.Root{Repo: name, Shards: []*catalogv1.ShardRef{{Digest: d[:], Repos: 1}}})
		}
		layout, err := NewLayout(1, roots)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			source := "repo:" + query.Quote(expression())
			q, err := query.Parse(source, query.ParseOptions{})
			if err != nil {
				t.Fatal(source, err)
			}
			repo, isRepo := q.(*query.Repo)
			if !isRepo {
				t.Fatalf("%s is %T", source, q)
			}
			re, err := regex.Compile(repo.Tree, true)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, root := range roots {
				if re.MatchString(root.Repo) {
					want = append(want, root.Repo)
				}
			}
			var got []string
			wanted, err := layout.Select(t.Context(), q)
			for i := range wanted {
				got = append(got, roots[int(wanted[i].Digest[0])+int(wanted[i].Digest[1])<<8].Repo)
			}
			slices.Sort(got)
			slices.Sort(want)
			if found += len(got); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s: %d repos, want %d: %s", source, len(got), len(want), strings.Join(want, " "))
			}
		}
	}
	if found == 0 {
		t.Error("nothing was ever found")
	}
}
