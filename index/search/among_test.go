package search_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
)

// TestCommonWordsBesideRareOnes: common words that must match together with a rare one are
// looked up only in the documents of the rare one, by reading short lists and by seeking in
// long ones.
func TestCommonWordsBesideRareOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 2))
	repo := indextest.Repo{Name: "r", Branches: []string{"main"}}
	for i := range 2500 {
		var text strings.Builder
		for range 1 + random.IntN(30) {
			switch random.IntN(4) {
			case 0:
				text.WriteString([]string{"common ", "Common ", "is_common ", "commonest ", "commonCommon "}[random.IntN(5)])
			case 1:
				fmt.Fprintf(&text, "common%d ", random.IntN(300))
			default:
				text.WriteString("filler ")
			}
		}
		if i%29 == 3 {
			text.WriteString("rarest thing")
		}
		if i%500 == 3 {
			text.WriteString(strings.Repeat(" ", 5000) + "common rare " + strings.Repeat("toolong", 30) + "common")
		}
		repo.Documents = append(repo.Documents, indextest.Document{Path: fmt.Sprintf("%04d", i), Content: []byte(text.String()), Branches: repo.Branches})
	}
	c := &indextest.Corpus{Name: "rare", Repos: []indextest.Repo{repo}}
	s := openShard(t, buildShard(t, c))
	oracle := indextest.NewOracle(c)
	for _, text := range []string{
		"rare common", "c:rare c:common", "case:yes c:rare c:common", `c:rare c:\bcommon\b`, `c:rare c:common[0-9]+`, "c:rare (c:commonest or c:common12)",
		"c:rare -c:commonest c:common", "c:thing c:rare c:common c:filler", "c:toolong c:common",
	} {
		if diff := oracle.Compare(text, engine(s)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
