package ingest

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// defaultStalePage is how many stale repos a page has when the request does not say.
const defaultStalePage = 100

// ListStaleRepos implements ingestv1.IngestServiceServer. It looks at all repos, and
// holds one page of them.
func (s *Service) ListStaleRepos(ctx context.Context, req *ingestv1.ListStaleReposRequest) (*ingestv1.ListStaleReposResponse, error) {
	after, err := parsePlace(req.After)
	if err != nil {
		return nil, ruleError("after", err)
	}
	limit := cmp.Or(int(req.PageSize), defaultStalePage)
	latest := time.Now().Add(-req.OlderThan.AsDuration())
	var page stalest
	for name, more := "", true; more; {
		var repos []*ingestv1.RepoStatus
		if repos, more, err = s.store.ListRepoStatus(ctx, req.Prefix, name, 0); err != nil {
			return nil, storeError("list stale repos", err)
		}
		for _, repo := range repos {
			name = repo.Name
			since := repo.GetFreshness().GetBehindSince()
			if since == nil || since.AsTime().After(latest) || !access.Sees(ctx, name) || placeOf(repo).compare(after) <= 0 {
				continue
			}
			heap.Push(&page, repo)
			if len(page) > limit+1 { // one more than a page tells that there are more
				heap.Pop(&page)
			}
		}
		more = more && len(repos) > 0
	}
	return page.response(limit), nil
}

// stalest is a heap of the repos that are behind for longest, the last of them on top.
type stalest []*ingestv1.RepoStatus

func (h stalest) Len() int           { return len(h) }
func (h stalest) Less(i, j int) bool { return placeOf(h[i]).compare(placeOf(h[j])) > 0 }
func (h stalest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *stalest) Push(x any) { *h = append(*h, x.(*ingestv1.RepoStatus)) }

// Pop implements heap.Interface.
func (h *stalest) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// response empties the heap into a page.
func (h *stalest) response(limit int) *ingestv1.ListStaleReposResponse {
	resp := &ingestv1.ListStaleReposResponse{}
	more := len(*h) > limit
	if more {
		heap.Pop(h)
	}
	resp.Repos = make([]*ingestv1.RepoStatus, len(*h))
	for i := len(*h) - 1; i >= 0; i-- {
		resp.Repos[i] = heap.Pop(h).(*ingestv1.RepoStatus)
	}
	if more {
		resp.NextAfter = placeOf(resp.Repos[limit-1]).String()
	}
	return resp
}

// place is where a repo stands in the order: by the time since when it is behind,
// then by name.
type place struct {
	since int64 // Unix time in nanoseconds
	name  string
}

func placeOf(repo *ingestv1.RepoStatus) place {
	return place{repo.GetFreshness().GetBehindSince().AsTime().UnixNano(), repo.GetName()}
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.since, q.since), cmp.Compare(p.name, q.name))
}

func (p place) String() string { return fmt.Sprintf("%d/%s", p.since, p.name) }

// parsePlace is the inverse of String; nothing is the place before all.
func parsePlace(text string) (place, error) {
	if text == "" {
		return place{since: -1 << 63}, nil
	}
	since, name, _ := strings.Cut(text, "/")
	at, err := strconv.ParseInt(since, 10, 64)
	if err != nil || name == "" {
		return place{}, errors.New("it is not what a page before gave to go on with")
	}
	return place{at, name}, nil
}
