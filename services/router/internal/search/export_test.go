package search

import (
	"context"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// Select selects shards for a query of one round.
func (l *Layout) Select(ctx context.Context, q query.Q) (wanted []searchapi.Shard, err error) {
	return l.selectWith(ctx, q, newExpressions(nil))
}
