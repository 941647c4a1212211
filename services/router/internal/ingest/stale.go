package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// defaultStalePage is the default size of a page of stale repos.
const defaultStalePage = 100

// ListStaleRepos implements ingestv1.IngestServiceServer. It reads all repos, and
// keeps one page of them in memory.
func (s *Service) ListStaleRepos(ctx context.Context, req *ingestv1.ListStaleReposRequest) (*ingestv1.ListStaleReposResponse, error) {
	after, err := parsePlace(req.After)
	if err != nil {
		return nil, ruleError("after", err)
	}
	leave, err := s.admit(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	limit := cmp.Or(int(req.PageSize), defaultStalePage)
	latest := time.Now().Add(-req.OlderThan.AsDuration())
	var page []*ingestv1.RepoStatus // in order, and one more than fits: it shows that there is another page
	for name, more := "", true; more; {
		var repos []*ingestv1.RepoStatus
		if repos, more, err = s.store.ListRepoStatus(ctx, req.Prefix, name, 0); err != nil {
			return nil, storeError(ctx, "list stale repos", err)
		}
		for _, repo := range repos {
			name = repo.Name
			since := repo.GetFreshness().GetBehindSince()
			if since == nil || since.AsTime().After(latest) || !access.Sees(ctx, name) || placeOf(repo).compare(after) <= 0 {
				continue
			}
			at, _ := slices.BinarySearchFunc(page, placeOf(repo), func(r *ingestv1.RepoStatus, p place) int { return placeOf(r).compare(p) })
			page = slices.Insert(page, at, repo)
			page = page[:min(len(page), limit+1)]
		}
		more = more && len(repos) > 0
	}
	resp := &ingestv1.ListStaleReposResponse{Repos: page}
	if len(page) > limit {
		resp.Repos, resp.NextAfter = page[:limit], placeOf(page[limit-1]).String()
	}
	return resp, nil
}

// place is the place of a repo in the order of a page: by the time since it has been
// stale, then by name.
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

// parsePlace is the inverse of String. The empty text is the place before all repos.
func parsePlace(text string) (place, error) {
	if text == "" {
		return place{since: -1 << 63}, nil
	}
	since, name, _ := strings.Cut(text, "/")
	at, err := strconv.ParseInt(since, 10, 64)
	if err != nil || name == "" {
		return place{}, errors.New("it is not the next_after of a previous page")
	}
	return place{at, name}, nil
}
