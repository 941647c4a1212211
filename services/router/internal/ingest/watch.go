package ingest

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// WatchRepo implements ingestv1.IngestServiceServer. A shutdown ends it with
// UNAVAILABLE, so that the caller watches through another router.
func (s *Service) WatchRepo(req *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
	if !access.Sees(stream.Context(), req.Name) {
		return s.noRepo(stream.Context(), req.Name)
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() {
		select {
		case <-s.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	for repo, err := range s.store.WatchRepo(ctx, req.Name) {
		if err != nil {
			return s.watchError(stream.Context(), req.Name, err)
		}
		if err := stream.Send(&ingestv1.WatchRepoResponse{Status: repo}); err != nil {
			return err
		}
	}
	return s.watchError(stream.Context(), req.Name, ctx.Err())
}

func (s *Service) watchError(caller context.Context, name string, err error) error {
	select {
	case <-s.draining:
		return status.Error(codes.Unavailable, "this router is shutting down: watch again")
	default:
	}
	if caller.Err() != nil {
		return status.FromContextError(caller.Err()).Err()
	}
	if err == nil {
		return nil
	}
	return s.repoError(caller, "watch repo", name, err)
}
