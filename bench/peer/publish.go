package peer

import (
	"context"
	"fmt"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Publish requests that a repository be indexed under a name, and waits until it is
// published.
func Publish(ctx context.Context, ingest ingestv1.IngestServiceClient, name, url string) (*ingestv1.RepoStatus, error) {
	put, err := ingest.PutRepo(ctx, &ingestv1.PutRepoRequest{Name: name, Url: url})
	if err != nil {
		return nil, fmt.Errorf("asking for %s to be indexed: %w", name, err)
	}
	ctx, cancel := context.WithCancel(ctx) // ends the watch
	defer cancel()
	watch, err := ingest.WatchRepo(ctx, &ingestv1.WatchRepoRequest{Name: name})
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", name, err)
	}
	for {
		update, err := watch.Recv()
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", name, err)
		}
		status := update.GetStatus()
		if status.GetState() == ingestv1.State_STATE_FAILED {
			return nil, fmt.Errorf("indexing %s: %s", name, status.GetReason())
		}
		if status.GetPublishedEpoch() >= put.GetEpoch() {
			return status, nil
		}
	}
}
