package ingest

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// defaultLetters is the default size of a page of dead letters. Each costs one request to
// the queue.
const defaultLetters = 100

// ListDeadLetters implements ingestv1.IngestServiceServer.
func (s *Service) ListDeadLetters(ctx context.Context, req *ingestv1.ListDeadLettersRequest) (*ingestv1.ListDeadLettersResponse, error) {
	leave, err := s.admit(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	limit := cmp.Or(int(req.PageSize), defaultLetters)
	resp := &ingestv1.ListDeadLettersResponse{}
	for letter, err := range s.jobs.DeadLetters(ctx, req.After) {
		if err != nil {
			return nil, queueError(ctx, "list dead letters", err)
		}
		if !access.Sees(ctx, letter.Repo) {
			continue
		}
		resp.Letters = append(resp.Letters, letterOf(letter))
		if len(resp.Letters) == limit {
			resp.NextAfter = letter.Place
			break
		}
	}
	return resp, nil
}

// GetDeadLetter implements ingestv1.IngestServiceServer.
func (s *Service) GetDeadLetter(ctx context.Context, req *ingestv1.GetDeadLetterRequest) (*ingestv1.GetDeadLetterResponse, error) {
	if !access.Sees(ctx, req.Name) {
		return nil, errNoLetter()
	}
	letter, err := s.jobs.DeadLetter(ctx, req.Name)
	if err != nil {
		return nil, queueError(ctx, "get dead letter", err)
	}
	return &ingestv1.GetDeadLetterResponse{Letter: letterOf(letter)}, nil
}

// RetryDeadLetter implements ingestv1.IngestServiceServer. The status
// changes first, so that the reconciler enqueues the job if this call is interrupted. The
// letter goes last, so that its reason is kept until the job is back.
func (s *Service) RetryDeadLetter(ctx context.Context, req *ingestv1.RetryDeadLetterRequest) (*ingestv1.RetryDeadLetterResponse, error) {
	if !access.Sees(ctx, req.Name) {
		return nil, errNoLetter()
	}
	if err := s.quota.take(ctx, 0); err != nil {
		return nil, err
	}
	if _, err := s.jobs.DeadLetter(ctx, req.Name); err != nil {
		return nil, queueError(ctx, "retry dead letter", err)
	}
	repo, err := s.store.RepoStatus(ctx, req.Name)
	if errors.Is(err, catalog.ErrNotFound) {
		s.forget(ctx, req.Name)
	}
	if err != nil {
		return nil, storeError(ctx, "retry dead letter", err)
	}
	if repo.PublishedEpoch < repo.Epoch {
		if err := s.retry(ctx, repo); err != nil {
			return nil, err
		}
	}
	s.forget(ctx, req.Name)
	return &ingestv1.RetryDeadLetterResponse{Epoch: repo.Epoch}, nil
}

// retry makes the newest request of a repo wait for an indexer again.
func (s *Service) retry(ctx context.Context, repo *ingestv1.RepoStatus) error {
	queued := &catalogv1.Status{State: ingestv1.State_STATE_QUEUED, Epoch: repo.Epoch, UpdatedAt: timestamppb.Now()}
	err := s.store.PutStatus(ctx, repo.Name, queued, nil)
	if err != nil && !errors.Is(err, catalog.ErrStale) { // stale: there is a newer request
		return storeError(ctx, "retry dead letter", err)
	}
	// The attempt keeps the queue from dropping the job as a duplicate.
	job := queue.Job{Repo: repo.Name, Epoch: repo.Epoch, Attempt: uint64(time.Now().UnixMilli())}
	if err := s.jobs.Publish(ctx, job); err != nil {
		return queueError(ctx, "retry dead letter", err)
	}
	return nil
}

// forgetTimeout bounds how long forget waits for a queue that is away.
const forgetTimeout = time.Second

// forget drops an obsolete dead letter. It does not wait long for an unavailable queue:
// letters expire by themselves.
func (s *Service) forget(ctx context.Context, repo string) {
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	if err := s.jobs.Forget(ctx, repo); err != nil {
		s.log.WarnContext(ctx, "could not remove a dead letter", "repo", repo, "error", err)
	}
}

func letterOf(l queue.DeadLetter) *ingestv1.DeadLetter {
	return &ingestv1.DeadLetter{
		Name: l.Repo, Epoch: l.Epoch, Reason: l.Reason, Attempts: uint32(l.NumDelivered), GivenUpAt: timestamppb.New(l.Time),
	}
}

// errNoLetter is also the error for a repo that the caller may not see.
var errNoLetter = sync.OnceValue(func() error {
	return searchapi.FieldError(codes.NotFound, "name", "the repo has no job that was given up")
})

// queueError is the status of an error of the queue.
func queueError(ctx context.Context, what string, err error) error {
	if errors.Is(err, queue.ErrNoLetter) {
		return errNoLetter()
	}
	return backendError(ctx, what, "the queue", err)
}
