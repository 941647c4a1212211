package searchapi_test

import (
	"slices"
	"testing"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// TestNearestAreNear: only names that are spelled almost like one, or have its words, are suggested for it.
func TestNearestAreNear(t *testing.T) {
	names := []string{"Go", "Python", "main", "host/org/trawl-search", "host/org/pond", "host/org/pond-of-carps", "host/other/zoekt", "src/handler.go", ".gitignore"}
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"klingon", nil},
		{"xyzzy", nil},
		{"host/org/zzzqqq", nil},
		{"", nil},
		{"...", nil},
		{"host", nil}, // a word of each name, and of no last part
		{"a", nil},
		{"other/host", nil},
		{"py", []string{"Python"}},
		{"golnag", []string{"Go"}},
		{"mian", []string{"main"}},
		{"host/org/pnod", []string{"host/org/pond"}},
		{"elsewhere/ZOEKT", []string{"host/other/zoekt"}},
		{"search_trawl", []string{"host/org/trawl-search"}},
		{"pond-secret", []string{"host/org/pond"}},
		{"hadnler", []string{"src/handler.go"}},
		{"hadnler.go", []string{"src/handler.go"}},
		{"hadnler.rs", []string{"src/handler.go"}},
		{"hadnler.html", nil},
		{"gitingore", []string{".gitignore"}},
		{"carps", []string{"host/org/pond-of-carps"}},
	} {
		if got := searchapi.Nearest(tt.name, names); !slices.Equal(got, tt.want) {
			t.Errorf("the nearest to %q are %q, want %q", tt.name, got, tt.want)
		}
	}
}
