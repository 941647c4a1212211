package discover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// maxUnreachable is how many repositories of a source can be unreachable in one
// look: then its host is taken to be down, and left alone.
const maxUnreachable = 5

// poll has those of some repos indexed anew whose branches have moved.
func (l *look) poll(ctx context.Context, repos []*catalogv1.Desired) error {
	var polling errgroup.Group
	polling.SetLimit(l.PerHost)
	var unreachable atomic.Int32
	next, err := l.published(ctx, repos)
	if err != nil {
		return err
	}
	for _, p := range next {
		polling.Go(func() error {
			if unreachable.Load() >= maxUnreachable {
				return nil
			}
			return ofHost(l.pollOne(ctx, p), &unreachable)
		})
	}
	if err := polling.Wait(); err != nil {
		return err
	}
	if unreachable.Load() >= maxUnreachable {
		return errors.New("git cannot reach the host: asking its repositories for new commits was given up")
	}
	return nil
}

// ofHost keeps failures of single repos out, which are told where they are indexed,
// and counts those that may be their host's.
func ofHost(err error, unreachable *atomic.Int32) error {
	fail, ofRepo := errors.AsType[*gitsource.Failure](err)
	switch {
	case !ofRepo:
		return err
	case fail.Kind == gitsource.Unreachable:
		unreachable.Add(1)
	}
	return nil
}

// polled is a repo and what is published of it.
type polled struct {
	desired *catalogv1.Desired
	root    *catalogv1.Root
}

// published are the repos whose newest request is done: of the others a request is
// under way.
func (l *look) published(ctx context.Context, repos []*catalogv1.Desired) ([]polled, error) {
	var all []polled
	for some := range slices.Chunk(repos, catalog.MaxRoots) {
		names := make([]string, len(some))
		for i, d := range some {
			names[i] = d.GetName()
		}
		roots, err := l.Store.GetRoots(ctx, names)
		if err != nil {
			return nil, err
		}
		for i, d := range some {
			if root := roots[i].Record; root != nil && root.GetEpoch() >= d.GetEpoch() {
				all = append(all, polled{d, root})
			}
		}
	}
	return all, nil
}

// pollOne asks where the branches of one repo are.
func (l *look) pollOne(ctx context.Context, p polled) error {
	release, err := l.hosts.enter(ctx, p.desired.GetUrl(), l.Config)
	if err != nil {
		return err
	}
	branches, err := l.Remote.Branches(ctx, p.desired.GetUrl(), p.desired.GetBranches())
	release()
	if err != nil {
		return err
	}
	l.Metrics.polled.Inc()
	at := firstMoved(branches, p.root.GetBranches())
	if at < 0 && len(branches) == len(p.root.GetBranches()) {
		return nil
	}
	now := time.Now()
	epoch, _, err := l.Store.Refresh(ctx, p.desired.GetName(), sight(branches, at, now), now, l.Apart)
	if err != nil || epoch == 0 {
		return ignoreGone(err)
	}
	l.Metrics.moved.Inc()
	l.wake(ctx, p.desired.GetName(), epoch)
	return nil
}

// ignoreGone drops the error of a repo that was deleted meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	return err
}

// firstMoved is the first branch that is not where it was, -1 if there is none: one
// at the end may have gone.
func firstMoved(now []docstore.Branch, then []*catalogv1.Branch) int {
	for i, b := range now {
		if i >= len(then) || b.Name != then[i].GetName() || b.Commit != then[i].GetCommit() {
			return i
		}
	}
	return -1
}

// sight is what is noted of a branch that has moved; nil where none has but gone.
func sight(branches []docstore.Branch, at int, now time.Time) *catalogv1.Seen {
	if at < 0 {
		return nil
	}
	return &catalogv1.Seen{
		Branch: branches[at].Name, Commit: branches[at].Commit, At: timestamppb.New(now), By: ingestv1.SeenBy_SEEN_BY_POLL,
	}
}

// hosts are the bounds of each host, for all sources at it.
type hosts struct {
	mu sync.Mutex
	at map[string]*bounds
}

type bounds struct {
	slots chan struct{}
	rate  *rate.Limiter
}

// enter waits until a host may be asked; release ends the question.
func (h *hosts) enter(ctx context.Context, url string, cfg Config) (release func(), err error) {
	remote, err := origin.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("asking for branches: %w", err)
	}
	b := h.of(remote.HostPort(remote.Host), cfg)
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := b.rate.Wait(ctx); err != nil {
		<-b.slots
		return nil, fmt.Errorf("waiting for a turn at a host: %w", err)
	}
	return func() { <-b.slots }, nil
}

func (h *hosts) of(host string, cfg Config) *bounds {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = map[string]*bounds{}
	}
	if h.at[host] == nil {
		h.at[host] = &bounds{slots: make(chan struct{}, cfg.PerHost), rate: rate.NewLimiter(rate.Limit(cfg.PerSecond), cfg.PerSecond)}
	}
	return h.at[host]
}
