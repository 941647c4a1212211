package zoekt

import (
	"cmp"
	"encoding/hex"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// maxUncovered is how many uncovered shards an account describes. It counts all of them.
const maxUncovered = 100

// maxUncoveredBytes bounds the size of their messages, since a shard of many repos names
// each of them.
const maxUncoveredBytes = 1 << 20

func newAccount(c *searchv1.Coverage) account {
	c = searchapi.TrimCoverage(c, maxUncoveredBytes)
	a := account{
		Complete: c.GetComplete(), Requested: c.GetRequested(), Searched: c.GetSearched(),
		Pruned: c.GetPruned(), Failed: c.GetFailed(), NotReached: c.GetNotReached(),
	}
	list := c.GetUncovered()
	for _, u := range list[:min(len(list), maxUncovered)] {
		a.Uncovered = append(a.Uncovered, uncovered{
			Shard: hex.EncodeToString(u.Digest), Repos: u.Repos, Message: u.Message,
			Reason: strings.TrimPrefix(u.Reason.String(), "UNCOVERED_REASON_"),
		})
	}
	return a
}

// newStats translates statistics and coverage to zoekt's. If files without matches are all that is found, as by lang:go, each matches with its name.
func newStats(s *searchv1.Statistics, c *searchv1.Coverage) stats {
	out := stats{
		ContentBytesLoaded: int64(s.GetBytesDecoded()), Duration: s.GetDuration().AsDuration(),
		FileCount: int(s.GetFilesMatched()), MatchCount: int(cmp.Or(s.GetMatches(), s.GetFilesMatched())),
		FilesConsidered: int(s.GetFilesConsidered()), FilesLoaded: int(s.GetFilesConsidered()),
		NgramLookups: int(s.GetPostingListsRead()),
		Crashes:      int(c.GetFailed()), ShardsScanned: int(c.GetSearched()),
		ShardsSkipped: int(c.GetNotReached()), ShardsSkippedFilter: int(c.GetPruned()),
	}
	if c.GetNotReached() > 0 {
		out.FlushReason = flushTimer
	}
	return out
}
