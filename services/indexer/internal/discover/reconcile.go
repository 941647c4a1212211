package discover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// reconcile makes the repos of a complete list desired, and removes those that are
// missing from it. It takes over repos that left another source. It leaves alone repos
// that belong to another source or were added by hand. It returns the repos of the
// source that were up to date, none if they could not all be read.
func (l *look) reconcile(ctx context.Context, listed []codehost.Repo) (kept []*catalogv1.Desired, err error) {
	wanted, err := l.wanted(ctx, listed)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(wanted)) // by the host's id
	for name, r := range wanted {
		names[r.GetHostId()] = name
	}
	delete(names, "")
	var missing, back []catalog.Desired
	repos, foreign := uint32(0), uint32(0)
	for entry, err := range l.Store.ListDesired(ctx) {
		if err != nil {
			return nil, err
		}
		have := entry.Record
		want := wanted[have.GetName()]
		switch ours := have.GetSource() == l.spec.GetName(); {
		case want == nil && ours:
			missing = append(missing, entry)
		case want != nil && !ours && have.GetLeftAt() == nil:
			foreign++
			delete(wanted, have.GetName())
		case want != nil && ours && same(want, have):
			if have.GetLeftAt() != nil {
				back = append(back, entry)
			}
			repos++
			kept = append(kept, have)
			delete(wanted, have.GetName())
		}
	}
	// Nothing is written before the list ends: etcd would forget the revision of the list while very many repos are written.
	for _, entry := range back {
		if err := l.markBack(ctx, entry); err != nil {
			return kept, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		switch err := l.put(ctx, wanted[name]); {
		case errors.Is(err, errTaken):
			foreign++
		case errors.Is(err, catalog.ErrTooLarge):
			l.refuse(ctx, name, err)
		case err != nil:
			return kept, err
		default:
			repos++
		}
	}
	leaving, err := l.removeMissing(ctx, missing, names)
	if err != nil {
		return kept, err
	}
	// After an error the counts are those of the look before, which an alert may wait for.
	l.report.Repos, l.report.Foreign, l.report.Leaving = repos, foreign, leaving
	if l.source.Record.GetRemoved() && leaving == 0 {
		err = l.Store.DropSource(ctx, l.source)
		l.over = err == nil
	}
	return kept, err
}

// reposOfSource returns the repos that were in the source at the last complete list.
func (l *look) reposOfSource(ctx context.Context) (kept []*catalogv1.Desired, err error) {
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

// refuse counts a repo that the source may not bring, and logs the first one.
func (l *look) refuse(ctx context.Context, repo string, err error) {
	if l.report.Refused++; l.report.Refused == 1 {
		l.Log.WarnContext(ctx, "a source lists repos that it may not bring; this is the first", "source", l.spec.GetName(), "repo", repo, "error", err)
	}
}

// wanted returns the records of the listed repos that the source selects, by name. It fails if ctx ends.
func (l *look) wanted(ctx context.Context, listed []codehost.Repo) (map[string]*catalogv1.Desired, error) {
	wanted := make(map[string]*catalogv1.Desired, len(listed))
	l.report.Refused = 0
	for _, r := range listed {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !codehost.Wants(l.spec, r) {
			continue
		}
		name, err := origin.RepoName(r.CloneURL)
		if err = errors.Join(err, origin.CheckURL(r.CloneURL, l.Policy), codehost.CheckClone(l.spec, r.CloneURL)); err != nil {
			l.refuse(ctx, r.Path, err)
			continue
		}
		wanted[name] = &catalogv1.Desired{
			Name: name, Url: r.CloneURL, Branches: codehost.Branches(l.spec, r.Path), Source: l.spec.GetName(), HostId: r.ID,
			Facts: l.facts(r),
		}
	}
	return wanted, nil
}

// facts returns the host's facts about a repo, its rank and its id, nil for a single URL without a rank.
func (l *look) facts(r codehost.Repo) *ingestv1.RepoFacts {
	rank := codehost.Rank(l.spec, r.Path)
	if l.spec.GetKind() == codehost.Git && rank == 0 {
		return nil
	}
	facts := &ingestv1.RepoFacts{Archived: r.Archived, Fork: r.Fork, Public: r.Public, Rank: rank}
	if id, err := strconv.ParseUint(r.ID, 10, 32); err == nil && l.spec.GetHostIds() {
		facts.Id = uint32(id)
	}
	return facts
}

// same reports whether a desired repo is as the source wants it. It keeps the id that it has if the source gives none.
func same(want, have *catalogv1.Desired) bool {
	want = proto.CloneOf(want)
	catalog.KeepID(want, have)
	return want.GetUrl() == have.GetUrl() && want.GetHostId() == have.GetHostId() &&
		slices.Equal(want.GetBranches(), have.GetBranches()) && proto.Equal(want.GetFacts(), have.GetFacts())
}

// markBack notes that a missing repo is in its source again. That is no request: an organisation that disappears
// for an hour would make as many jobs as it has repos, and the next poll finds what was pushed meanwhile.
func (l *look) markBack(ctx context.Context, entry catalog.Desired) error {
	if err := l.Store.MarkLeft(ctx, entry, time.Time{}); err != nil && !errors.Is(err, catalog.ErrStale) {
		return fmt.Errorf("mark %q as back in its source: %w", entry.Record.GetName(), err)
	}
	return nil
}

// errTaken is the error for a repo that got another owner since the repos were listed.
var errTaken = errors.New("the repo is another source's, or was added by hand")

// put makes a repo desired, as PutRepo does, unless it is taken.
func (l *look) put(ctx context.Context, want *catalogv1.Desired) error {
	want.RequestedAt = timestamppb.Now()
	isNew := false
	epoch, _, err := l.Store.PutDesiredIf(ctx, want, "", func(old *catalogv1.Desired) error {
		isNew = old == nil
		if old != nil && old.GetSource() != l.spec.GetName() && old.GetLeftAt() == nil {
			return errTaken
		}
		return nil
	})
	if err != nil {
		return err
	}
	queue.Wake(ctx, l.Queue, queue.Job{Repo: want.GetName(), Epoch: epoch, Bulk: isNew}, l.Log)
	return nil
}

// removeMissing deletes the repos that have been missing from the source for the grace period, or whose new name is published, marks
// the others, and counts these. It takes the names that the source selects now, by the host's ids.
func (l *look) removeMissing(ctx context.Context, missing []catalog.Desired, names map[string]string) (leaving uint32, err error) {
	for _, entry := range missing {
		newName := names[entry.Record.GetHostId()]
		if hostOf(newName) != hostOf(entry.Record.GetName()) { // the source got another host, whose ids are its own
			newName = ""
		}
		gone, err := l.removeRepo(ctx, entry, newName)
		if err != nil {
			return 0, err
		}
		if !gone {
			leaving++
		}
	}
	return leaving, nil
}

// hostOf returns the host that a repo's name begins with.
func hostOf(repo string) string {
	host, _, _ := strings.Cut(repo, "/")
	return host
}

// removeRepo deletes a missing repo if it is due, else marks when it went missing. Gone
// reports that it is deleted. NewName is the repo's present name in the source, "" if it
// has left.
func (l *look) removeRepo(ctx context.Context, entry catalog.Desired, newName string) (gone bool, err error) {
	repo := entry.Record
	due := repo.GetLeftAt() != nil && time.Since(repo.GetLeftAt().AsTime()) >= codehost.Grace(l.spec)
	if !due && newName != "" {
		if due, err = l.isPublished(ctx, newName); err != nil {
			return false, err
		}
	}
	switch {
	case due:
		if _, err := l.Store.DeleteRepo(ctx, repo.GetName()); err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return false, err
		}
		l.Metrics.deleted.Inc()
		l.Log.InfoContext(ctx, "repo deleted because it left its source", "repo", repo.GetName(), "source", l.spec.GetName(), "renamed", newName)
		return true, nil
	case repo.GetLeftAt() == nil:
		if err := l.Store.MarkLeft(ctx, entry, time.Now()); err != nil && !errors.Is(err, catalog.ErrStale) {
			return false, fmt.Errorf("mark %q as missing from its source: %w", repo.GetName(), err)
		}
	}
	return false, nil
}

// isPublished reports whether a repo's newest request is published. An older one may be of another repo that had its name.
func (l *look) isPublished(ctx context.Context, name string) (bool, error) {
	repo, err := l.Store.GetDesired(ctx, name)
	if err != nil {
		return false, ignoreGone(err)
	}
	published, err := l.publishedRepos(ctx, []*catalogv1.Desired{repo.Record})
	return len(published) > 0, err
}
