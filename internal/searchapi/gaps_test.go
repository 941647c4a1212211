package searchapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestMissingShards(t *testing.T) {
	for _, tt := range []struct {
		c    *searchv1.Coverage
		want string
	}{
		{&searchv1.Coverage{Requested: 13, NotReached: 13, InPart: 13}, "13 of 13 shards were searched in part"},
		{&searchv1.Coverage{Requested: 13, NotReached: 12, InPart: 11}, "1 of 13 shards was not searched and 11 were searched in part"},
		{&searchv1.Coverage{Requested: 13, Failed: 1, NotReached: 2, InPart: 1}, "2 of 13 shards were not searched and 1 was searched in part"},
		{&searchv1.Coverage{Requested: 1, Failed: 1}, "1 of 1 shard was not searched"},
	} {
		if got := searchapi.MissingShards(tt.c); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestGaps: many shards that fail for one reason are one gap, and few of their repos are named.
func TestGaps(t *testing.T) {
	const late = searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE
	uncovered := []*searchv1.UncoveredShard{{Repos: []string{"half"}, Reason: late, InPart: true}}
	for i := range 1000 {
		uncovered = append(uncovered, &searchv1.UncoveredShard{Repos: []string{fmt.Sprintf("r%03d", 999-i), "shared"}, Reason: late})
	}
	var lines []string
	for _, g := range searchapi.Gaps(uncovered) {
		names, others := g.Named()
		lines = append(lines, fmt.Sprintln(g.Outcome(), g.Shards, names, others))
	}
	want := "not searched 1000 [r000 r001 r002 r003 r004] 996\nsearched in part 1 [half] 0\n"
	if got := strings.Join(lines, ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
