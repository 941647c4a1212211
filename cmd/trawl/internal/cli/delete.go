package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/wait"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// sleepSince waits between two checks of something that takes long; began is when the last check did. Each reads the records of
// all shared shards, or of all repos, so the wait grows with the time that it takes. It is false if ctx ends first.
func sleepSince(ctx context.Context, began time.Time) bool {
	return wait.Sleep(ctx, min(max(time.Second, 10*time.Since(began)), time.Minute))
}

func newDelete(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete REPO",
		Short: "Remove a repository by its name",
		Long: `Remove a repository by its name. It is in no answer from then on. Its bytes go later:

  from the bucket        a hold and two collections of garbage later: --gc-hold (3h) + twice --gc-every (15m) of the indexers
  from shards it shared  --compact-reclaim (24h), the time to plan and do a compaction, and then as from the bucket
  from searchers' disks  twice their --grace (1m), at most a minute more than one; of shared shards when the bucket's are left
  from indexers' disks   twice --gc-every (15m)

--wait waits until they are, and reports where some remain. It can be interrupted: the bytes go without it, and the same
command waits again. Searchers and indexers that are away are not waited for: they remove what they have when they come
back, before they are ready. What a bucket keeps of deleted objects by itself, as versions or copies, is up to the bucket.`,
		Args: named(cobra.ExactArgs(1)),
	}
	untilGone := cmd.Flags().Bool("wait", false, "wait until its bytes are gone from the bucket and all disks, and show where some are left; may take a day")
	return calling(p, cmd, func(ctx context.Context, c client, args []string) error {
		return deleteRepo(ctx, c, p, args[0], *untilGone)
	})
}

func deleteRepo(ctx context.Context, c client, p Process, name string, untilGone bool) error {
	done, err := c.ingest.DeleteRepo(ctx, &ingestv1.DeleteRepoRequest{Name: name})
	if err != nil && (!untilGone || status.Code(err) != codes.NotFound) {
		return err
	}
	if err == nil {
		if _, err := fmt.Fprintf(p.Out, "%s: deleted\n", name); err != nil {
			return err
		}
	}
	if !untilGone {
		return nil
	}
	// Without a token this resumes the wait for an earlier deletion.
	gone, again := waitGone(ctx, c, p, &ingestv1.GetDeletionRequest{Name: name, RevisionToken: done.GetRevisionToken()})
	if again != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(p.Err, "%s: its bytes go without this command; trawl delete --wait %s waits again\n", name, shellWord(name))
		}
		if status.Code(again) == codes.NotFound && err != nil {
			return err // there is neither a repo nor a deletion
		}
		return again
	}
	places := map[ingestv1.PlaceKind]uint64{}
	for _, place := range gone.GetPlaces() {
		places[place.GetKind()]++
	}
	searchers, indexers := places[ingestv1.PlaceKind_PLACE_KIND_SEARCHER], places[ingestv1.PlaceKind_PLACE_KIND_INDEXER]
	_, err = fmt.Fprintf(p.Out, "%s: gone from the bucket and from the disks of %s and %s; those that are away remove it when they come back\n",
		name, render.Count(searchers, "searcher", "searchers"), render.Count(indexers, "indexer", "indexers"))
	return err
}

// waitGone shows where bytes of a deleted repo remain until none do. It ends with ctx;
// the deletion continues without it.
func waitGone(ctx context.Context, c client, p Process, req *ingestv1.GetDeletionRequest) (*ingestv1.GetDeletionResponse, error) {
	for printed := ""; ; {
		began := time.Now()
		d, err := c.ingest.GetDeletion(ctx, req)
		if err != nil {
			return nil, err
		}
		req.RevisionToken = d.GetRevisionToken() // the same one, whatever is deleted meanwhile
		left := whereLeft(d)
		if left != printed && left != "" {
			fmt.Fprintf(p.Err, "%s: left in %s\n", req.GetName(), left)
			printed = left
		}
		if d.GetGone() {
			return d, nil
		}
		if !sleepSince(ctx, began) {
			return nil, ctx.Err()
		}
	}
}

// maxNamed bounds the searchers and the indexers that are named in a line.
const maxNamed = 5

// whereLeft names the places in which bytes may be, and how long that may take.
func whereLeft(d *ingestv1.GetDeletionResponse) string {
	var parts []string
	disks := map[ingestv1.PlaceKind]int{}
	for _, place := range d.GetPlaces() {
		if place.GetGone() {
			continue
		}
		switch kind := place.GetKind(); kind {
		case ingestv1.PlaceKind_PLACE_KIND_BUCKET:
			parts = append(parts, "the bucket"+within(place))
		case ingestv1.PlaceKind_PLACE_KIND_SHARED_SHARDS:
			parts = append(parts, render.Count(uint64(place.GetShards()), "shard", "shards")+" that it shared"+within(place))
		default:
			if disks[kind]++; disks[kind] <= maxNamed {
				parts = append(parts, diskOf(kind)+" "+render.Safe([]byte(place.GetName()))+within(place))
			}
		}
	}
	for _, kind := range []ingestv1.PlaceKind{ingestv1.PlaceKind_PLACE_KIND_SEARCHER, ingestv1.PlaceKind_PLACE_KIND_INDEXER} {
		if more := disks[kind] - maxNamed; more > 0 {
			parts = append(parts, fmt.Sprintf("%d more %ss", more, diskOf(kind)))
		}
	}
	return strings.Join(parts, ", ")
}

func diskOf(kind ingestv1.PlaceKind) string { return searchapi.EnumWords(kind.String(), "PLACE_KIND_") }

// within is how long it may take, in words. It is unknown until the first garbage collection.
func within(place *ingestv1.DeletionPlace) string {
	if place.GetWithin() == nil {
		return " (for an unknown time)"
	}
	return fmt.Sprintf(" (within %v)", place.GetWithin().AsDuration().Round(time.Second))
}
