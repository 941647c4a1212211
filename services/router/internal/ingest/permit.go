package ingest

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// permit reports whether the caller may have the repository at a URL indexed under a
// name, and returns the condition on its facts and on a repo of this name that is there already.
//
// The indexer fetches with its own credentials, which may reach repositories that the caller may
// not see. So the caller must see both the name and the repository at the URL, by the name that its
// URL implies. Only an administrator may give it another name, or a name another URL. Only an
// administrator may raise a rank, since ranks order everybody's answers, or give an id, by which programs know the repo. No error
// depends on which repos there are, except those that the caller sees.
func permit(ctx context.Context, name, url string) (replaceable func(old *catalogv1.Desired, facts *ingestv1.RepoFacts) error, err error) {
	caller, err := access.From(ctx)
	if err != nil || !caller.Sees(name) {
		return nil, searchapi.FieldError(codes.PermissionDenied, "name", fmt.Sprintf("your token does not allow a repo named %q", name))
	}
	administers := caller.May(access.ScopeAdmin)
	if administers && access.SeesAll(caller) {
		return anyRepo, nil
	}
	own, err := origin.RepoName(url)
	if err != nil {
		return nil, ruleError("url", err)
	}
	switch {
	case !caller.Sees(own):
		return nil, searchapi.FieldError(codes.PermissionDenied, "url", fmt.Sprintf("your token does not allow the repository at this URL, which is %q", own))
	case administers:
		return anyRepo, nil
	case name != own:
		return nil, searchapi.FieldError(codes.PermissionDenied, "name",
			fmt.Sprintf("the repository at this URL is %q: leave out the name, or use a token with the scope admin to give it another one", own))
	}
	return func(old *catalogv1.Desired, facts *ingestv1.RepoFacts) error {
		if facts.GetRank() > old.GetFacts().GetRank() {
			return searchapi.FieldError(codes.PermissionDenied, "facts.rank",
				fmt.Sprintf("raising the rank of %q needs a token with the scope admin: it orders everybody's answers", name))
		}
		if id := facts.GetId(); id != 0 && id != old.GetFacts().GetId() {
			return searchapi.FieldError(codes.PermissionDenied, "facts.id",
				fmt.Sprintf("giving %q an id needs a token with the scope admin: other programs take the repo for the one with that id", name))
		}
		if old == nil || origin.SameRepository(old.GetUrl(), url) {
			return nil
		}
		return searchapi.FieldError(codes.PermissionDenied, "url",
			fmt.Sprintf("%q is indexed from another URL: changing it needs a token with the scope admin", name))
	}, nil
}

func anyRepo(*catalogv1.Desired, *ingestv1.RepoFacts) error { return nil }
