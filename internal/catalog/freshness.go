package catalog

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// LagBuckets are bounds in seconds of how far repos are behind, for histograms.
var LagBuckets = []float64{.25, .5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600}

// maxPending bounds the requests of a repo whose times are kept.
const maxPending = 8

// pendingWith are the unpublished requests of a repo, with a new one. Beyond
// maxPending the last also stands for those after it, with its own time, so that the
// lag is never understated.
func (r *repoState) pendingWith(epoch uint64, at *timestamppb.Timestamp) []*catalogv1.PendingRequest {
	var all []*catalogv1.PendingRequest
	for _, p := range r.desired.Record.GetPending() {
		if p.GetEpoch() > r.root.Record.GetEpoch() {
			all = append(all, p)
		}
	}
	if len(all) == maxPending {
		all[maxPending-1] = &catalogv1.PendingRequest{Epoch: epoch, At: all[maxPending-1].GetAt()}
		return all
	}
	return append(all, &catalogv1.PendingRequest{Epoch: epoch, At: at})
}

// BehindSince is the time of the oldest request for a repo that is not served yet,
// the zero time if there is none. The index that is served answers the requests up to
// the epoch published.
func BehindSince(d *catalogv1.Desired, published uint64) time.Time {
	if published >= d.GetEpoch() {
		return time.Time{}
	}
	for _, p := range d.GetPending() {
		if p.GetEpoch() > published {
			return p.GetAt().AsTime()
		}
	}
	return d.GetRequestedAt().AsTime() // a restored record, which asks again
}

// PutSeen notes the newest commit of a repo, if the repo is desired. It does nothing
// for a nil one.
func (s *Store) PutSeen(ctx context.Context, name string, seen *catalogv1.Seen) error {
	if seen == nil {
		return nil
	}
	value, err := encode(seen)
	if err != nil {
		return fmt.Errorf("put seen of %q: %w", name, err)
	}
	_, err = s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(s.key(desiredKind, name)), ">", 0)).
		Then(clientv3.OpPut(s.key(seenKind, name), value)).Commit()
	if err != nil {
		return fmt.Errorf("put seen of %q: %w", name, err)
	}
	return nil
}

// freshness compares the commit that was seen last with the one that is served. A request
// whose commit is not known yet counts as newer than every commit seen before it.
func (r *repoState) freshness() *ingestv1.Freshness {
	desired, root, seen := r.desired.Record, r.root.Record, r.seen.Record
	out := &ingestv1.Freshness{
		Branch: seen.GetBranch(), SeenCommit: seen.GetCommit(), SeenAt: seen.GetAt(), SeenBy: seen.GetBy(), IndexedAt: root.GetPublishedAt(),
	}
	if seen == nil {
		out.SeenAt, out.SeenBy = desired.GetRequestedAt(), ingestv1.SeenBy_SEEN_BY_REQUEST
	}
	for i, b := range root.GetBranches() {
		if b.GetName() == out.Branch || i == 0 && out.Branch == "" {
			out.Branch, out.IndexedCommit = b.GetName(), b.GetCommit()
			break
		}
	}
	if since := BehindSince(desired, root.GetEpoch()); !since.IsZero() {
		out.BehindSince = timestamppb.New(since)
	}
	return out
}
