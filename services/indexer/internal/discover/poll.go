package discover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// maxUnreachable is how many repositories can be unreachable in one look before the
// whole host counts as down and is left alone.
const maxUnreachable = 5

// poll requests the repos whose branches moved. It ends after the time between two looks, so that a source with very many repos is
// listed as often as others, and the next poll goes on where this one ended, also that of another leader. Roots are read shortly before
// their repos are polled: from old ones, what a webhook has brought meanwhile would be requested again.
func (l *look) poll(ctx context.Context, repos []*catalogv1.Desired) (err error) {
	after := sort.Search(len(repos), func(i int) bool { return repos[i].GetName() > l.report.GetPolledTo() })
	order := slices.Concat(repos[after:], repos[:after])
	until := time.Now().Add(l.apart)
	var polling errgroup.Group
	var unreachable outage
	left := order
	for len(left) > 0 && (len(left) == len(order) || time.Now().Before(until)) {
		some := left[:min(len(left), catalog.MaxRoots)]
		if err = l.pollSome(ctx, some, &polling, &unreachable); err != nil || unreachable.isHost() {
			break
		}
		left = left[len(some):]
		if l.report.PolledTo = some[len(some)-1].GetName(); len(left) > 0 {
			l.putReport(ctx)
		}
	}
	switch err = errors.Join(err, polling.Wait()); {
	case err != nil: // the next poll repeats what was not begun
	case unreachable.isHost():
		// Perhaps only these repos are unreachable. So the next poll begins after them.
		for _, d := range order {
			if unreachable.has(d.GetName()) {
				l.report.PolledTo = d.GetName()
			}
		}
		err = errors.New("git cannot reach the host; its other repositories were not asked for new commits")
	case len(left) == 0:
		l.report.PolledTo = ""
	}
	return err
}

// pollSome starts to poll repos, at most catalog.MaxRoots, as fast as their host may be asked at present.
func (l *look) pollSome(ctx context.Context, some []*catalogv1.Desired, polling *errgroup.Group, unreachable *outage) error {
	next, err := l.publishedRepos(ctx, some)
	if err != nil {
		return err
	}
	for _, p := range next {
		if unreachable.isHost() {
			break
		}
		release, err := l.hosts.enter(ctx, p.desired.GetUrl(), l.Config)
		if err != nil {
			return err
		}
		polling.Go(func() error { return l.pollOne(ctx, p, release, unreachable) })
	}
	return nil
}

// outage has the repos that one poll cannot reach.
type outage struct {
	mu    sync.Mutex
	repos map[string]bool
}

func (o *outage) add(repo string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.repos == nil {
		o.repos = map[string]bool{}
	}
	o.repos[repo] = true
}

func (o *outage) has(repo string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.repos[repo]
}

// isHost reports whether the host counts as down, because maxUnreachable of its repos cannot be reached.
func (o *outage) isHost() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.repos) >= maxUnreachable
}

// polled is a repo with its published root.
type polled struct {
	desired *catalogv1.Desired
	root    *catalogv1.Root
}

// publishedRepos returns the repos, at most catalog.MaxRoots, whose newest request is published. The others have a
// request outstanding, which will fetch the newest commits.
func (l *look) publishedRepos(ctx context.Context, repos []*catalogv1.Desired) ([]polled, error) {
	names := make([]string, len(repos))
	for i, d := range repos {
		names[i] = d.GetName()
	}
	roots, err := l.Store.GetRoots(ctx, names)
	if err != nil {
		return nil, err
	}
	var all []polled
	for i, d := range repos {
		if root := roots[i].Record; root != nil && root.GetEpoch() >= d.GetEpoch() {
			all = append(all, polled{d, root})
		}
	}
	return all, nil
}

// pollOne asks for the commits of one repo, unless the host counts as down by now, calls release, and requests the repo if its commits moved.
func (l *look) pollOne(ctx context.Context, p polled, release func(), unreachable *outage) error {
	if unreachable.isHost() {
		release()
		return nil
	}
	branches, err := l.Remote.Branches(ctx, p.desired.GetUrl(), p.desired.GetBranches())
	fail, ofRepo := errors.AsType[*gitsource.Failure](err)
	if ofRepo && fail.Kind == gitsource.Unreachable {
		unreachable.add(p.desired.GetName()) // before the next one is asked
	}
	release()
	switch {
	case ofRepo:
		return nil // its job reports it
	case err != nil:
		return err
	}
	l.Metrics.polled.Inc()
	indexed, leftOut := gitsource.Branches(p.root.GetBranches()), gitsource.Branches(p.root.GetLeftOut())
	branches = slices.DeleteFunc(branches, func(b docstore.Branch) bool { return slices.Contains(leftOut, b) })
	if slices.Equal(branches, indexed) {
		return nil
	}
	now := time.Now()
	epoch, _, err := l.Store.Refresh(ctx, p.desired.GetName(), seenMove(branches, indexed, now), now, l.Apart)
	if err != nil || epoch == 0 {
		return ignoreGone(err)
	}
	l.Metrics.moved.Inc()
	queue.Wake(ctx, l.Queue, queue.Job{Repo: p.desired.GetName(), Epoch: epoch}, l.Log)
	return nil
}

// ignoreGone drops the error for a repo that has been deleted.
func ignoreGone(err error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	return err
}

// seenMove returns the record of the first branch that moved or is new, nil if branches
// were only deleted.
func seenMove(branches, indexed []docstore.Branch, now time.Time) *catalogv1.Seen {
	for i, b := range branches {
		if i >= len(indexed) || b != indexed[i] {
			return &catalogv1.Seen{Branch: b.Name, Commit: b.Commit, At: timestamppb.New(now), By: ingestv1.SeenBy_SEEN_BY_POLL}
		}
	}
	return nil
}

// hosts bounds the requests to each host across all sources.
type hosts struct {
	mu sync.Mutex
	at map[string]*bounds
}

// bounds are the limits of one host.
type bounds struct {
	slots chan struct{}
	rate  *rate.Limiter
}

// enter waits until a request to a host is allowed. The caller calls release after it.
func (h *hosts) enter(ctx context.Context, url string, cfg Config) (release func(), err error) {
	remote, err := origin.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("ask for branches: %w", err)
	}
	b := h.of(remote.HostPort(remote.Host), cfg)
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := b.rate.Wait(ctx); err != nil {
		<-b.slots
		return nil, fmt.Errorf("wait for the rate limit of a host: %w", err)
	}
	return func() { <-b.slots }, nil
}

// perSecond is how many repositories of one host are polled each second at present.
func (c Config) perSecond() int { return c.Live.Whole(limits.PollPerSecond, "", c.PerSecond) }

// perHost is how many repositories of one host are polled at once. A poll that takes
// 400 ms, which is slow, then still leaves perSecond polls in a second.
func perHost(perSecond int) int { return (2*perSecond + 4) / 5 }

// of returns the bounds of a host: new ones when the limit has changed.
func (h *hosts) of(host string, cfg Config) *bounds {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = map[string]*bounds{}
	}
	perSecond := cfg.perSecond()
	if h.at[host] == nil || h.at[host].rate.Burst() != perSecond {
		h.at[host] = &bounds{slots: make(chan struct{}, perHost(perSecond)), rate: rate.NewLimiter(rate.Limit(perSecond), perSecond)}
	}
	return h.at[host]
}
