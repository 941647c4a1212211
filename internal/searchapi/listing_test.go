package searchapi_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestListingIsTheFirstEntries: whatever parts of several trees are added in whatever order, a listing has the first entries of all trees, with
// all their files, and never one of which a part may be missing.
func TestListingIsTheFirstEntries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := map[string]uint64{}
		l := searchapi.Listing{MaxEntries: rapid.IntRange(1, 12).Draw(rt, "most"), MaxBytes: rapid.IntRange(1, 300).Draw(rt, "bytes")}
		for range rapid.IntRange(1, 4).Draw(rt, "trees") {
			tree := rapid.MapOfN(rapid.SampledFrom(strings.Split("a/ a b/ c/ d/ e f/ g/ h i/ j/ k", " ")), rapid.Uint64Range(1, 9), 0, 12).Draw(rt, "tree")
			var entries []*searchv1.TreeEntry
			for _, path := range slices.Sorted(maps.Keys(tree)) {
				entries = append(entries, &searchv1.TreeEntry{Path: []byte(path), Files: tree[path]})
				all[path] += tree[path]
			}
			n := rapid.IntRange(min(1, len(entries)), len(entries)).Draw(rt, "part")
			l.Add(entries[:n], n < len(entries))
		}
		got, want := "", ""
		for _, e := range l.Entries {
			got += fmt.Sprint(string(e.Path), e.Files, " ")
		}
		paths := slices.Sorted(maps.Keys(all))
		for _, path := range paths[:min(len(paths), len(l.Entries))] {
			want += fmt.Sprint(path, all[path], " ")
		}
		if got != want || l.More != (len(l.Entries) < len(paths)) {
			rt.Errorf("%s, more %v; want %s of %d", got, l.More, want, len(paths))
		}
		fits := searchapi.Fitting(l.Entries, l.MaxBytes) == len(l.Entries) || len(l.Entries) == 1
		if len(l.Entries) > l.MaxEntries || !fits || len(l.Entries) == 0 && len(paths) > 0 {
			rt.Errorf("%d entries of at most %d, fits %v", len(l.Entries), l.MaxEntries, fits)
		}
		if !slices.IsSortedFunc(l.Entries, func(a, b *searchv1.TreeEntry) int { return bytes.Compare(a.Path, b.Path) }) {
			rt.Error("not in order")
		}
	})
}
