package searchapi

import (
	"cmp"
	"fmt"
	"slices"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// MissingShards says in words how much an incomplete answer does not cover, such as "1 of 8 shards was not searched and 2
// were searched in part".
func MissingShards(c *searchv1.Coverage) string {
	of := fmt.Sprintf("of %d shards", c.GetRequested())
	if c.GetRequested() == 1 {
		of = "of 1 shard"
	}
	part := c.GetInPart()
	not := c.GetFailed() + c.GetNotReached() - part
	switch {
	case part == 0:
		return fmt.Sprintf("%d %s %s not searched", not, of, wasOrWere(not))
	case not == 0:
		return fmt.Sprintf("%d %s %s searched in part", part, of, wasOrWere(part))
	}
	return fmt.Sprintf("%d %s %s not searched and %d %s searched in part", not, of, wasOrWere(not), part, wasOrWere(part))
}

func wasOrWere(n uint64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// Gap is what an answer does not cover for one reason.
type Gap struct {
	Reason searchv1.UncoveredReason
	// InPart is true if the shards were searched in part.
	InPart bool
	Shards int
	// Repos are the distinct repos of the shards, ascending.
	Repos []string
	// Message is that of the first shard.
	Message string
}

// Gaps groups shards by why they are not covered. The gap with the most shards comes first.
func Gaps(uncovered []*searchv1.UncoveredShard) (gaps []Gap) {
	for _, u := range uncovered {
		i := slices.IndexFunc(gaps, func(g Gap) bool { return g.Reason == u.GetReason() && g.InPart == u.GetInPart() })
		if i < 0 {
			i = len(gaps)
			gaps = append(gaps, Gap{Reason: u.GetReason(), InPart: u.GetInPart(), Message: u.GetMessage()})
		}
		gaps[i].Shards++
		gaps[i].Repos = append(gaps[i].Repos, u.GetRepos()...)
	}
	for i := range gaps {
		slices.Sort(gaps[i].Repos)
		gaps[i].Repos = slices.Compact(gaps[i].Repos)
	}
	slices.SortStableFunc(gaps, func(a, b Gap) int { return cmp.Compare(b.Shards, a.Shards) })
	return gaps
}

// NamedRepos bounds the repos that are named of a gap.
const NamedRepos = 5

// Named are the first of the repos, and how many others there are.
func (g Gap) Named() (repos []string, others int) {
	n := min(len(g.Repos), NamedRepos)
	return g.Repos[:n], len(g.Repos) - n
}

// Outcome is "not searched" or "searched in part".
func (g Gap) Outcome() string {
	if g.InPart {
		return "searched in part"
	}
	return "not searched"
}
