// Package ingest changes the desired state in etcd for callers, operators and webhooks: which repos are
// indexed, from which sources, and which searchers hold shards. It writes a request to index
// to etcd before it acknowledges it, and then wakes an indexer through the queue.
package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Jobs is the queue: it wakes indexers, and keeps the jobs that they gave up.
type Jobs interface {
	queue.Publisher
	DeadLetter(ctx context.Context, repo string) (queue.DeadLetter, error)
	DeadLetters(ctx context.Context, after uint64) iter.Seq2[queue.DeadLetter, error]
	Forget(ctx context.Context, repo string) error
}

// Service is the ingest service of a router. It is safe for concurrent use.
type Service struct {
	ingestv1.UnimplementedIngestServiceServer
	store  *catalog.Store
	jobs   Jobs
	policy origin.Policy
	quota  *quota
	admit  func(context.Context) (leave func(), err error)
	near   func(ctx context.Context, name string) ([]string, error)
	space  *Space
	log    *slog.Logger
	// draining is closed when the router drains and streams must end.
	draining <-chan struct{}
}

// Config says what callers may ask for.
type Config struct {
	// Policy decides which URLs are allowed.
	Policy origin.Policy
	// PerMinute bounds the requests to index of each caller who is not an administrator.
	PerMinute int
	// Live overrides PerMinute; nil: nothing does.
	Live *limits.Live
	// Admit admits a call that reads all repos, or refuses it with a status. The call ends with leave.
	Admit func(context.Context) (leave func(), err error)
	// NearestRepos are the names that differ least from that of a repo that does not exist, of the repos that the caller may see.
	NearestRepos func(ctx context.Context, name string) ([]string, error)
}

// New returns a service, which puts repos while there is space. Watches end when draining is closed.
func New(store *catalog.Store, jobs Jobs, cfg Config, space *Space, draining <-chan struct{}, log *slog.Logger) *Service {
	return &Service{
		store: store, jobs: jobs, policy: cfg.Policy, quota: newQuota(cfg.PerMinute, cfg.Live), admit: cfg.Admit, near: cfg.NearestRepos,
		space: space, draining: draining, log: log,
	}
}

// PutRepo implements ingestv1.IngestServiceServer.
func (s *Service) PutRepo(ctx context.Context, req *ingestv1.PutRepoRequest) (*ingestv1.PutRepoResponse, error) {
	name, err := s.check(req)
	if err != nil {
		return nil, err
	}
	replaceable, err := permit(ctx, name, req.Url)
	if err != nil {
		return nil, err
	}
	desired := &catalogv1.Desired{
		Name: name, Url: req.Url, Branches: req.Branches, Facts: req.Facts, RequestedAt: timestamppb.Now(),
	}
	bytes := proto.Size(desired)
	if err := s.charge(ctx, bytes); err != nil {
		return nil, err
	}
	var refused error
	isNew, caller := false, limited(ctx)
	epoch, _, err := s.store.PutDesiredIf(ctx, desired, caller, func(old *catalogv1.Desired) error {
		isNew = old == nil
		kept := &catalogv1.Desired{}
		if old != nil && origin.MayShareName(old.Url, req.Url) { // those of another repository say nothing of this one
			kept = old
		}
		if len(req.Branches) == 0 {
			desired.Branches = kept.Branches
		}
		desired.Facts = merge(kept.Facts, req)
		refused = replaceable(old, desired.Facts)
		if size := proto.Size(desired); refused == nil && size >= bytes+unit { // what is kept is written, too
			bytes, refused = size, s.charge(ctx, size-bytes)
		}
		switch {
		case refused != nil:
		case old == nil:
			refused = s.space.add(ctx, caller)
		case req.Name == "" && !origin.MayShareName(old.GetUrl(), req.Url):
			refused = searchapi.FieldError(codes.AlreadyExists, "name", fmt.Sprintf(
				"%q is already the name of the repository at %s: choose a name for one of them, as with trawl index --name, or delete the other one first",
				name, old.GetUrl()))
		}
		return refused
	})
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, storeError(ctx, "put repo", err)
	}
	queue.Wake(ctx, s.jobs, queue.Job{Repo: name, Epoch: epoch, Bulk: isNew}, s.log)
	return &ingestv1.PutRepoResponse{Name: name, Epoch: epoch}, nil
}

// merge returns the facts of a repo after a request: those that it gives, and the others as the repo has them.
func merge(kept *ingestv1.RepoFacts, req *ingestv1.PutRepoRequest) *ingestv1.RepoFacts {
	switch {
	case len(req.FactsMask.GetPaths()) > 0:
	case req.Facts != nil:
		return req.Facts
	default:
		return kept
	}
	merged := &ingestv1.RepoFacts{}
	proto.Merge(merged, kept)
	to, from := merged.ProtoReflect(), req.Facts.ProtoReflect()
	for _, name := range req.FactsMask.Paths {
		field := to.Descriptor().Fields().ByName(protoreflect.Name(name))
		if to.Clear(field); from.Has(field) {
			to.Set(field, from.Get(field))
		}
	}
	return merged
}

// charge counts bytes that a request puts.
func (s *Service) charge(ctx context.Context, bytes int) error {
	if err := s.quota.take(ctx, bytes); err != nil {
		return err
	}
	return s.space.take(ctx, bytes)
}

// check validates the request and returns the name of its repo.
func (s *Service) check(req *ingestv1.PutRepoRequest) (name string, err error) {
	if err := origin.CheckURL(req.Url, s.policy); err != nil {
		return "", ruleError("url", err)
	}
	for _, b := range req.Branches {
		if err := origin.CheckBranchPattern(b); err != nil {
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

// DeleteRepo implements ingestv1.IngestServiceServer.
func (s *Service) DeleteRepo(ctx context.Context, req *ingestv1.DeleteRepoRequest) (*ingestv1.DeleteRepoResponse, error) {
	if !access.Sees(ctx, req.Name) {
		return nil, s.noRepo(ctx, req.Name)
	}
	revision, err := s.store.DeleteRepo(ctx, req.Name)
	if err != nil {
		return nil, s.repoError(ctx, "delete repo", req.Name, err)
	}
	s.forget(ctx, req.Name)
	return &ingestv1.DeleteRepoResponse{RevisionToken: catalog.EncodeToken(revision)}, nil
}

// GetRepo implements ingestv1.IngestServiceServer.
func (s *Service) GetRepo(ctx context.Context, req *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
	if !access.Sees(ctx, req.Name) {
		return nil, s.noRepo(ctx, req.Name)
	}
	repo, desired, err := s.store.Repo(ctx, req.Name)
	if err != nil {
		return nil, s.repoError(ctx, "get repo", req.Name, err)
	}
	return &ingestv1.GetRepoResponse{Status: repo, Branches: desired.Branches, Facts: desired.Facts}, nil
}

// defaultPage is the default size of a page of repos.
const defaultPage = 1000

// ListRepos implements ingestv1.IngestServiceServer. A page of visible
// repos may take several pages of all repos.
func (s *Service) ListRepos(ctx context.Context, req *ingestv1.ListReposRequest) (*ingestv1.ListReposResponse, error) {
	leave, err := s.admit(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	limit := cmp.Or(int(req.PageSize), defaultPage)
	resp := &ingestv1.ListReposResponse{}
	for after, more := req.After, true; more; {
		var repos []*ingestv1.RepoStatus
		if repos, more, err = s.store.ListRepoStatus(ctx, req.Prefix, after, limit+1); err != nil {
			return nil, storeError(ctx, "list repos", err)
		}
		for _, repo := range repos {
			if after = repo.Name; !access.Sees(ctx, repo.Name) {
				continue
			}
			if len(resp.Repos) == limit { // there is one more
				resp.NextAfter = resp.Repos[limit-1].Name
				return resp, nil
			}
			resp.Repos = append(resp.Repos, repo)
		}
		more = more && len(repos) > 0
	}
	return resp, nil
}

// noRepo is the error for a repo that does not exist and for one that the caller may
// not see: it must not reveal which.
func (s *Service) noRepo(ctx context.Context, name string) error {
	leave, err := s.admit(ctx)
	if err != nil {
		return errNoRepo()
	}
	defer leave()
	near, _ := s.near(ctx, name) // without them it says the same
	return searchapi.NotFound("name", noRepoText, near)
}

// repoError is the status of an error of the catalog about a repo.
func (s *Service) repoError(ctx context.Context, what, name string, err error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		return s.noRepo(ctx, name)
	}
	return storeError(ctx, what, err)
}

const noRepoText = "there is no such repo, or you may not see it"

// errNoRepo is noRepo without the names that are near.
var errNoRepo = sync.OnceValue(func() error { return searchapi.FieldError(codes.NotFound, "name", noRepoText) })

// storeError is the status of an error of the catalog, or of another store in etcd.
func storeError(ctx context.Context, what string, err error) error {
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return errNoRepo()
	case errors.Is(err, catalog.ErrName), errors.Is(err, catalog.ErrTooLarge):
		return searchapi.FieldError(codes.InvalidArgument, "name", err.Error())
	}
	return backendError(ctx, what, "etcd", err)
}

// backendError is the status of an error of etcd or of the queue, whose text is for the log. These have timeouts of their own, so a deadline
// error of them does not mean that the caller's deadline has passed.
func backendError(ctx context.Context, what, backend string, err error) error {
	code, words := codes.Unavailable, "does not answer, or cannot do it now: try again later; the router's log has the cause"
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.DeadlineExceeded):
		code, words = codes.DeadlineExceeded, "did not answer before the deadline of the call"
	case ended != nil:
		code, words = codes.Canceled, "had not answered when the call was canceled"
	}
	return searchapi.Withhold(code, what+": "+backend+" "+words, err)
}

func ruleError(field string, err error) error {
	return searchapi.FieldError(codes.InvalidArgument, field, err.Error())
}
