// Package admin serves what operators do to a running Trawl: indexing repos again, and
// taking searchers out of service.
package admin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/searchapi"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
)

// wakeTimeout bounds the wake-up of an indexer. That may fail: the reconciler finds the
// request in etcd.
const wakeTimeout = time.Second

// Jobs wakes indexers.
type Jobs interface {
	Publish(ctx context.Context, job queue.Job) error
}

// Service is the admin service of a router. It is safe for concurrent use. The router lets
// only callers with the scope admin in.
type Service struct {
	adminv1.UnimplementedAdminServiceServer
	etcd        *clientv3.Client
	store       *catalog.Store
	jobs        Jobs
	replication int
	log         *slog.Logger
}

// New returns a service of the records of a store, whose client is etcd. replication is how many
// searchers are to hold each shard.
func New(etcd *clientv3.Client, store *catalog.Store, jobs Jobs, replication int, log *slog.Logger) *Service {
	return &Service{etcd: etcd, store: store, jobs: jobs, replication: replication, log: log}
}

// ReindexRepo implements adminv1.AdminServiceServer.
func (s *Service) ReindexRepo(ctx context.Context, req *adminv1.ReindexRepoRequest) (*adminv1.ReindexRepoResponse, error) {
	if !access.Sees(ctx, req.Name) {
		return nil, errNoRepo
	}
	since := time.Now()
	if at := req.UnlessBuiltSince; at != nil && at.AsTime().Before(since) {
		since = at.AsTime()
	}
	epoch, requested, err := s.store.RequestFullBuild(ctx, req.Name, since)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return nil, errNoRepo
	case err != nil:
		return nil, storeError(ctx, "reindex repo", err)
	}
	if requested {
		s.wake(ctx, queue.Job{Repo: req.Name, Epoch: epoch})
	}
	return &adminv1.ReindexRepoResponse{Epoch: epoch, Requested: requested}, nil
}

func (s *Service) wake(ctx context.Context, job queue.Job) {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	if err := s.jobs.Publish(ctx, job); err != nil {
		s.log.WarnContext(ctx, "could not wake an indexer; the reconciler will find the request", "repo", job.Repo, "epoch", job.Epoch, "error", err)
	}
}

// errNoRepo is also the error for a repo that the caller may not see.
var errNoRepo = searchapi.FieldError(codes.NotFound, "name", "there is no such repo")

// storeError is the status of an error of etcd.
func storeError(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Errorf(codes.Unavailable, "%s: %v", what, err)
}
