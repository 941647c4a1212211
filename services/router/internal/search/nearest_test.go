package search

import (
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
