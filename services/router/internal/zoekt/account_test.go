package zoekt

import (
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestFilesWithoutMatches: files count as matches only where nothing else is found.
func TestFilesWithoutMatches(t *testing.T) {
	for _, tt := range []struct{ matches, files, want int }{{0, 7, 7}, {8, 1826, 8}, {9, 3, 9}, {0, 0, 0}} {
		s := newStats(&searchv1.Statistics{Matches: uint64(tt.matches), FilesMatched: uint64(tt.files)}, nil)
		if s.MatchCount != tt.want || s.FileCount != tt.files {
			t.Errorf("%d matches in %d files: %+v", tt.matches, tt.files, s)
		}
	}
}
