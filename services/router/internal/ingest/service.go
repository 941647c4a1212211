// Package ingest serves the desired set of repos: what is acknowledged is in
// etcd before the answer is sent, and the queue is only woken afterwards.
package ingest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/searchwire"
	"github.com/trawl-search/trawl/internal/source/origin"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// wakeTimeout bounds the wake-up that follows an acknowledged request: it may
// fail, since the reconciler finds the request in etcd.
const wakeTimeout = time.Second

// Jobs wakes indexers.
type Jobs interface {
	Publish(ctx context.Context, job queue.Job) error
}

// Service is the ingest service of a router. It is safe for concurrent use.
type Service struct {
	ingestv1.UnimplementedIngestServiceServer
	store  *catalog.Store
	jobs   Jobs
	policy origin.Policy
	log    *slog.Logger
	// draining is closed when streams must end.
	draining <-chan struct{}
}

// New makes a service. Watches end when draining is closed.
func New(store *catalog.Store, jobs Jobs, policy origin.Policy, draining <-chan struct{}, log *slog.Logger) *Service {
	return &Service{store: store, jobs: jobs, policy: policy, draining: draining, log: log}
}

// PutRepo implements ingestv1.IngestServiceServer.
func (s *Service) PutRepo(ctx context.Context, req *ingestv1.PutRepoRequest) (*ingestv1.PutRepoResponse, error) {
	name, err := s.check(req)
	if err != nil {
		return nil, err
	}
	epoch, _, err := s.store.PutDesired(ctx, &catalogv1.Desired{
		Name: name, Url: req.Url, Branches: req.Branches, Facts: req.Facts, RequestedAt: timestamppb.Now(),
	})
	if err != nil {
		return nil, storeError("put repo", err)
	}
	s.wake(ctx, queue.Job{Repo: name, Epoch: epoch})
	return &ingestv1.PutRepoResponse{Name: name, Epoch: epoch}, nil
}

// check returns the repo's name, or which rule the request breaks.
func (s *Service) check(req *ingestv1.PutRepoRequest) (name string, err error) {
	if err := origin.CheckURL(req.Url, s.policy); err != nil {
		return "", ruleError("url", err)
	}
	for _, b := range req.Branches {
		if err := origin.CheckBranch(b); err != nil {
			return "", ruleError("branches", err)
		}
	}
	if req.Name != "" {
		if err := origin.CheckName(req.Name); err != nil {
			return "", ruleError("name", err)
		}
		return req.Name, nil
	}
	if name, err = origin.RepoName(req.Url); err != nil {
		return "", ruleError("url", err)
	}
	return name, nil
}

// wake must not keep the caller waiting for a queue that is away.
func (s *Service) wake(ctx context.Context, job queue.Job) {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	if err := s.jobs.Publish(ctx, job); err != nil {
		s.log.WarnContext(ctx, "no indexer was woken; the reconciler will find the request", "repo", job.Repo, "epoch", job.Epoch, "error", err)
	}
}

// DeleteRepo implements ingestv1.IngestServiceServer.
func (s *Service) DeleteRepo(ctx context.Context, req *ingestv1.DeleteRepoRequest) (*ingestv1.DeleteRepoResponse, error) {
	revision, err := s.store.DeleteRepo(ctx, req.Name)
	if err != nil {
		return nil, storeError("delete repo", err)
	}
	return &ingestv1.DeleteRepoResponse{RevisionToken: catalog.EncodeToken(revision)}, nil
}

// GetRepo implements ingestv1.IngestServiceServer.
func (s *Service) GetRepo(ctx context.Context, req *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
	repo, err := s.store.RepoStatus(ctx, req.Name)
	if err != nil {
		return nil, storeError("get repo", err)
	}
	return &ingestv1.GetRepoResponse{Status: repo}, nil
}

// defaultPage is how many repos a page has when the request does not say.
const defaultPage = 1000

// ListRepos implements ingestv1.IngestServiceServer.
func (s *Service) ListRepos(ctx context.Context, req *ingestv1.ListReposRequest) (*ingestv1.ListReposResponse, error) {
	limit := int(req.PageSize)
	if limit == 0 {
		limit = defaultPage
	}
	repos, more, err := s.store.ListRepoStatus(ctx, req.Prefix, req.After, limit)
	if err != nil {
		return nil, storeError("list repos", err)
	}
	resp := &ingestv1.ListReposResponse{Repos: repos}
	if more && len(repos) > 0 {
		resp.NextAfter = repos[len(repos)-1].Name
	}
	return resp, nil
}

// storeError is the status of an error of the catalog.
func storeError(what string, err error) error {
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return searchwire.FieldError(codes.NotFound, "name", "there is no such repo")
	case errors.Is(err, catalog.ErrName), errors.Is(err, catalog.ErrTooLarge):
		return searchwire.FieldError(codes.InvalidArgument, "name", err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status.FromContextError(err).Err()
	}
	return status.Errorf(codes.Unavailable, "%s: %v", what, err)
}

func ruleError(field string, err error) error {
	return searchwire.FieldError(codes.InvalidArgument, field, err.Error())
}
