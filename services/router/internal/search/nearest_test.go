package search

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestNearestOfVeryMany: the nearest of more names than are compared are in the same folder, or share a rare part, in any case. A name
// that the caller may not see is not among them.
func TestNearestOfVeryMany(t *testing.T) {
	var roots []*catalogv1.Root
	d := searchapi.Digest{1}
	for i := range 3 * mostLike {
		name := fmt.Sprintf("host/org%02d/repository%04d", i/1000, i%1000)
		if i == 2*mostLike {
			name = "host/org02/Teapot-Controller"
		}
		roots = append(roots, &catalogv1.Root{Repo: name, Shards: []*catalogv1.ShardRef{{Digest: d[:], RepoNumber: uint32(i)}}})
	}
	layout, err := NewLayout(1, roots)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, want string }{
		{"host/org12/repositroy0123", "host/org12/repository0123"},
		{"teapod-controller", "host/org02/Teapot-Controller"},
		{"host/org99/Teapot-Contoller", "host/org02/Teapot-Controller"},
		{"host/org02/repo", ""},
		{"x", ""},
	} {
		like := layout.like(tt.name)
		if got := layout.nearest(tt.name); len(like) > mostLike || tt.want != "" && (len(got) == 0 || got[0] != tt.want) {
			t.Errorf("the nearest to %s are %q, of %d; want %s", tt.name, got, len(like), tt.want)
		}
		hidden := layout.Only(func(name string) bool { return name != tt.want })
		if got := hidden.nearest(tt.name); slices.Contains(got, tt.want) {
			t.Errorf("the nearest to %s are %q, of which one is hidden", tt.name, got)
		}
	}
}

// TestBranchesLikeOneOfVeryMany: of more names of branches than are compared, those that share a rare part are, in any case. None are looked
// at once the time is over, and none are returned if a branch matches.
func TestBranchesLikeOneOfVeryMany(t *testing.T) {
	var roots []*catalogv1.Root
	d := searchapi.Digest{1}
	for i := range mostLike {
		root := &catalogv1.Root{Repo: fmt.Sprintf("host/repo%04d", i), Shards: []*catalogv1.ShardRef{{Digest: d[:], RepoNumber: uint32(i)}}}
		for j := range 4 {
			root.Branches = append(root.Branches, &catalogv1.Branch{Name: fmt.Sprintf("feature/ticket-%d-%d", i*7919, j), Commit: "c0"})
		}
		if i == mostLike-1 {
			root.Branches[2].Name = "Release-2/fixes"
		}
		roots = append(roots, root)
	}
	layout, err := NewLayout(1, roots)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx           context.Context
		pattern, want string
		none          bool
	}{
		{t.Context(), "relase-2", "Release-2/", true},
		{t.Context(), "featuer", "feature/", true},
		{t.Context(), "nosuch", "", true},
		{t.Context(), "lease", "", false},
		{over, "nosuch", "", false},
	} {
		names, none := layout.branchesLike(tt.ctx, tt.pattern)
		if none != tt.none || len(names) > mostLike || !none && len(names) > 0 || tt.want != "" && !slices.Contains(searchapi.Nearest(tt.pattern, names), tt.want) {
			t.Errorf("%s: none matches: %v, %d names, nearest %q, want %q", tt.pattern, none, len(names), searchapi.Nearest(tt.pattern, names), tt.want)
		}
	}
}
