package catalog

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// RequestFullBuild requests a build of a repo from scratch, even if nothing has changed in it. It
// makes no request if the repo was built in full at since or later, or if such a request is not
// published yet. It returns the newest epoch of the repo, and whether it made a request;
// ErrNotFound if the repo is not desired.
func (s *Store) RequestFullBuild(ctx context.Context, name string, since time.Time) (epoch uint64, requested bool, err error) {
	if err := checkName(name); err != nil {
		return 0, false, fmt.Errorf("request a full build: %w", err)
	}
	err = contend(ctx, "request a full build of", name, func() error {
		epoch, requested, err = s.tryRequestFullBuild(ctx, name, since)
		return err
	})
	return epoch, requested, err
}

func (s *Store) tryRequestFullBuild(ctx context.Context, name string, since time.Time) (uint64, bool, error) {
	old, err := s.readRepo(ctx, name)
	if err != nil {
		return 0, false, fmt.Errorf("request a full build: %w", err)
	}
	desired := old.desired.Record
	if desired == nil {
		return 0, false, fmt.Errorf("request a full build of %q: %w", name, ErrNotFound)
	}
	built := old.root.Record.GetBuiltInFullAt()
	if old.fullBuildPending() || built != nil && !built.AsTime().Before(since) {
		return desired.GetEpoch(), false, nil
	}
	next := proto.CloneOf(desired)
	next.FullEpoch, next.RequestedAt, next.NotBefore = old.lastEpoch()+1, timestamppb.Now(), nil
	epoch, _, err := s.request(ctx, old, next)
	return epoch, err == nil, err
}

// fullBuildPending reports whether a full build was asked for and is not published.
func (r *repoState) fullBuildPending() bool {
	return r.desired.Record.GetFullEpoch() > r.root.Record.GetEpoch()
}
