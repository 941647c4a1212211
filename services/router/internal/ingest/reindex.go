package ingest

import (
	"context"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/queue"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
)

// Admin is the admin service of a router: it has repos indexed again, takes searchers out
// of service, and changes limits. It is safe for concurrent use. The router admits only callers with the scope admin.
type Admin struct {
	adminv1.UnimplementedAdminServiceServer
	etcd        *clientv3.Client
	repos       *Service
	store       *catalog.Store
	replication int
	limits      Limits
	log         *slog.Logger
}

// NewAdmin returns a service for the records of the service repos, whose client is etcd. replication is how many
// searchers are to hold each shard.
func NewAdmin(etcd *clientv3.Client, repos *Service, replication int, limits Limits) *Admin {
	return &Admin{etcd: etcd, repos: repos, store: repos.store, replication: replication, limits: limits, log: repos.log}
}

// ReindexRepo implements adminv1.AdminServiceServer.
func (s *Admin) ReindexRepo(ctx context.Context, req *adminv1.ReindexRepoRequest) (*adminv1.ReindexRepoResponse, error) {
	if !access.Sees(ctx, req.Name) {
		return nil, s.repos.noRepo(ctx, req.Name)
	}
	since := time.Now()
	if at := req.UnlessBuiltSince; at != nil && at.AsTime().Before(since) {
		since = at.AsTime()
	}
	epoch, requested, err := s.store.RequestFullBuild(ctx, req.Name, since)
	if err != nil {
		return nil, s.repos.repoError(ctx, "reindex repo", req.Name, err)
	}
	if requested {
		queue.Wake(ctx, s.repos.jobs, queue.Job{Repo: req.Name, Epoch: epoch, Bulk: true}, s.log)
	}
	return &adminv1.ReindexRepoResponse{Epoch: epoch, Requested: requested}, nil
}
