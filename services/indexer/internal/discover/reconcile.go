package discover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// reconcile makes the repos that a complete list has desired, and sees those off
// that are in it no more. A repo that has left another source is taken over; one
// that belongs to it, or was put by hand, is left as it is. It returns the repos of the
// source of which nothing is asked anew.
func (l *look) reconcile(ctx context.Context, listed []codehost.Repo) (kept []*catalogv1.Desired, err error) {
	wanted := l.wanted(listed)
	var left []catalog.Desired
	l.report.Repos, l.report.Leaving, l.report.Foreign = 0, 0, 0
	for entry, err := range l.Store.ListDesired(ctx) {
		if err != nil {
			return kept, err
		}
		have := entry.Record
		want := wanted[have.GetName()]
		switch ours := have.GetSource() == l.spec.GetName(); {
		case want == nil && ours:
			left = append(left, entry)
		case want != nil && !ours && have.GetLeftAt() == nil:
			l.report.Foreign++
			delete(wanted, have.GetName())
		case want != nil && ours && same(want, have):
			l.report.Repos++
			kept = append(kept, have)
			delete(wanted, have.GetName())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err := l.put(ctx, wanted[name]); err != nil {
			return kept, err
		}
		l.report.Repos++
	}
	return kept, l.seeOff(ctx, left, listed)
}

// ours are the repos of the source that have not left it, where its list cannot be had.
func (l *look) ours(ctx context.Context) (kept []*catalogv1.Desired, err error) {
	for entry, err := range l.Store.ListDesired(ctx) {
		if err != nil {
			return nil, err
		}
		if d := entry.Record; d.GetSource() == l.spec.GetName() && d.GetLeftAt() == nil {
			kept = append(kept, d)
		}
	}
	return kept, nil
}

// wanted are the records of the repos that the source wants, by name.
func (l *look) wanted(listed []codehost.Repo) map[string]*catalogv1.Desired {
	wanted := make(map[string]*catalogv1.Desired, len(listed))
	l.report.Refused = 0
	for _, r := range listed {
		if !codehost.Wants(l.spec, codehost.Facts{Path: r.Path, Archived: r.Archived, Fork: r.Fork}) {
			continue
		}
		name, err := origin.RepoName(r.CloneURL)
		if errors.Join(err, origin.CheckURL(r.CloneURL, l.Policy)) != nil {
			l.report.Refused++
			continue
		}
		wanted[name] = &catalogv1.Desired{
			Name: name, Url: r.CloneURL, Branches: codehost.Branches(l.spec, r.Path), Source: l.spec.GetName(), HostId: r.ID,
			Facts: l.facts(r),
		}
	}
	return wanted
}

// facts are what the host says of a repo. Of a single URL nobody says anything.
func (l *look) facts(r codehost.Repo) *ingestv1.RepoFacts {
	if l.spec.GetKind() == codehost.Git {
		return nil
	}
	return &ingestv1.RepoFacts{Archived: r.Archived, Fork: r.Fork, Public: r.Public}
}

// same says whether a repo that is desired is as it is wanted.
func same(want, have *catalogv1.Desired) bool {
	return have.GetLeftAt() == nil && want.GetUrl() == have.GetUrl() && want.GetHostId() == have.GetHostId() &&
		slices.Equal(want.GetBranches(), have.GetBranches()) && proto.Equal(want.GetFacts(), have.GetFacts())
}

// put makes a repo desired, as PutRepo does. The queue may be away: the reconciler
// finds the request.
func (l *look) put(ctx context.Context, want *catalogv1.Desired) error {
	want.RequestedAt = timestamppb.Now()
	epoch, _, err := l.Store.PutDesired(ctx, want)
	if err != nil {
		return err
	}
	l.wake(ctx, want.GetName(), epoch)
	return nil
}

func (l *look) wake(ctx context.Context, repo string, epoch uint64) {
	if err := l.Queue.Publish(ctx, queue.Job{Repo: repo, Epoch: epoch}); err != nil {
		l.Log.WarnContext(ctx, "no indexer was woken; the reconciler will find the request", "repo", repo, "epoch", epoch, "error", err)
	}
}

// seeOff deletes the repos that have left the source long enough ago, and those
// that are searched by another name.
func (l *look) seeOff(ctx context.Context, left []catalog.Desired, listed []codehost.Repo) error {
	renamed := map[string]string{}
	for _, r := range listed {
		if name, err := origin.RepoName(r.CloneURL); err == nil && r.ID != "" {
			renamed[r.ID] = name
		}
	}
	for _, entry := range left {
		gone, err := l.depart(ctx, entry, renamed[entry.Record.GetHostId()])
		if err != nil {
			return err
		}
		if !gone {
			l.report.Leaving++
		}
	}
	if !l.source.Record.GetRemoved() || l.report.Leaving > 0 {
		return nil
	}
	err := l.Store.DropSource(ctx, l.source)
	l.over = err == nil
	return err
}

// depart sees one repo off; gone says that it is deleted. A new name is what its
// host calls it now.
func (l *look) depart(ctx context.Context, entry catalog.Desired, newName string) (gone bool, err error) {
	repo := entry.Record
	due := repo.GetLeftAt() != nil && time.Since(repo.GetLeftAt().AsTime()) >= codehost.Grace(l.spec)
	if !due && newName != "" {
		_, err := l.Store.GetRoot(ctx, newName)
		if due = err == nil; err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return false, err
		}
	}
	switch {
	case due:
		if _, err := l.Store.DeleteRepo(ctx, repo.GetName()); err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return false, err
		}
		l.Metrics.deleted.Inc()
		l.Log.InfoContext(ctx, "repo deleted: it has left its source", "repo", repo.GetName(), "source", l.spec.GetName(), "renamed", newName)
		return true, nil
	case repo.GetLeftAt() == nil:
		if err := l.Store.MarkLeft(ctx, entry, time.Now()); err != nil && !errors.Is(err, catalog.ErrStale) {
			return false, fmt.Errorf("noting that a repo has left: %w", err)
		}
	}
	return false, nil
}
