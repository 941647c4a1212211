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

// ListInWindows sets the size of the first window of lists, in repos.
func (s *Service) ListInWindows(size int) { s.firstWindow = size }
