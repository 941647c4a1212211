package ingest_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/limits"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/router/internal/ingest"
)

// callsOf are calls that read or change what is in etcd, by what their errors say that they do.
func callsOf(repos *ingest.Service, admin *ingest.Admin, sources *ingest.Sources) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"put repo": func(ctx context.Context) error {
			_, err := repos.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: "https://git.example.com/a"})
			return err
		},
		"delete repo": func(ctx context.Context) error {
			_, err := repos.DeleteRepo(ctx, &ingestv1.DeleteRepoRequest{Name: "a"})
			return err
		},
		"get repo": func(ctx context.Context) error {
			_, err := repos.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: "a"})
			return err
		},
		"get deletion": func(ctx context.Context) error {
			_, err := repos.GetDeletion(ctx, &ingestv1.GetDeletionRequest{Name: "a"})
			return err
		},
		"list repos": func(ctx context.Context) error {
			_, err := repos.ListRepos(ctx, &ingestv1.ListReposRequest{})
			return err
		},
		"list stale repos": func(ctx context.Context) error {
			_, err := repos.ListStaleRepos(ctx, &ingestv1.ListStaleReposRequest{})
			return err
		},
		"reindex repo": func(ctx context.Context) error {
			_, err := admin.ReindexRepo(ctx, &adminv1.ReindexRepoRequest{Name: "a"})
			return err
		},
		"list limits": func(ctx context.Context) error {
			_, err := admin.ListLimits(ctx, &adminv1.ListLimitsRequest{})
			return err
		},
		"set limit": func(ctx context.Context) error {
			_, err := admin.SetLimit(ctx, &adminv1.SetLimitRequest{Name: string(limits.ReposPerMinute), Value: "5"})
			return err
		},
		"list searchers": func(ctx context.Context) error {
			_, err := admin.ListSearchers(ctx, &adminv1.ListSearchersRequest{})
			return err
		},
		"drain searcher": func(ctx context.Context) error {
			_, err := admin.DrainSearcher(ctx, &adminv1.DrainSearcherRequest{Id: "a"})
			return err
		},
		"list sources": func(ctx context.Context) error {
			_, err := sources.ListSources(ctx, &ingestv1.ListSourcesRequest{})
			return err
		},
		"apply sources": func(ctx context.Context) error {
			_, err := sources.ApplySources(ctx, &ingestv1.ApplySourcesRequest{})
			return err
		},
	}
}

// TestEtcdFails: callers get a plain sentence with a code, whatever etcd says, and the log gets what it says.
func TestEtcdFails(t *testing.T) {
	var failure error
	client := etcdtest.New().Client(func(context.Context) error { return failure })
	store := catalog.New(client, "")
	repos := ingest.New(store, letters{t: t}, ingest.Config{Policy: origin.Policy{Schemes: []string{"https"}}, PerMinute: 1, Admit: everybody, NearestRepos: pond}, space(store), nil, slog.New(slog.DiscardHandler))
	admin := ingest.NewAdmin(client, repos, 1, ingest.Limits{Store: limits.NewStore(client, ""), Tokens: access.NewStore(client, "")})
	sources := ingest.NewSources(store, origin.Policy{Schemes: []string{"https"}})
	calls := callsOf(repos, admin, sources)
	ended, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, tt := range []struct {
		ctx     context.Context
		failure error
		want    codes.Code
	}{
		{t.Context(), rpctypes.ErrGRPCTimeout, codes.Unavailable},
		{t.Context(), rpctypes.ErrGRPCNoSpace, codes.Unavailable},
		{t.Context(), status.Error(codes.Unavailable, "dial tcp 10.0.0.1:2379: connection refused"), codes.Unavailable},
		{t.Context(), context.DeadlineExceeded, codes.Unavailable}, // of the client of etcd, not of the call
		{ended, context.DeadlineExceeded, codes.DeadlineExceeded},
	} {
		failure = tt.failure
		for what, call := range calls {
			err := call(access.With(tt.ctx, access.Anyone))
			s := status.Convert(err)
			if s.Code() != tt.want || !strings.HasPrefix(s.Message(), what+": etcd ") || strings.Count(s.Message(), ":") > 2 {
				t.Errorf("%s, %v: %v %q", what, tt.failure, s.Code(), s.Message())
			}
			if text := status.Convert(tt.failure).Message(); strings.Contains(s.Message(), text) || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: callers get %q, the log %q", what, s.Message(), err)
			}
		}
	}
}
