package catalog

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// SourceProgress counts the repos of a source that have not left it, by the state of
// their newest request. Repos that are neither published nor failed are under way.
type SourceProgress struct{ Repos, Published, Failed uint64 }

// progressChunk is how many repos are looked at in one transaction, which reads two
// records of each: etcd takes 128 operations.
const progressChunk = 60

// SourceProgress reads all desired records, and the other records of the source's
// repos.
func (s *Store) SourceProgress(ctx context.Context, source string) (p SourceProgress, err error) {
	var some []*catalogv1.Desired
	for entry, err := range s.ListDesired(ctx) {
		if err != nil {
			return p, err
		}
		if d := entry.Record; d.GetSource() != source || d.GetLeftAt() != nil {
			continue
		}
		if some = append(some, entry.Record); len(some) == progressChunk {
			if err := s.countProgress(ctx, some, &p); err != nil {
				return p, err
			}
			some = some[:0]
		}
	}
	return p, s.countProgress(ctx, some, &p)
}

func (s *Store) countProgress(ctx context.Context, repos []*catalogv1.Desired, p *SourceProgress) error {
	if len(repos) == 0 {
		return nil
	}
	var reads []clientv3.Op
	for _, d := range repos {
		reads = append(reads, clientv3.OpGet(s.key(rootKind, d.GetName())), clientv3.OpGet(s.key(statusKind, d.GetName())))
	}
	resp, err := s.client.Txn(ctx).Then(reads...).Commit()
	if err != nil {
		return fmt.Errorf("count the repos of a source: %w", err)
	}
	for i, d := range repos {
		var root Root
		var status Status
		if err := decodeInto(&root, resp.Responses[2*i], rootKind, d.GetName()); err != nil {
			return err
		}
		if err := decodeInto(&status, resp.Responses[2*i+1], statusKind, d.GetName()); err != nil {
			return err
		}
		p.Repos++
		switch {
		case root.Record.GetEpoch() >= d.GetEpoch():
			p.Published++
		case status.Record.GetEpoch() == d.GetEpoch() && status.Record.GetState() == ingestv1.State_STATE_FAILED:
			p.Failed++
		}
	}
	return nil
}
