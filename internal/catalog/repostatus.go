package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// maxStatusPage bounds one page of ListRepoStatus.
const maxStatusPage = 1000

// statusReads bounds the reads of RepoStatus at once: callers choose how often they ask, and for what.
const statusReads = 8

// RepoStatus returns how far a repo is, as of one revision; ErrNotFound if the repo
// is not desired. While statusReads others read, it waits.
func (s *Store) RepoStatus(ctx context.Context, name string) (*ingestv1.RepoStatus, error) {
	status, _, err := s.Repo(ctx, name)
	return status, err
}

// Repo returns what RepoStatus returns, and the desired record of that revision.
func (s *Store) Repo(ctx context.Context, name string) (*ingestv1.RepoStatus, *catalogv1.Desired, error) {
	if err := checkName(name); err != nil {
		return nil, nil, fmt.Errorf("read status: %w", err)
	}
	done, err := s.readStatus(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read status of %q: %w", name, err)
	}
	defer done()
	state, err := s.readRepo(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if state.desired.Record == nil {
		return nil, nil, fmt.Errorf("status of %q: %w", name, ErrNotFound)
	}
	return state.compose(), state.desired.Record, nil
}

// maxNames bounds what DesiredNames returns.
const maxNames = 1000

// DesiredNames are the names of the first 1000 desired repos, ascending, and whether there are more. It waits as RepoStatus does.
func (s *Store) DesiredNames(ctx context.Context) (names []string, more bool, err error) {
	done, err := s.readStatus(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("list names: %w", err)
	}
	defer done()
	resp, err := s.client.Get(ctx, s.key(desiredKind, ""), clientv3.WithRange(s.end(desiredKind)), clientv3.WithKeysOnly(), clientv3.WithLimit(maxNames))
	if err != nil {
		return nil, false, fmt.Errorf("list names: %w", err)
	}
	for _, kv := range resp.Kvs {
		names = append(names, s.name(desiredKind, kv.Key))
	}
	return names, resp.More, nil
}

// readStatus waits until few others read, and returns what must be called after the read.
func (s *Store) readStatus(ctx context.Context) (done func(), err error) {
	select {
	case s.statuses <- struct{}{}:
		return func() { <-s.statuses }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// compose returns how far the newest request is. The desired record and the root
// count more than the status, which is advisory and may be of an earlier request.
func (r *repoState) compose() *ingestv1.RepoStatus {
	desired, root, status := r.desired.Record, r.root.Record, r.status.Record
	out := &ingestv1.RepoStatus{
		Name: desired.GetName(), Url: desired.GetUrl(), Epoch: desired.GetEpoch(),
		PublishedEpoch: root.GetEpoch(), Generation: root.GetGeneration(),
		State: ingestv1.State_STATE_QUEUED, UpdatedAt: desired.GetRequestedAt(), Freshness: r.freshness(), Built: root.GetBuilt() + leftOut(root.GetLeftOut()),
		BuiltInFullAt: root.GetBuiltInFullAt(), FullBuildPending: r.fullBuildPending(),
	}
	if root != nil {
		out.RevisionToken = EncodeToken(r.root.Revision)
	}
	if status.GetEpoch() == desired.GetEpoch() && status != nil {
		out.Attempts = status.Attempts
		r.followStatus(out)
	}
	if root != nil && root.Epoch >= desired.GetEpoch() {
		out.State, out.Reason, out.Progress = ingestv1.State_STATE_PUBLISHED, "", nil
		out.UpdatedAt = later(out.UpdatedAt, root.PublishedAt)
	}
	return out
}

// leftOut says which branches a root leaves out; it is empty if there are none.
func leftOut(branches []*catalogv1.Branch) string {
	if len(branches) == 0 {
		return ""
	}
	const most = 10
	var names []string
	for _, b := range branches[:min(len(branches), most)] {
		names = append(names, strconv.Quote(b.GetName()))
	}
	text := "; left out, as it names no commit of the repository: " + strings.Join(names, ", ")
	if more := len(branches) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// followStatus copies a status of the newest request. One that claims to be
// published before the root says so is not believed.
func (r *repoState) followStatus(out *ingestv1.RepoStatus) {
	status := r.status.Record
	out.UpdatedAt = later(out.UpdatedAt, status.UpdatedAt)
	switch status.State {
	case ingestv1.State_STATE_FETCHING, ingestv1.State_STATE_BUILDING:
		out.State, out.Progress = status.State, status.Progress
	case ingestv1.State_STATE_QUEUED, ingestv1.State_STATE_FAILED:
		out.State, out.Reason = status.State, status.Reason
	}
}

func later(a, b *timestamppb.Timestamp) *timestamppb.Timestamp {
	if a.AsTime().Before(b.AsTime()) {
		return b
	}
	return a
}

// ListRepoStatus returns how far the desired repos are whose names start with
// prefix and come after after, in order of name and as of one revision: at most
// limit of them (0 or too many: 1000). more says whether further ones follow.
func (s *Store) ListRepoStatus(ctx context.Context, prefix, after string, limit int) (repos []*ingestv1.RepoStatus, more bool, err error) {
	if limit <= 0 || limit > maxStatusPage {
		limit = maxStatusPage
	}
	from, end := s.key(desiredKind, prefix), clientv3.GetPrefixRangeEnd(s.key(desiredKind, prefix))
	if after != "" {
		from = max(from, s.key(desiredKind, after)+"\x00")
	}
	if from >= end {
		return nil, false, nil
	}
	resp, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(int64(limit)))
	if err != nil {
		return nil, false, fmt.Errorf("list repos: %w", err)
	}
	if len(resp.Kvs) == 0 {
		return nil, false, nil
	}
	repos, err = s.composeAll(ctx, resp.Kvs, resp.Header.Revision)
	return repos, resp.More, err
}

// composeAll joins desired records with the roots and statuses between the first
// and the last of them, read at the same revision.
func (s *Store) composeAll(ctx context.Context, kvs []*mvccpb.KeyValue, revision int64) ([]*ingestv1.RepoStatus, error) {
	from, to := s.name(desiredKind, kvs[0].Key), s.name(desiredKind, kvs[len(kvs)-1].Key)
	between := func(k kind) clientv3.Op {
		return clientv3.OpGet(s.key(k, from), clientv3.WithRange(s.key(k, to)+"\x00"), clientv3.WithRev(revision))
	}
	resp, err := s.client.Txn(ctx).Then(between(rootKind), between(statusKind), between(seenKind)).Commit()
	if err != nil {
		return nil, fmt.Errorf("list repos: %w", err)
	}
	out := make([]*ingestv1.RepoStatus, 0, len(kvs))
	for i, kv := range kvs {
		name := s.name(desiredKind, kv.Key)
		var state repoState
		err := errors.Join(
			decodeFirst(&state.desired, kvs[i:], desiredKind, name),
			decodeFirst(&state.root, find(resp.Responses[0].GetResponseRange().Kvs, s.key(rootKind, name)), rootKind, name),
			decodeFirst(&state.status, find(resp.Responses[1].GetResponseRange().Kvs, s.key(statusKind, name)), statusKind, name),
			decodeFirst(&state.seen, find(resp.Responses[2].GetResponseRange().Kvs, s.key(seenKind, name)), seenKind, name),
		)
		if err != nil {
			return nil, fmt.Errorf("list repos: %w", err)
		}
		out = append(out, state.compose())
	}
	return out, nil
}

// find is an answer, which is in order of key, from a key on; nil if the key is not there.
func find(kvs []*mvccpb.KeyValue, key string) []*mvccpb.KeyValue {
	i, ok := slices.BinarySearchFunc(kvs, key, func(kv *mvccpb.KeyValue, key string) int {
		return strings.Compare(string(kv.Key), key)
	})
	if !ok {
		return nil
	}
	return kvs[i:]
}
