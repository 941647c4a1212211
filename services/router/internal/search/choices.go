package search

import (
	"strconv"
	"strings"
	"sync"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
)

// A chunk keeps the shards that the last filters chose among its repos, so that a filter that comes again looks only at the
// repos of chunks that have changed. What a chunk as a whole rules out is found anew as fast. keptFilters bounds the filters that have a number, and keptChoices those that a chunk
// keeps: at most 512 bytes each.
const (
	keptFilters = 64
	keptChoices = 8
)

// chosen are the shards of a chunk that a filter does not rule out.
type chosen struct {
	filter uint64
	shards []uint32
}

// choice returns the shards that a filter chose in the chunk, if it is known. Filter 0 never is.
func (c *chunk) choice(filter uint64) (shards []uint32, known bool) {
	if kept := c.chosen.Load(); kept != nil && filter != 0 {
		for i := range *kept {
			if (*kept)[i].filter == filter {
				return (*kept)[i].shards, true
			}
		}
	}
	return nil, false
}

// choose keeps what a filter chose, in place of the oldest.
func (c *chunk) choose(filter uint64, shards []uint32) {
	if filter == 0 {
		return
	}
	kept := []chosen{{filter, shards}}
	if before := c.chosen.Load(); before != nil {
		kept = append(kept, (*before)[:min(len(*before), keptChoices-1)]...)
	}
	c.chosen.Store(&kept)
}

// choices numbers filters. It is safe for concurrent use.
type choices struct {
	mu      sync.Mutex
	numbers map[string]uint64
	last    uint64
}

func newChoices() *choices { return &choices{numbers: make(map[string]uint64)} }

// number is the same for the same filter, until many others came.
func (c *choices) number(filter string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, known := c.numbers[filter]; known {
		return n
	}
	if len(c.numbers) >= keptFilters {
		clear(c.numbers)
	}
	c.last++
	c.numbers[filter] = c.last
	return c.last
}

// filterBytes bounds a filter that is kept.
const filterBytes = 1 << 10

// filterKey describes what of a query decides about shards. It is not ok if that is too long to be kept, or if it
// depends on more than the roots of a chunk: on languages, where a shard may have hidden ones.
func filterKey(q query.Q, hiding bool) (key string, ok bool) {
	var b strings.Builder
	ok = writeFilter(&b, q, hiding)
	return b.String(), ok && b.Len() <= filterBytes
}

func writeFilter(b *strings.Builder, q query.Q, hiding bool) bool {
	all := func(name string, children ...query.Q) bool {
		b.WriteString(name + "(")
		for _, c := range children {
			if b.Len() > filterBytes || !writeFilter(b, c, hiding) {
				return false
			}
		}
		b.WriteString(")")
		return true
	}
	switch q := q.(type) {
	case *query.And:
		return all("and", q.Children...)
	case *query.Or:
		return all("or", q.Children...)
	case *query.Not:
		return all("not", q.Child)
	case *query.Type:
		if q.Kind != query.KindRepo {
			return writeFilter(b, q.Child, hiding)
		}
	case *query.Const:
		b.WriteString(strconv.FormatBool(q.Value))
		return true
	case *query.Repo:
		b.WriteString("repo" + strconv.Quote(regex.Source(q.Tree, true)))
		return true
	case *query.RepoSet:
		return false
	case *query.Branch:
		b.WriteString("branch" + strconv.Quote(q.Pattern) + strconv.FormatBool(q.Exact))
		return true
	case *query.Language:
		b.WriteString("language" + strconv.Quote(q.Name))
		return !hiding
	}
	b.WriteString("?") // roots do not decide it
	return true
}
